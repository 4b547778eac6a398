"""Where the running kernel's image and initrd lie: distributions name them differently."""

from __future__ import annotations

from quiet.boot.words import parse, value
from quiet.errors import Refused
from quiet.facts import Facts
from quiet.host import Reader

# {release} is `uname -r`, {token} the entry's folder of kernel-install (kernel-install(8), "entry token")
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
# names without a release: the boot loader's word, then Arch's and the Raspberry Pi's
_UNNUMBERED = ("/boot/vmlinuz-linux", "/boot/firmware/kernel8.img", "/boot/kernel8.img", "/boot/vmlinuz", "/boot/Image")
_BY_INITRD = ("UUID=", "LABEL=", "/dev/mapper/", "ZFS=")


def kernel(facts: Facts) -> str:
    """The path of the running kernel's image. Raises Refused when it is not found."""
    reader = facts.reader
    release = reader.text("/proc/sys/kernel/osrelease") or ""
    for path in (*_named(_KERNELS, reader, release), *_booted(facts), *_UNNUMBERED):
        if reader.exists(path):
            return path
    raise Refused(f"the image of the running kernel {release} was not found in /boot; give it with --kernel FILE")


def initrd(facts: Facts, image: str) -> str:
    """The path of the initrd that goes with an image; "" when there is none and the root needs none.

    Raises Refused when the root cannot be found by the kernel alone.
    """
    reader = facts.reader
    release = reader.text("/proc/sys/kernel/osrelease") or ""
    folder, _, name = image.rpartition("/")
    tail = name.removeprefix("vmlinuz")  # "-linux" of Arch's vmlinuz-linux
    paths = _named(_INITRDS, reader, release)
    paths += [f"{folder}/initrd.img{tail}", f"{folder}/initramfs{tail}.img", f"{folder}/initrd{tail}"]
    paths += [f"{folder}/initramfs8"] if name == "kernel8.img" else []
    for path in paths:
        if reader.exists(path):
            return path
    root = next((value(word) or "" for word in parse(facts.command_line).of("root")), "")
    if root.startswith(_BY_INITRD):
        raise Refused(f"no initrd was found beside {image}, and root={root} needs one; give it with --initrd FILE")
    return ""


def _named(patterns: tuple[str, ...], reader: Reader, release: str) -> list[str]:
    token = reader.text("/etc/kernel/entry-token") or reader.text("/etc/machine-id") or "none"
    return [pattern.format(release=release, token=token) for pattern in patterns]


def _booted(facts: Facts) -> list[str]:
    """BOOT_IMAGE= as GRUB says it: "(hd0,gpt2)/vmlinuz-6.12", seen from its own partition."""
    paths = [value(word) or "" for word in parse(facts.command_line).of("BOOT_IMAGE")]
    paths = [path.rpartition(")")[2] for path in paths]
    return [whole for path in paths if path.startswith("/") for whole in (path, f"/boot{path}")]
