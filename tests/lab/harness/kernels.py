"""Kernels to boot: Debian's own packages, unpacked (never installed) into a cache outside the checkout.

`python -m tests.lab.harness.kernels 6.12 6.1 6.1-arm64` puts these into the cache, unless they are there. The lab's own
kernel is there when it was built: `make kernel`.
"""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quiet.kernel import fragments
from tests.lab.harness import debian
from tests.lab.harness.cache import cache_dir
from tests.lab.harness.debian import PackageError

# Package name patterns by series, in order of preference; group 1 is the kernel's version. Only signed
# packages, which are those that users boot: "-unsigned", "-cloud", "-rt" and "-dbg" do not fit the pattern.
PATTERNS = {
    "6.1": [r"linux-image-(6\.1\.\d+-\d+-amd64)"],
    "6.12": [r"linux-image-(6\.12\.\d+\+deb1\d-amd64)", r"linux-image-(6\.12\.\d+-\d+-amd64)"],
    "7.3": [r"linux-image-(7\.3\.\d+\+deb1\d-amd64)"],
    "6.1-arm64": [r"linux-image-(6\.1\.\d+-\d+-arm64)"],
    "6.12-arm64": [r"linux-image-(6\.12\.\d+\+deb1\d-arm64)", r"linux-image-(6\.12\.\d+-\d+-arm64)"],
    "any": [r"linux-image-unsigned-(\d+\.\d+\.\d+-\d+-generic)"],
}
SUITES = {"7.3": debian.NEWEST_SUITE}  # of a series that this machine's own sources need not have
OWN = "own"
OWN_FRAGMENTS = (*fragments.NAMES, fragments.LAB)  # a later one has the last word


class KernelError(PackageError):
    """One line: why there is no kernel of that series."""


@dataclass(frozen=True)
class Kernel:
    version: str
    root: Path  # holds boot/vmlinuz-VERSION and lib/modules/VERSION

    @property
    def image(self) -> Path:
        return self.root / "boot" / f"vmlinuz-{self.version}"


def own_tag() -> str:
    """The suffix of the own kernel's version: different if a line that is not a comment differs."""
    settings = "".join(f"{option.name}={option.wanted}\n" for option in fragments.load(OWN_FRAGMENTS))
    return f"own-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"


def _newest(names: list[str]) -> str:
    return max(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


def cached(series: str) -> Kernel | None:
    """The newest kernel of the series that is already unpacked."""
    patterns = {**PATTERNS, OWN: [rf"(\d+\.\d+\.\d+-{own_tag()})"]}
    if series not in patterns:
        raise KernelError(f"unknown kernel series {series!r}; known: {', '.join(patterns)}")
    folder = cache_dir() / "kernels"
    versions = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    for pattern in patterns[series]:
        version_pattern = pattern[pattern.index("(") :]
        if found := [version for version in versions if re.fullmatch(version_pattern, version)]:
            version = _newest(found)
            return Kernel(version, folder / version)
    return None


def ensure(series: str) -> Kernel:
    """A kernel of the series: cached, or fetched with apt and unpacked. KernelError when neither works."""
    if kernel := cached(series):
        return kernel
    if series == OWN:
        raise KernelError("the lab's own kernel is not built: `make kernel` builds it (under 40 minutes)")
    for tool in ("apt-get", "apt-cache", "dpkg-deb", "depmod"):
        if not shutil.which(tool, path=debian.search_path()):
            raise KernelError(f"no kernel {series} in the cache, and no {tool} to fetch one with")
    arch = debian.ARM if series.endswith("-arm64") else debian.NATIVE
    try:
        return _fetch(series, arch)
    except KernelError:
        raise
    except PackageError as error:
        raise KernelError(str(error)) from None


def _fetch(series: str, arch: str) -> Kernel:
    version, packages = _packages(series, arch)
    folder = cache_dir() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    # Unpacked beside its final place and then renamed: half a kernel is never found in the cache.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary:
        root = Path(temporary) / "root"
        unpack(packages, Path(temporary), root, arch, SUITES.get(series, ""))
        if (root / "usr/lib/modules").is_dir() and not (root / "lib").exists():
            (root / "lib").symlink_to("usr/lib")
        beside = root / "lib/modules" / version / "vmlinuz"  # where newer packages have it
        if beside.is_file():
            (root / "boot").mkdir(exist_ok=True)
            beside.rename(root / "boot" / f"vmlinuz-{version}")
        if not (root / "boot" / f"vmlinuz-{version}").is_file():
            raise KernelError(f"{packages[0]} holds no boot/vmlinuz-{version}")
        debian.run(["depmod", "-b", str(root), version])
        try:
            root.rename(folder / version)
        except OSError:
            if not (folder / version).is_dir():  # another process was faster: its directory is as good
                raise
    return Kernel(version, folder / version)


def _packages(series: str, arch: str) -> tuple[str, list[str]]:
    known = debian.names("linux-", arch, SUITES.get(series, ""))
    names = [name for name in known if name.startswith("linux-image-")]
    for pattern in PATTERNS[series]:
        if found := [name for name in names if re.fullmatch(pattern, name)]:
            name = _newest(found)
            match = re.fullmatch(pattern, name)
            assert match is not None
            version = match[1]
            # Ubuntu's, and newer ones of Debian's: the image and the modules are separate packages.
            parts = [part for part in ("linux-binary-", "linux-modules-") if f"{part}{version}" in known]
            return version, [name, *(f"{part}{version}" for part in parts)]
    raise KernelError(f"apt knows no kernel package of series {series} (is its list of packages up to date?)")


def unpack(packages: list[str], folder: Path, root: Path, arch: str = debian.NATIVE, suite: str = "") -> None:
    """Fetch Debian packages into a directory and unpack them, not installed, under a root."""
    debian.download(packages, folder, arch, suite)
    debian.unpack(folder, root)


def modules(kernel: Kernel, names: Iterable[str]) -> list[tuple[str, bytes]]:
    """(file name, content) of the modules that the guest loads, in an order in which they can be."""
    folder = kernel.root / "lib/modules" / kernel.version
    needs = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, others = line.partition(":")
        needs[_name(path)] = (path, [_name(other) for other in others.split()])
    order: list[str] = []

    def visit(name: str) -> None:
        if name in needs and name not in order:  # one that is not there is built into this kernel
            for other in needs[name][1]:
                visit(other)
            order.append(name)

    for name in names:
        visit(name)
    return [(f"{name}.ko", _content(folder / needs[name][0])) for name in order]


def _name(path: str) -> str:
    return Path(path).name.partition(".")[0].replace("-", "_")


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def main(arguments: list[str]) -> int:
    terse = "--quiet" in arguments  # then only what takes time, or fails
    status = 0
    for series in [name for name in arguments if name != "--quiet"] or ["6.12", "6.1"]:
        try:
            if not cached(series):
                print(f"==> fetching a kernel {series} (some 100 MB)", flush=True)
            kernel = ensure(series)
            if not terse:
                print(f"kernel {series}: {kernel.version} in {kernel.root}")
        except (KernelError, subprocess.TimeoutExpired, OSError) as error:
            print(f"kernel {series}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
