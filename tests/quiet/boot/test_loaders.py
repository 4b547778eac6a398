"""Each boot loader, on machines made of its files: recognized, planned, applied and restored byte for byte."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from quiet.boot.loaders import registry
from quiet.boot.loaders.loader import BootFiles
from quiet.host.reader import Reader
from tests.quiet.boot.trees import NAMES, grow, states
from tests.quiet.commands import Quiet
from tests.trees import machine, plant

ALL = "isolcpus=managed_irq,2-3 nohz_full=2-3 irqaffinity=0-1 skew_tick=1"
LOADERS = {
    "arch": "systemd-boot",
    "coreos": "ostree",
    "debian": "grub",
    "debian-uboot": "extlinux",
    "extlinux": "extlinux",
    "fedora": "bls",
    "opensuse": "grub",
    "raspberry": "raspberry",
    "rhel-s390x": "bls",
    "ubuntu-s390x": "zipl",
    "unified": "systemd-boot",
}
FILES = {
    "arch": ["/boot/loader/entries/arch.conf"],
    "debian": ["/etc/default/grub.d/zz-quiet.cfg"],
    "debian-uboot": ["/etc/default/u-boot"],
    "extlinux": ["/boot/extlinux/extlinux.conf"],
    "opensuse": ["/etc/default/grub"],
    "raspberry": ["/boot/firmware/cmdline.txt"],
    "ubuntu-s390x": ["/etc/zipl.conf"],
    "unified": ["/etc/kernel/cmdline"],
}
COMMANDS = {
    "coreos": [
        "rpm-ostree kargs --delete-if-present=skew_tick=0 "
        + " ".join(f"--append-if-missing={word}" for word in ALL.split())
    ],
    "debian": ["update-grub"],
    "debian-uboot": ["u-boot-update"],
    "fedora": [f"grubby --update-kernel=ALL '--args={ALL}'"],
    "opensuse": ["grub2-mkconfig -o /boot/grub2/grub.cfg"],
    "rhel-s390x": [f"grubby --update-kernel=ALL '--args={ALL}'", "zipl"],
    "ubuntu-s390x": ["zipl"],
    "unified": ["kernel-install add 6.12.3 /usr/lib/modules/6.12.3/vmlinuz"],
}


def test_every_boot_loader_has_a_machine() -> None:
    assert sorted(LOADERS) == NAMES
    assert {loader.name for loader in registry.LOADERS} == set(LOADERS.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_says_loader_files_and_commands_and_writes_nothing(quiet: Quiet, tmp_path: Path, name: str) -> None:
    root = grow(name, tmp_path)
    found = states(root)
    made = quiet("boot", "plan", "--root", root, "--json").json
    assert made["loader"]["name"] == LOADERS[name]
    assert made["loader"]["found"]
    assert [file["path"] for file in made["files"]] == FILES.get(name, [])
    assert made["commands"] == COMMANDS.get(name, [])
    assert made["command_line"]["planned"] != made["command_line"]["configured"]
    assert all(file["diff"] for file in made["files"])
    assert states(root) == found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_applied_files_are_restored_with_bytes_modes_and_times(quiet: Quiet, tmp_path: Path, name: str) -> None:
    root = grow(name, tmp_path)
    found = states(root)
    done = quiet("boot", "apply", "--root", root, "--json").json
    assert done["not_run"] == COMMANDS.get(name, [])
    assert done["files"] == FILES.get(name, [])
    once = states(root)
    assert quiet("boot", "apply", "--root", root, "--json").json["files"] == []
    assert states(root) == once
    made = quiet("boot", "plan", "--root", root, "--json").json
    assert (made["settled"], made["in_force"]) == (True, False)
    quiet("boot", "apply", "--root", root, "--cpus", "2")
    assert quiet("boot", "plan", "--root", root, "--cpus", "2", "--json").json["settled"] is True
    assert quiet("boot", "remove", "--root", root).code == 0
    assert states(root) == found
    assert "contains nothing from quiet" in quiet("boot", "remove", "--root", root).out


@pytest.mark.parametrize("name", [name for name in NAMES if name in FILES])
def test_a_file_keeps_its_mode_while_it_is_changed(quiet: Quiet, tmp_path: Path, name: str) -> None:
    root = grow(name, tmp_path)
    path = root / FILES[name][0].lstrip("/")
    mode = path.stat().st_mode if path.exists() else 0o100644
    quiet("boot", "apply", "--root", root)
    assert path.stat().st_mode == mode


@pytest.mark.parametrize("name", ["debian", "debian-uboot", "raspberry"])
def test_only_the_last_choice_is_in_effect(quiet: Quiet, tmp_path: Path, name: str) -> None:
    one, two = grow(name, tmp_path / "one"), grow(name, tmp_path / "two")
    quiet("boot", "apply", "--root", one, "--cpus", "1-3")
    quiet("boot", "apply", "--root", one, "--cpus", "3")
    quiet("boot", "apply", "--root", two, "--cpus", "3")
    for path in FILES.get(name, []):
        assert (one / path.lstrip("/")).read_text() == (two / path.lstrip("/")).read_text()


def test_entries_for_repairs_stay_as_they_are(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("arch", tmp_path)
    quiet("boot", "apply", "--root", root)
    entries = root / "boot/loader/entries"
    assert "isolcpus" not in (entries / "arch-fallback.conf").read_text()
    assert (entries / "arch.conf").read_text().splitlines()[-2:] == [
        "options root=PARTUUID=0b0b rw",
        f"options quiet {ALL}",
    ]


def test_without_grubby_the_entries_themselves_get_the_words(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("fedora", tmp_path)
    (root / "usr/sbin/grubby").unlink()
    found = states(root)
    entry = next((root / "boot/loader/entries").iterdir())
    assert quiet("boot", "apply", "--root", root, "--json").json["loader"] == "bls"
    assert f"rhgb quiet {ALL}\n" in entry.read_text()
    quiet("boot", "remove", "--root", root)
    assert states(root) == found
    entry.write_text("options $kernelopts\n")
    done = quiet("boot", "plan", "--root", root)
    assert (done.code, done.err.count("install grubby")) == (3, 1)


def test_init_keeps_its_words_and_each_label_gets_its_missing_words(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("extlinux", tmp_path)
    quiet("boot", "apply", "--root", root)
    lines = [line for line in (root / "boot/extlinux/extlinux.conf").read_text().splitlines() if "APPEND" in line]
    assert lines[0].endswith(f"rw rootwait {ALL}")
    assert lines[1].endswith(f"rw rootwait skew_tick=1 {ALL.removesuffix(' skew_tick=1')} -- single")


def test_the_line_of_a_raspberry_stays_one_line(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("raspberry", tmp_path)
    quiet("boot", "apply", "--root", root)
    text = (root / "boot/firmware/cmdline.txt").read_text()
    assert text.count("\n") == 1
    # isolcpus=3 stands there: the CPU that was chosen, and it means domain
    whole = "isolcpus=managed_irq,domain,3 nohz_full=3 irqaffinity=0-2 skew_tick=1"
    assert text.endswith(f"fsck.repair=yes rootwait {whole}\n")


def test_one_of_several_boot_loaders_can_be_named(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("fedora", tmp_path)
    made = quiet("boot", "plan", "--root", root, "--loader", "grub", "--json").json
    assert (made["loader"]["name"], made["loader"]["others"]) == ("grub", ["bls"])
    done = quiet("boot", "plan", "--root", root, "--loader", "zipl")
    assert done.code == 3
    assert done.err == "quiet: error: --loader zipl: not detected here; omit --loader, or name another boot loader\n"
    done = quiet("boot", "plan", "--root", root, "--loader", "lilo")
    assert done.code == 2
    assert "no such boot loader; known boot loaders: ostree" in done.err


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no supported boot loader"),
        ({".dockerenv": ""}, "a container uses the kernel and the command line of its host"),
        ({"proc/version": "Linux version 5.15 (Microsoft@Microsoft.com)"}, "WSL has no boot loader;"),
    ],
)
def test_where_there_is_none_the_reason_is_reported(
    quiet: Quiet, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    done = quiet("boot", "plan", "--root", plant(tmp_path, machine(4) | files))
    assert done.code == 3
    assert said in done.err
    assert done.err.count("\n") == 1


def test_a_grub_cfg_on_the_efi_partition_that_only_points_elsewhere_is_not_the_menu(tmp_path: Path) -> None:
    root = grow("opensuse", tmp_path)
    plant(root, {"boot/efi/EFI/opensuse/grub.cfg": "configfile $prefix/grub.cfg"})
    found = next(loader for loader in registry.LOADERS if loader.name == "grub").found(BootFiles(Reader(str(root))))
    assert found == "/etc/default/grub and /boot/grub2/grub.cfg exist"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_recording_of_a_machine_plans_as_the_machine_does(quiet: Quiet, tmp_path: Path, name: str) -> None:
    root = grow(name, tmp_path / "machine")
    quiet("record", tmp_path / "it.tar.gz", "--root", root, "--unmasked")
    with tarfile.open(tmp_path / "it.tar.gz") as tar:
        tar.extractall(tmp_path / "copy", filter="data")
    original, copy = (quiet("boot", "plan", "--root", place, "--json").json for place in (root, tmp_path / "copy"))
    assert copy["loader"] == original["loader"]
    assert copy["command_line"] == original["command_line"]
    assert copy["commands"] == original["commands"]
