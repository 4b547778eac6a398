"""Find the running kernel's image and initrd, which distributions name differently.

If the file name does not contain the release, the target of a symbolic link or the header of an x86 image may contain
it (kernel document arch/x86/boot, kernel_version). An image that is known to have another release is never used: with
the wrong drivers in its initrd, a kernel cannot mount the root file system.
"""

from __future__ import annotations

import os
import re

from quiet.boot.parameters.cmdline import parse, value
from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine.facts import Facts

# {release} is `uname -r`; {token} is the directory of kernel-install's entries (kernel-install(8), "entry token")
_KERNELS = (
    "/boot/vmlinuz-{release}",
    "/boot/vmlinux-{release}",
    "/boot/Image-{release}",
    "/boot/image-{release}",
    "/boot/kernel-{release}",
    "/boot/{token}/{release}/linux",
    "/efi/{token}/{release}/linux",
    "/boot/efi/{token}/{release}/linux",
    "/lib/modules/{release}/vmlinuz",
    "/usr/lib/modules/{release}/vmlinuz",
    "/lib/modules/{release}/Image",
)
_INITRDS = (
    "/boot/initrd.img-{release}",
    "/boot/initramfs-{release}.img",
    "/boot/initrd-{release}",
    "/boot/initramfs-{release}",
    "/boot/{token}/{release}/initrd",
    "/efi/{token}/{release}/initrd",
    "/boot/efi/{token}/{release}/initrd",
    "/usr/lib/modules/{release}/initramfs.img",
    "/lib/modules/{release}/initrd",
)
# names without a release: first the Raspberry Pi's, then the names on systems with a single kernel
_UNNUMBERED = (
    *("/boot/firmware/kernel8.img", "/boot/kernel8.img", "/boot/vmlinuz-linux", "/boot/vmlinuz", "/boot/Image"),
)
_PI5 = ("/boot/firmware/kernel_2712.img", "/boot/kernel_2712.img")
_MOUNTS = ("", "/boot", "/efi", "/boot/efi")  # possible mount points of the partition with the boot loader's files
_BY_INITRD = ("UUID=", "LABEL=", "/dev/mapper/", "ZFS=")


def kernel(facts: Facts) -> str:
    """The path of the running kernel's image. Raises Refused if its release is unknown or no image is found."""
    reader = facts.reader
    release = _running(reader)
    if not release:
        raise Refused("the release of the running kernel is unknown here; give its image with --kernel FILE")
    booted = _booted(facts) or _beside_initrd(facts)  # the image that was started
    guessed: list[str] = [*(_PI5 if release.endswith("2712") else _UNNUMBERED)]
    others = ""
    for path in [*_named(_KERNELS, reader, release), *(booted or guessed)]:
        if reader.exists(path):
            other = _release(reader, path)
            if other in ("", release):
                return path
            others = f" ({path} is the image of {other})"
    raise Refused(f"the image of the running kernel {release} was not found{others}; give it with --kernel FILE")


def initrd(facts: Facts, image: str) -> str:
    """The path of the initrd that belongs to an image; "" if there is none and the root file system needs none.

    Raises Refused if no initrd is found although root= requires one, or if another initrd may belong to the image.
    """
    reader = facts.reader
    release = _running(reader)
    folder, _, name = image.rpartition("/")
    tail = name.removeprefix("vmlinuz")  # "-linux" of Arch's vmlinuz-linux
    numbered = bool(release) and image in _named(_KERNELS, reader, release)
    paths = []
    if numbered or image in _booted(facts) or _release(reader, image) == release != "":
        package = reader.text(f"/usr/lib/modules/{release}/pkgbase")  # on Arch
        paths = [*_given(facts), *_named(_INITRDS, reader, release)]
        paths += [f"/boot/initramfs-{package}.img"] if package else []
    paths += [f"{folder}/initrd.img{tail}", f"{folder}/initramfs{tail}.img", f"{folder}/initrd{tail}"]
    paths += [f"{folder}/initramfs{pi}" for pi in ("8", "_2712") if name == f"kernel{pi}.img"]
    for path in paths:
        if reader.exists(path):
            return path
    _check_none(facts, image, numbered and folder.startswith("/boot"))
    return ""


def _check_none(facts: Facts, image: str, plain: bool) -> None:
    """Raise Refused if the image may need an initrd that was not found.

    `plain`: the image is in /boot under a known name, so its initrd would be beside it.
    """
    line = parse(facts.command_line)
    root = next((value(word) or "" for word in line.of("root")), "")
    if root.startswith(_BY_INITRD):
        raise Refused(f"no initrd was found beside {image}, and root={root} needs one; give it with --initrd FILE")
    there = [f"/boot/{name}" for name in facts.reader.names("/boot") if name.startswith("init")]
    if (given := line.of("initrd")) or (there and not plain):
        why = f"the running kernel was booted with {given[-1]}" if given else f"{there[0]} exists"
        raise Refused(f"the initrd of {image} is ambiguous: {why}; give --initrd FILE, or --initrd '' for none")


def _running(reader: Reader) -> str:
    return reader.text("/proc/sys/kernel/osrelease") or ""


def _release(reader: Reader, image: str) -> str:
    """The release of an image, from the target of its link or from the x86 header; "" if neither contains a release."""
    linked = re.search(r"-(\d+\.\d.*)", os.path.basename(reader.link(image) or ""))
    if linked:
        return linked[1]
    header = reader.at(image, 0x202, 14) or b""
    if not header.startswith(b"HdrS"):
        return ""
    text = reader.at(image, 0x200 + int.from_bytes(header[12:], "little"), 128) or b""
    return text.partition(b"\0")[0].partition(b" ")[0].decode("ascii", "replace")


def _named(patterns: tuple[str, ...], reader: Reader, release: str) -> list[str]:
    token = reader.text("/etc/kernel/entry-token") or reader.text("/etc/machine-id") or "none"
    return [pattern.format(release=release, token=token) for pattern in patterns]


def _booted(facts: Facts) -> list[str]:
    """The possible paths of BOOT_IMAGE=, which GRUB writes relative to a partition: "(hd0,gpt2)/vmlinuz-6.12"."""
    paths = [value(word) or "" for word in parse(facts.command_line).of("BOOT_IMAGE")]
    paths = [path.rpartition(")")[2] for path in paths]
    return [whole for path in paths if path.startswith("/") for whole in (path, f"/boot{path}")]


def _given(facts: Facts) -> list[str]:
    """The possible paths of initrd= in the notation of the kernel's EFI stub ("\\initramfs-linux.img"), microcode
    excluded.
    """
    words = [(value(word) or "").replace("\\", "/").lstrip("/") for word in parse(facts.command_line).of("initrd")]
    return [f"{mount}/{path}" for path in reversed(words) if path and "ucode" not in path for mount in _MOUNTS]


def _beside_initrd(facts: Facts) -> list[str]:
    """The images that match initrd= by Arch's naming scheme: "/boot/vmlinuz-linux-lts" for
    "/boot/initramfs-linux-lts.img".
    """
    images = []
    for path in _given(facts):
        folder, _, name = path.rpartition("/")
        if name.startswith("initramfs-") and name.endswith(".img"):
            images.append(f"{folder}/vmlinuz{name.removeprefix('initramfs')[:-4].removesuffix('-fallback')}")
    return images
