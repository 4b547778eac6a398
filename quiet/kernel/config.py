"""Find and read the configuration of a kernel.

The kernel itself provides it if CONFIG_IKCONFIG_PROC is set; distributions install it in other places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from quiet.errors import UsageError
from quiet.host.reader import Reader

_LINE = re.compile(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)$", re.MULTILINE)
_GZIP = b"\x1f\x8b"
_MOST = 16 << 20  # maximum size in bytes, after decompression; a distribution's configuration has 300 KB
_ARCHITECTURES = {"CONFIG_X86": "x86", "CONFIG_ARM64": "arm64"}


class Config(NamedTuple):
    """A kernel's options. `source`: the file that contains them, "" if there is none."""

    source: str
    values: Mapping[str, str] = {}

    @property
    def architecture(self) -> str:
        """The architecture: "x86", "arm64", or "" for any other."""
        return next((name for option, name in _ARCHITECTURES.items() if self.values.get(option) == "y"), "")


def running(reader: Reader) -> Config:
    """The running kernel's configuration, from the kernel itself or from the file that the distribution installs.

    Without a readable configuration, `source` is "" and `values` is empty.
    """
    version = reader.text("/proc/sys/kernel/osrelease") or ""
    for path in (
        "/proc/config.gz",
        f"/boot/config-{version}",
        f"/lib/modules/{version}/config",
        f"/usr/lib/modules/{version}/config",
        f"/usr/lib/kernel/config-{version}",
        f"/usr/src/linux-headers-{version}/.config",
    ):
        if values := _read(reader, path):
            return Config(path, values)
    return Config("")


def of_file(path: str) -> Config:
    """The configuration in a file, which may be compressed by gzip. Raises UsageError."""
    try:
        values = _values(b"".join(Reader().pages(path)))
    except FileNotFoundError:
        raise UsageError(f"--config {path}: no such file") from None
    except OSError as error:
        raise UsageError(f"--config {path}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--config {path}: {error}") from None
    if not values:
        raise UsageError(
            f"--config {path}: no line CONFIG_...=; give the configuration of a kernel, such as /boot/config-VERSION"
        )
    return Config(path, values)


def parse(text: str) -> dict[str, str]:
    """Parse a configuration: {"CONFIG_SMP": "y", ...}; the value is "n" if an option is not set."""
    return {name or off: value if name else "n" for name, value, off in _LINE.findall(text)}


def _read(reader: Reader, path: str) -> dict[str, str]:
    try:
        return _values(reader.data(path))
    except (OSError, ValueError):
        return {}


def _values(data: bytes) -> dict[str, str]:
    """The options in the content of a file. Raises ValueError if its gzip data is damaged, or if it is too large."""
    if data.startswith(_GZIP):
        import zlib

        unpacker = zlib.decompressobj(wbits=31)
        try:
            data = unpacker.decompress(data, _MOST + 1)
        except zlib.error:
            data = b""
        if len(data) <= _MOST and not unpacker.eof:
            raise ValueError("the gzip data is damaged; copy the file again, or give an uncompressed one")
    if len(data) > _MOST:
        raise ValueError(f"larger than {_MOST >> 20} MiB, so it is not the configuration of a kernel")
    return parse(data.decode("utf-8", "replace"))
