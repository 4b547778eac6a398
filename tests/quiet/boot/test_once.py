"""One boot by kexec: which image, which line, and where it is refused. Nothing is loaded here: the lab does that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.quiet.boot.trees import grow
from tests.quiet.commands import Quiet
from tests.trees import plant

ALL = "isolcpus=managed_irq,2-3 nohz_full=2-3 irqaffinity=0-1 skew_tick=1"
IMAGES = {
    "arch": ("/boot/vmlinuz-linux", "/boot/initramfs-linux.img"),
    "debian": ("/boot/vmlinuz-6.1.0-21-amd64", "/boot/initrd.img-6.1.0-21-amd64"),
    "fedora": (
        "/boot/vmlinuz-6.12.5-200.fc41.x86_64",
        "/boot/initramfs-6.12.5-200.fc41.x86_64.img",
    ),
    "opensuse": ("/boot/vmlinuz-6.4.0-150600-default", "/boot/initrd-6.4.0-150600-default"),
    "ubuntu-s390x": ("/boot/vmlinuz", "/boot/initrd.img"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_image_and_initrd_are_found_by_each_distributions_names(quiet: Quiet, tmp_path: Path, name: str) -> None:
    made = quiet("boot", "once", "--root", grow(name, tmp_path), "--json").json
    assert (made["kernel"], made["initrd"]) == IMAGES[name]
    assert made["command_line"].endswith(ALL)
    assert (made["loaded"], made["starting"]) == (False, False)


@pytest.mark.parametrize(
    ("files", "kernel"),
    [
        ({"lib/modules/7.1/vmlinuz": ""}, "/lib/modules/7.1/vmlinuz"),
        ({"boot/abc/7.1/linux": "", "etc/machine-id": "abc"}, "/boot/abc/7.1/linux"),
        ({"boot/efi/mine/7.1/linux": "", "etc/kernel/entry-token": "mine"}, "/boot/efi/mine/7.1/linux"),
        ({"boot/kernel": "", "proc/cmdline": "BOOT_IMAGE=(hd0,gpt2)/kernel root=/dev/vda"}, "/boot/kernel"),
        ({"boot/Image": ""}, "/boot/Image"),
    ],
)
def test_an_image_elsewhere_is_found_too(quiet: Quiet, tmp_path: Path, files: dict[str, str], kernel: str) -> None:
    root = grow("extlinux", tmp_path)
    (root / "boot/Image").unlink()
    base = {"proc/sys/kernel/osrelease": "7.1", "proc/sys/kernel/kexec_load_disabled": "0"}
    made = quiet("boot", "once", "--root", plant(root, base | files), "--json").json
    assert (made["kernel"], made["initrd"]) == (kernel, None)


ARCH = "usr/lib/modules/6.12.4-arch1-1"
PACKAGE = {f"{ARCH}/vmlinuz": "", f"{ARCH}/pkgbase": "linux"}  # as on every Arch
LTS = {"boot/vmlinuz-linux-lts": "", "boot/initramfs-linux-lts.img": "", "proc/sys/kernel/osrelease": "6.6.63-1-lts"}


def image(release: str) -> bytes:
    """The head of an x86 image, with its release where the header says."""
    text = release.encode() + b" (builder@host) #1 SMP"
    return bytes(0x202) + b"HdrS" + bytes(8) + (0x200).to_bytes(2, "little") + bytes(0x400 - 0x210) + text + bytes(256)


@pytest.mark.parametrize("root", ["UUID=1", "PARTUUID=1", "/dev/nvme0n1p2"])
@pytest.mark.parametrize("boot", [r"initrd=\initramfs-linux.img", "BOOT_IMAGE=/boot/vmlinuz-linux"])
def test_an_image_beside_its_modules_has_the_initrd_of_its_package(
    quiet: Quiet, tmp_path: Path, root: str, boot: str
) -> None:
    tree = plant(grow("arch", tmp_path), PACKAGE | {"proc/cmdline": f"{boot} root={root} rw"})
    made = quiet("boot", "once", "--root", tree, "--json").json
    assert (made["kernel"], made["initrd"]) == (f"/{ARCH}/vmlinuz", "/boot/initramfs-linux.img")


@pytest.mark.parametrize("name", ["initramfs-linux-lts.img", "initramfs-linux-lts-fallback.img"])
def test_of_two_kernels_it_is_the_one_whose_initrd_was_given(quiet: Quiet, tmp_path: Path, name: str) -> None:
    line = rf"initrd=\intel-ucode.img initrd=\{name} root=UUID=1 rw"
    made = quiet("boot", "once", "--root", plant(grow("arch", tmp_path), LTS | {"proc/cmdline": line}), "--json").json
    assert (made["kernel"], made["initrd"]) == ("/boot/vmlinuz-linux-lts", "/boot/initramfs-linux-lts.img")


def test_an_initrd_that_was_given_is_looked_for_on_each_partition(quiet: Quiet, tmp_path: Path) -> None:
    files = {f"{ARCH}/vmlinuz": "", "efi/mine/ram.img": "", "proc/cmdline": r"initrd=\mine\ram.img root=/dev/vda"}
    made = quiet("boot", "once", "--root", plant(grow("arch", tmp_path), files), "--json").json
    assert made["initrd"] == "/efi/mine/ram.img"


def test_the_newer_pi_has_its_own_names(quiet: Quiet, tmp_path: Path) -> None:
    files = {"boot/firmware/kernel_2712.img": "", "boot/firmware/initramfs_2712": ""}
    files |= {"proc/sys/kernel/osrelease": "6.6.31+rpt-rpi-2712", "proc/sys/kernel/kexec_load_disabled": "0"}
    made = quiet("boot", "once", "--root", plant(grow("raspberry", tmp_path), files), "--json").json
    assert (made["kernel"], made["initrd"]) == ("/boot/firmware/kernel_2712.img", "/boot/firmware/initramfs_2712")


def test_an_image_of_another_release_is_not_the_running_one(quiet: Quiet, tmp_path: Path) -> None:
    tree = grow("arch", tmp_path)
    (tree / "boot/vmlinuz-linux").write_bytes(image("6.13.1-arch1-1"))
    done = quiet("boot", "once", "--root", tree)
    assert (done.code, "(/boot/vmlinuz-linux is the image of 6.13.1-arch1-1); give it with" in done.err) == (3, True)
    (tree / "boot/vmlinuz-linux").write_bytes(image("6.12.4-arch1-1"))
    assert quiet("boot", "once", "--root", tree, "--json").json["kernel"] == "/boot/vmlinuz-linux"


def test_a_linked_or_unstarted_image_is_not_the_running_one(quiet: Quiet, tmp_path: Path) -> None:
    tree = grow("debian", tmp_path)
    (tree / "boot/vmlinuz-6.1.0-21-amd64").rename(tree / "boot/vmlinuz-6.1.0-22-amd64")
    (tree / "boot/vmlinuz").symlink_to("vmlinuz-6.1.0-22-amd64")
    for line in ("root=UUID=1 ro", "BOOT_IMAGE=/vmlinuz-other root=/dev/sda1 ro"):
        plant(tree, {"proc/cmdline": line})
        assert (
            "the image of the running kernel 6.1.0-21-amd64 was not found" in quiet("boot", "once", "--root", tree).err
        )


def test_an_image_given_by_hand_does_not_get_the_running_kernels_initrd(quiet: Quiet, tmp_path: Path) -> None:
    files = {"boot/vmlinuz-6.9": "", "proc/cmdline": "root=/dev/sda1 ro"}
    tree = plant(grow("debian", tmp_path), files)
    done = quiet("boot", "once", "--root", tree, "--kernel", "/boot/vmlinuz-6.9")
    assert (done.code, "the initrd of /boot/vmlinuz-6.9 is ambiguous" in done.err) == (3, True)
    done = quiet("boot", "once", "--root", tree, "--kernel", "/boot/vmlinuz-6.9", "--initrd", "", "--json")
    assert done.json["initrd"] is None


def test_with_kexec_tools_and_systemd_the_shutdown_is_clean(quiet: Quiet, tmp_path: Path) -> None:
    made = quiet("boot", "once", "--root", grow("debian", tmp_path), "--json").json
    kernel, initrd = IMAGES["debian"]
    assert made["load"].startswith(f"/usr/sbin/kexec -a -l {kernel} --initrd={initrd} '--command-line=BOOT_IMAGE=")
    assert made["start"] == "systemctl kexec"


def test_without_kexec_tools_the_system_calls_are_used(quiet: Quiet, tmp_path: Path) -> None:
    made = quiet("boot", "once", "--root", grow("opensuse", tmp_path), "--json").json
    assert (made["load"], made["start"]) == ("kexec_file_load", "reboot")


def test_without_systemd_kexec_tools_start_the_kernel(quiet: Quiet, tmp_path: Path) -> None:
    made = quiet("boot", "once", "--root", grow("fedora", tmp_path), "--json").json
    assert made["start"] == "/usr/bin/kexec -e"


def test_words_added_by_boot_apply_are_not_added_again(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("debian", tmp_path)
    quiet("boot", "apply", "--root", root)
    line = (root / "proc/cmdline").read_text().strip()
    (root / "proc/cmdline").write_text(f"{line} {ALL}\n")
    made = quiet("boot", "once", "--root", root, "--cpus", "1", "--json").json
    assert "nohz_full=1 " in made["command_line"]
    assert "2-3" not in made["command_line"].replace("irqaffinity=0,2-3", "")
    assert quiet("boot", "once", "--root", root, "--json").json["settled"] is False


def test_a_kernel_that_already_has_all_words_is_not_started_again(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("debian", tmp_path)
    line = (root / "proc/cmdline").read_text().strip()
    (root / "proc/cmdline").write_text(f"{line} {ALL}\n")
    assert "the running kernel already has these parameters" in quiet("boot", "once", "--root", root).out


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"proc/sys/kernel/kexec_load_disabled": "1"}, "kernel.kexec_load_disabled is 1 until the next reboot"),
        ({"proc/sys/kernel/kexec_load_disabled": None}, "this kernel was built without kexec"),
        ({"sys/kernel/security/lockdown": "none [integrity] confidentiality"}, "lockdown (integrity) forbids kexec"),
        ({"boot/vmlinuz-6.1.0-21-amd64": None}, "the image of the running kernel 6.1.0-21-amd64 was not found"),
        ({"boot/initrd.img-6.1.0-21-amd64": None}, "root=UUID=0b0b needs one; give it with --initrd FILE"),
        (
            {"proc/sys/kernel/osrelease": None},
            "the release of the running kernel is unknown here; give its image with",
        ),
        (
            {"boot/initrd.img-6.1.0-21-amd64": None, "proc/cmdline": "initrd=/ram.img root=/dev/vda"},
            "the running kernel was booted with initrd=/ram.img; give --initrd FILE, or --initrd '' for none",
        ),
        ({"proc/cmdline": "root=/dev/vda " + "x" * 2000}, "longer than the 2047 bytes"),
    ],
)
def test_if_kexec_is_impossible_one_line_says_why(
    quiet: Quiet, tmp_path: Path, files: dict[str, str | None], said: str
) -> None:
    root = grow("debian", tmp_path)
    for path, text in files.items():
        (root / path).unlink() if text is None else plant(root, {path: text})
    done = quiet("boot", "once", "--root", root)
    assert (done.code, done.out) == (3, "")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_lockdown_lets_a_kernel_that_checks_signatures_try(quiet: Quiet, tmp_path: Path) -> None:
    files = {
        "sys/kernel/security/lockdown": "none [integrity] confidentiality",
        "boot/config-6.1.0-21-amd64": "CONFIG_KEXEC_FILE=y\nCONFIG_KEXEC_SIG=y",
    }
    done = quiet("boot", "once", "--root", plant(grow("debian", tmp_path), files), "--json")
    assert done.json["load"].startswith("/usr/sbin/kexec -a -l")


def test_a_named_but_missing_file_is_wrong_usage(quiet: Quiet, tmp_path: Path) -> None:
    done = quiet("boot", "once", "--root", grow("debian", tmp_path), "--kernel", "/boot/none")
    assert (done.code, done.err) == (2, "quiet: error: --kernel /boot/none: no such file\n")
