"""The parts of the arm64 machines, without booting one."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.lab.harness import arm, arm_project, arm_root, cache, cpio, wheels
from tests.lab.harness.kernels import Kernel, modules
from tests.lab.harness.machines import ARM
from tests.lab.harness.model import Machine


def entries(data: bytes) -> dict[str, tuple[int, bytes]]:
    """name -> (mode, content), read as the kernel's documentation of the format says."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = data[at + 110 : at + 110 + length - 1].decode()
        at += (110 + length + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, data[at : at + size])
        at += (size + 3) // 4 * 4


def packed(root: Path) -> bytes:
    file = io.BytesIO()
    archive = cpio.Archive(file)
    archive.tree(root, keep=lambda name: name != "drop", prefix="at/")
    archive.device("dev/console", 5, 1)
    archive.close()
    return file.getvalue()


def test_an_archive_holds_files_links_and_every_folder_above_them(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").write_text("odd length")
    (tmp_path / "bin/tool").chmod(0o755)
    (tmp_path / "link").symlink_to("bin/tool")
    (tmp_path / "drop").mkdir()
    (tmp_path / "drop/inner").touch()
    found = entries(packed(tmp_path))
    assert list(found) == ["at", "at/bin", "at/bin/tool", "at/link", "dev", "dev/console"]
    assert found["at/bin/tool"] == (0o100755, b"odd length")
    assert found["at/link"] == (0o120777, b"bin/tool")
    assert found["dev/console"][0] == 0o20600


def test_the_same_files_make_the_same_archive_at_any_time(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("2")
    (tmp_path / "a").write_text("1")
    first = packed(tmp_path)
    (tmp_path / "a").touch()
    (tmp_path / "b").rename(tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / "b")
    assert packed(tmp_path) == first


def test_only_runtime_dependencies_are_fetched_for_arm64() -> None:
    entries_of_lock = wheels.wanted(
        (CHECKOUT / "pyproject.toml").read_text(), (CHECKOUT / "requirements.lock").read_text()
    )
    names = {entry.partition("==")[0] for entry in entries_of_lock}
    assert names >= {"cffi", "psutil", "pyperf", "pyroute2", "rich", "typer", "pycparser", "markdown-it-py", "mdurl"}
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "virtme-ng", "setuptools"}
    assert all(re.search(r"==\S+ \\\n    --hash=sha256:", entry) for entry in entries_of_lock)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("usr/lib/python3.11/os.py", True),
        ("usr/lib/python3/dist-packages/rich/table.py", True),
        ("lib/aarch64-linux-gnu/libc.so.6", True),
        ("usr/share", False),
        ("usr/lib/aarch64-linux-gnu/libc.a", False),
        ("usr/lib/aarch64-linux-gnu/gconv", False),
    ],
)
def test_the_root_contains_no_documentation_and_no_compiler_files(name: str, kept: bool) -> None:
    assert arm_root.kept(name) is kept


def test_modules_are_loaded_after_what_they_need_and_built_in_ones_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "lib/modules/6.1-arm64"
    folder.mkdir(parents=True)
    for name in ("9p", "9pnet", "9pnet_virtio"):
        (folder / f"{name}.ko").write_text(name)
    (folder / "modules.dep").write_text("9p.ko: 9pnet.ko\n9pnet.ko:\n9pnet_virtio.ko: 9pnet.ko\n")
    loaded = modules(Kernel("6.1-arm64", tmp_path), arm_project.MODULES)
    assert loaded == [("9pnet.ko", b"9pnet"), ("9pnet_virtio.ko", b"9pnet_virtio"), ("9p.ko", b"9p")]


def test_files_built_for_this_machine_are_not_included(tmp_path: Path) -> None:
    for name in ("a.py", "a.so", "module.ko", "_cbench.c", "c/counters.c", "__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in arm_project.files(tmp_path)] == ["a.py", "c/counters.c"]


@pytest.mark.parametrize("machine", ARM, ids=lambda machine: machine.name)
def test_every_arm64_machine_counts_time_in_instructions(machine: Machine) -> None:
    line = arm.emulator(machine, Path("image"), Path("root"), Path("share"))
    assert line[line.index("-icount") + 1] == "shift=0,sleep=off"
    assert line[line.index("-accel") + 1] == "tcg,thread=single"
    assert line[line.index("-smp") + 1].split(",")[0] == str(machine.cpus)
    assert machine.append in line[line.index("-append") + 1]


def test_a_build_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    def fail(made: Path) -> None:
        (made / "half").touch()
        raise OSError("disk full")

    final = tmp_path / "things/one"
    with pytest.raises(OSError, match="disk full"):
        cache.make(final, fail)
    assert [path.name for path in final.parent.iterdir()] == [".lock"]
    assert cache.make(final, lambda made: (made / "whole").touch()).joinpath("whole").exists()


def test_the_latest_entries_and_those_in_use_are_kept(tmp_path: Path) -> None:
    def made(name: str, keep: int) -> None:
        cache.make(tmp_path / name, lambda made: None, keep)

    for number, name in enumerate(("first", "old", "wanted", "recent")):
        made(name, 0)
        os.utime(tmp_path / name, (number, number))
    os.utime(tmp_path / "recent")
    made("wanted", 2)
    made("new", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "new", "recent", "wanted"]


def test_a_key_changes_with_a_content_and_with_a_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("x")
    two.write_text("x")
    assert len({cache.digest([one]), cache.digest([two]), cache.digest(["x"]), cache.digest(["x", ""])}) == 4
    before = cache.digest([one])
    one.write_text("y")
    assert cache.digest([one]) != before
