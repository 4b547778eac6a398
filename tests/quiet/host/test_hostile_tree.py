"""A tree for --root may come from a stranger: nothing is written outside it, and nothing in it blocks a reader."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quiet.errors import UsageError
from quiet.host.files import Files
from quiet.host.reader import Reader
from tests.quiet.boot.trees import grow
from tests.quiet.commands import Quiet
from tests.trees import plant

CHECKOUT = Path(__file__).parents[3]
HOST = CHECKOUT / "tests" / "hosts" / "host.tar.gz"
SEQUENCES = {
    "settings": (("apply", "--profile", "bench", "--cpus", "1"), ("restore", "--force")),
    "boot": (("boot", "apply"), ("boot", "remove")),
    "service": (("install-service",), ("remove-service",)),
}
OWN = ("journal.jsonl", "lock", "users")  # of /run/quiet
BESIDE = (".new", ".quiet-new")  # the file written before the rename


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded host with systemd and a boot loader."""
    root = tmp_path_factory.mktemp("pristine") / "tree"
    grow("raspberry", root)
    with tarfile.open(HOST) as tar:
        tar.extractall(root, filter="data")
    return plant(root, {"etc/systemd/system/multi-user.target.wants/": "", "run/": "", "var/lib/": ""})


@pytest.fixture
def tree(pristine: Path, tmp_path: Path) -> Path:
    shutil.copytree(pristine, tmp_path / "tree", symlinks=True)
    return tmp_path / "tree"


def states(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (mode, content)
    return found


def written(quiet: Quiet, tree: Path, sequence: str) -> set[str]:
    """Every file that the commands change or make in a tree."""
    paths = {f"run/quiet/{name}" for name in OWN}
    for command in SEQUENCES[sequence]:
        before = states(tree)
        assert quiet(*command, "--root", tree).code in (0, 1, 4)
        after = states(tree)
        changed = (path for path in {*before, *after} if before.get(path) != after.get(path))
        paths |= {path for path in changed if not (tree / path).is_dir()}
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("upward", [False, True], ids=["absolute links", "relative links"])
@pytest.mark.parametrize("what", ["files", "folders", "new files"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_no_command_writes_through_links_that_lead_out_of_the_tree(
    quiet: Quiet, pristine: Path, tree: Path, tmp_path: Path, sequence: str, what: str, upward: bool
) -> None:
    paths = written(quiet, tree, sequence)
    assert len(paths) >= len(OWN) + 3
    shutil.rmtree(tree)
    shutil.copytree(pristine, tree, symlinks=True)
    outside = tmp_path / "outside"
    if what == "folders":
        paths = {str(Path(path).parent) for path in paths}
    elif what == "new files":
        paths = {path + end for path in paths for end in BESIDE}
    for path in sorted(paths):
        place, victim = tree / path, outside / path
        if place.resolve().is_relative_to(tree.resolve()) and not place.parent.is_symlink():
            lay(tree, place, victim, "../" * 40 if upward else "/")
    before = states(outside)
    for command in SEQUENCES[sequence]:
        assert quiet(*command, "--root", tree).code in (0, 1, 2, 3, 4)
    assert states(outside) == before


def lay(tree: Path, place: Path, victim: Path, lead: str) -> None:
    """Replace a file or directory by a link to its copy outside; there is one where the link leads in the tree, too."""
    inside = tree / str(victim).lstrip("/")
    for copy in (victim, inside):
        copy.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.copytree(place, copy, symlinks=True, dirs_exist_ok=True)
        elif not copy.exists():
            copy.write_bytes(place.read_bytes() if place.is_file() else b"victim\n")
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(f"{lead}{str(victim).lstrip('/')}")


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("w") as file:
        file.truncate(1 << 40)


def folder(path: Path) -> None:
    path.mkdir()


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.fixture
def soon() -> Iterator[None]:
    """A hanging process is ended."""
    signal.alarm(120)
    yield
    signal.alarm(0)


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("make", [fifo, endless, huge, folder, loop])
@pytest.mark.parametrize(
    "path",
    [
        "proc/stat",
        "proc/cmdline",
        "proc/mounts",
        "proc/sys/kernel/timer_migration",
        "sys/devices/system/cpu/online",
        "run/quiet/journal.jsonl",
        "var/lib/quiet/boot.json",
        "boot/firmware/cmdline.txt",
        "etc/systemd/system/quiet.service",
    ],
)
def test_no_file_of_a_tree_blocks_a_command_or_fills_the_memory(
    quiet: Quiet, tree: Path, path: str, make: Callable[[Path], None]
) -> None:
    place = tree / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    make(place)
    for command in (("status",), ("plan",), ("boot", "status")):
        done = quiet(*command, "--root", tree)
        assert done.code in (0, 1, 2, 3, 4)
        assert len(done.err) < 1000


@pytest.mark.slow
def test_a_link_to_itself_is_recorded_as_a_link(quiet: Quiet, tree: Path, tmp_path: Path) -> None:
    actions = next((tree / "sys/kernel/irq").glob("*/actions"))
    actions.unlink()
    loop(actions)
    assert quiet("record", "--root", tree, tmp_path / "all.tgz").code == 0


@pytest.mark.slow
def test_a_recording_of_a_tree_takes_no_file_from_outside(quiet: Quiet, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret word\n")
    (tree / "proc/cmdline").unlink()
    (tree / "proc/cmdline").symlink_to("../../secret")
    assert quiet("record", "--unmasked", "--root", tree, tmp_path / "all.tgz").code == 0
    with tarfile.open(tmp_path / "all.tgz") as tar:
        texts = [tar.extractfile(entry) for entry in tar if entry.isfile()]
        assert not any(b"secret word" in file.read() for file in texts if file is not None)


def test_links_are_resolved_inside_the_tree(tmp_path: Path) -> None:
    plant(tmp_path, {"outside": "outside", "tree/etc/inside": "inside", "tree/a/": ""})
    for name, to in (("absolute", "/etc/inside"), ("relative", "../../../etc/inside"), ("out", "../../outside")):
        (tmp_path / "tree/a" / name).symlink_to(to)
    reader = Reader(str(tmp_path / "tree"))
    assert (reader.text("/a/absolute"), reader.text("/a/relative"), reader.text("/a/out")) == ("inside", "inside", None)
    assert (reader.exists("/a/absolute"), reader.exists("/a/out"), reader.is_entry("/a/out")) == (True, False, True)


def test_a_new_file_does_not_follow_a_link_in_its_place(tmp_path: Path) -> None:
    plant(tmp_path, {"victim": "victim", "tree/": ""})
    for name in ("file", "file.new"):
        (tmp_path / "tree" / name).symlink_to("../victim")
    Files(str(tmp_path / "tree")).create("/file", "new")
    assert (tmp_path / "victim").read_text() == "victim\n"
    assert (tmp_path / "tree/file").read_text() == "new"
    assert not (tmp_path / "tree/file").is_symlink()


def test_a_file_larger_than_any_host_has_is_refused_by_name(tmp_path: Path) -> None:
    huge(plant(tmp_path, {"proc/": ""}) / "proc/stat")
    with pytest.raises(UsageError, match="/proc/stat is larger than 64 MiB"):
        Reader(str(tmp_path)).text("/proc/stat")


def test_readers_that_are_gone_leave_no_descriptor_open(tmp_path: Path) -> None:
    plant(tmp_path, {"file": "text"})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        assert Reader(str(tmp_path)).text("/file") == "text"
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
def test_no_module_builds_a_path_below_the_root_itself() -> None:
    joined = re.compile(r"\.root \+|\.root\}\{|\.root\}/(?!\")")
    product = [path for package in ("quiet", "cbench") for path in (CHECKOUT / package).rglob("*.py")]
    assert len(product) > 100
    assert [path.name for path in product if joined.search(path.read_text())] == ["root.py"]
