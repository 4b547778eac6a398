"""A recorded machine plans as the machine itself does."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from quiet import shapes
from quiet.errors import QuietError, UsageError
from quiet.facts import Facts
from quiet.host import Reader
from quiet.profile import load
from quiet.recorder import Recording, record
from quiet.verify import plan_now
from tests.quiet.kernels import tree
from tests.trees import hybrid, plant, sparse, task


def again(root: str, folder: Path) -> Path:
    """Record a root and unpack it."""
    file = folder / "recorded.tar.gz"
    assert record(Recording(root), str(file)) > 0
    with tarfile.open(file) as tar:
        tar.extractall(folder / "again", filter="tar")
    return folder / "again"


def planned(root: Path, profile: str = "bench") -> dict[str, object]:
    return shapes.plan(plan_now(Reader(str(root)), load(profile), None)[0], False)


def test_a_recorded_tree_gives_the_same_plan(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, task(20, "sshd", "0-3") | task(11, "cpuhp/3", "3", kernel=True, bound=True))
    managed = root / "proc/irq/1/smp_affinity_list"
    managed.chmod(0o444)
    assert planned(again(str(root), tmp_path)) == planned(root)


@pytest.mark.parametrize("files", [hybrid(), sparse()], ids=["hybrid", "sparse"])
def test_recorded_topologies_give_the_same_choice(tmp_path: Path, files: dict[str, str]) -> None:
    root = tree(tmp_path / "machine", files)
    assert planned(again(str(root), tmp_path))["cpus"] == planned(root)["cpus"]


def test_a_tree_gives_the_same_plan_for_every_choice_of_every_knob(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, {"sys/devices/system/cpu/smt/control": "on", "proc/sys/kernel/randomize_va_space": "2"})
    path = tmp_path / "other.toml"
    path.write_text('[knobs]\nsmt = "off"\naslr = "sysctl"\nthp = "never"\n"cpufreq.governor" = "all"\n')
    assert planned(again(str(root), tmp_path), str(path)) == planned(root, str(path))


def test_this_host_can_be_recorded_and_planned_on(tmp_path: Path) -> None:
    copy = again("/", tmp_path)
    try:
        live = plan_now(Reader("/"), load("bench"), None)[0].cpus
    except QuietError:
        pytest.skip("nothing can be isolated on this host")
    assert plan_now(Reader(str(copy)), load("bench"), None)[0].cpus == live


def test_an_archive_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "mine.tar.gz"
    file.write_text("precious")
    with pytest.raises(UsageError, match="exists already; give another name"):
        record(Recording(str(tree(tmp_path / "machine"))), str(file))
    assert file.read_text() == "precious"


def test_an_archive_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        record(Recording(str(tree(tmp_path / "machine"))), str(tmp_path / "none" / "x.tar.gz"))


def test_a_recording_holds_no_absolute_path_and_nothing_but_folders_and_files(tmp_path: Path) -> None:
    file = tmp_path / "recorded.tar.gz"
    record(Recording(str(tree(tmp_path / "machine"))), str(file))
    with tarfile.open(file) as tar:
        members = tar.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)
    assert all(member.name.startswith(("sys/", "proc/")) for member in members)


def test_the_status_of_a_recording_is_the_status_of_the_host(tmp_path: Path) -> None:
    root = tree(
        tmp_path / "machine", hybrid() | {"proc/sys/kernel/osrelease": "6.12.1", "proc/cpuinfo": "model name : X"}
    )
    copy = again(str(root), tmp_path)
    states = [shapes.status(Facts(Reader(str(place))), None) for place in (root, copy)]
    assert states[0] == states[1]
    assert states[1]["kernel"] == "6.12.1"


def test_a_file_that_goes_away_while_it_is_recorded_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, {"proc/7/status": "x"})
    read = Reader.text

    def vanishing(self: Reader, path: str) -> str | None:
        found = read(self, path)
        (tmp_path / "proc/7/status").unlink()
        return found

    monkeypatch.setattr(Reader, "text", vanishing)
    reader = Recording(str(tmp_path))
    reader.text("/proc/7/status")
    assert reader.files == {}
