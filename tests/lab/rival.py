"""rtla, the kernel's own noise analyser, for guests to compare with: Debian's package, unpacked into the cache."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.lab import cache, debian

PACKAGES = ["rtla", "libtracefs1", "libtraceevent1"]


def environment() -> dict[str, str]:
    """What a guest's script sets to find it. PackageError when it cannot be fetched."""
    root = cache.make(cache.cache_dir() / "rivals" / "rtla", _fetch)
    return {"RTLA": str(root / "usr/bin"), "RTLA_LIBRARIES": str(root / "usr/lib/x86_64-linux-gnu")}


def _fetch(made: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=made.parent) as temporary:
        debian.download(PACKAGES, Path(temporary))
        debian.unpack(Path(temporary), made)
