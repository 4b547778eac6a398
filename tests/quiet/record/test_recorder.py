"""A recorded machine plans as the machine itself does."""

from __future__ import annotations

import errno
import os
import resource
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from quiet.cli import json_output
from quiet.errors import QuietError, UsageError
from quiet.host.reader import Reader
from quiet.machine import virtualization
from quiet.machine.facts import Facts
from quiet.record.recorder import Recording, record
from quiet.settings.profile import load
from quiet.settings.status import status
from quiet.settings.verify import plan_now
from tests.quiet.boot.requests import make
from tests.quiet.commands import Quiet
from tests.quiet.kernels import tree
from tests.trees import hybrid, plant, sparse, task


def again(root: str, folder: Path, masked: bool = False) -> Path:
    """Record a root and unpack it."""
    file = folder / "recorded.tar.gz"
    assert record(Recording(root), str(file), masked).files > 0
    with tarfile.open(file) as tar:
        tar.extractall(folder / "again", filter="tar")
    return folder / "again"


def planned(root: Path, profile: str = "bench", cpus: str | None = None) -> dict[str, Any]:
    return json_output.plan(plan_now(Reader(str(root)), load(profile), cpus)[0], False)


def test_a_recorded_tree_gives_the_same_plan(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, task(20, "sshd", "0-3") | task(11, "cpuhp/3", "3", kernel=True, bound=True))
    managed = root / "proc/irq/1/smp_affinity_list"
    managed.chmod(0o444)
    assert planned(again(str(root), tmp_path)) == planned(root)


@pytest.mark.slow
@pytest.mark.parametrize("cpus", [None, "0", "1-2", "3"])
def test_masked_or_not_a_recording_gives_the_same_plan_for_any_cpus(tmp_path: Path, cpus: str | None) -> None:
    root = tree(tmp_path / "machine")
    plant(root, task(20, "joes-job", "0-3") | task(11, "rcuop/3", "0-3", kernel=True))
    plant(root, {f"sys/devices/system/cpu/cpu{n}/cpuidle/state1/disable": "0" for n in range(4)})
    found, made = (planned(place, cpus=cpus) for place in (root, again(str(root), tmp_path, masked=True)))
    for plan in (found, made):
        for change in plan["changes"]:
            change["why"] = change["why"].replace("joes-job", "task")
            change["label"] = change["label"] and change["label"].replace("joes-job", "task")
    assert made == found


@pytest.mark.slow
def test_the_same_host_gives_the_same_bytes(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    files = [tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"]
    for file in files:
        record(Recording(str(root)), str(file))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_files_that_are_only_listed_exist_in_the_recording(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, {"sys/bus/event_source/devices/cpu/type": "4", "sys/bus/event_source/devices/msr/type": "9"})
    copy = again(str(root), tmp_path)
    assert virtualization.performance_counters(Facts(Reader(str(copy)))) == ["cpu"]


def test_a_link_is_recorded_with_what_it_leads_to_and_stays_in_the_tree(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, {"usr/lib/systemd/system/cronie.service": "[Unit]", "etc/systemd/system/": ""})
    (root / "etc/systemd/system/crond.service").symlink_to("/usr/lib/systemd/system/cronie.service")
    reader = Recording(str(root))
    assert reader.link("/etc/systemd/system/crond.service") == "/usr/lib/systemd/system/cronie.service"
    record(reader, str(tmp_path / "a.tar.gz"))
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        tar.extractall(tmp_path / "again", filter="data")
    alias = tmp_path / "again/etc/systemd/system/crond.service"
    assert alias.resolve() == tmp_path / "again/usr/lib/systemd/system/cronie.service"
    assert alias.exists()


def test_boot_loader_files_are_recorded_and_other_files_on_disk_only_by_their_existence(
    tmp_path: Path,
) -> None:
    root = tree(tmp_path / "machine")
    plant(root, {"etc/debian_version": "12", "etc/default/grub": 'GRUB_CMDLINE_LINUX="quiet token=1"'})
    plant(root, {"etc/default/grub.d/": "", "boot/grub/grub.cfg": "menu", "boot/vmlinuz-6.12": "image"})
    plant(root, {"etc/systemd/system/crond.service": "Environment=TOKEN=hunter2"})
    reader = Recording(str(root))
    assert reader.exists("/etc/systemd/system/crond.service")
    record(reader, str(tmp_path / "a.tar.gz"))
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        tar.extractall(tmp_path / "again", filter="data")
    copy = tmp_path / "again"
    assert (copy / "etc/default/grub").read_text() == 'GRUB_CMDLINE_LINUX="quiet"\n'
    assert (copy / "etc/systemd/system/crond.service").read_text().strip() == ""
    made = [make(Reader(str(place)), load("bench")) for place in (root, copy)]
    assert made[0].loader.name == made[1].loader.name
    assert made[0].wanted == made[1].wanted


def test_half_an_archive_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("quiet.record.recorder._add", full)
    file = tmp_path / "mine.tar.gz"
    with pytest.raises(UsageError, match="No space left on device"):
        record(Recording(str(tree(tmp_path / "machine"))), str(file))
    assert not file.exists()


def test_an_archive_whose_last_block_does_not_fit_is_removed(tmp_path: Path) -> None:
    root, file = str(tree(tmp_path / "machine")), tmp_path / "mine.tar.gz"
    record(Recording(root), str(tmp_path / "whole.tar.gz"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "whole.tar.gz").stat().st_size - 1, limits[1]))
    try:
        with pytest.raises(UsageError, match="File too large"):
            record(Recording(root), str(file))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not file.exists()


def test_the_files_of_the_archive_are_counted(tmp_path: Path) -> None:
    done = record(Recording(str(tree(tmp_path / "machine"))), str(tmp_path / "mine.tar.gz"))
    with tarfile.open(tmp_path / "mine.tar.gz") as tar:
        assert done.files == sum(each.isfile() for each in tar)


def test_files_that_only_root_may_read_are_named_and_not_invented(quiet: Quiet, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = tree(Path(folder, "machine"))
            (root / "proc/sys/vm/stat_interval").chmod(0o200)
            done = quiet("record", Path(folder, "mine.tar.gz"), "--root", root, "--json")
            assert done.code == 0
            assert done.json["unreadable"] == ["/proc/sys/vm/stat_interval"]
            with tarfile.open(Path(folder, "mine.tar.gz")) as tar:
                assert "proc/sys/vm/stat_interval" not in tar.getnames()
    finally:
        if os.getuid() == 0:
            os.seteuid(0)


@pytest.mark.slow
def test_the_command_lists_the_omitted_data(quiet: Quiet, tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, {"proc/cmdline": "root=UUID=77 ro token=1"})
    done = quiet("record", tmp_path / "a.tar.gz", "--root", root)
    assert (done.code, "left out: names of tasks" in done.err) == (0, True)
    done = quiet("record", tmp_path / "b.tar.gz", "--root", root, "--unmasked")
    assert "left out: nothing" in done.err
    lines = {}
    for name in "ab":
        with tarfile.open(tmp_path / f"{name}.tar.gz") as tar:
            file = tar.extractfile("proc/cmdline")
            assert file is not None
            lines[name] = file.read().decode()
    assert lines == {"a": "root=masked ro\n", "b": "root=UUID=77 ro token=1\n"}


@pytest.mark.parametrize("files", [hybrid(), sparse()], ids=["hybrid", "sparse"])
def test_recorded_topologies_give_the_same_choice(tmp_path: Path, files: dict[str, str]) -> None:
    root = tree(tmp_path / "machine", files)
    assert planned(again(str(root), tmp_path))["cpus"] == planned(root)["cpus"]


@pytest.mark.slow
def test_a_tree_gives_the_same_plan_for_every_choice_of_every_knob(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    plant(root, {"sys/devices/system/cpu/smt/control": "on", "proc/sys/kernel/randomize_va_space": "2"})
    path = tmp_path / "other.toml"
    path.write_text('[knobs]\nsmt = "off"\naslr = "sysctl"\nthp = "never"\n"cpufreq.governor" = "all"\n')
    assert planned(again(str(root), tmp_path), str(path)) == planned(root, str(path))


@pytest.mark.slow
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
    with pytest.raises(UsageError, match="already exists; give another name"):
        record(Recording(str(tree(tmp_path / "machine"))), str(file))
    assert file.read_text() == "precious"


@pytest.mark.slow
def test_an_archive_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        record(Recording(str(tree(tmp_path / "machine"))), str(tmp_path / "none" / "x.tar.gz"))


def test_an_archive_needs_a_name(quiet: Quiet, tmp_path: Path) -> None:
    done = quiet("record", "", "--root", tree(tmp_path / "machine"))
    assert (done.code, done.err) == (
        2,
        "quiet: error: record: no file name; give the archive to write, such as myhost.tar.gz\n",
    )


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
    states = [status(Facts(Reader(str(place))), None) for place in (root, copy)]
    assert states[0] == states[1]
    assert states[1].kernel == "6.12.1"


def test_a_file_that_disappears_during_the_recording_is_omitted(
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
