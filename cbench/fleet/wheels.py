"""Repack the installed quiet-cbench and its dependencies as wheels, from their installed files, without a package
registry.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from quiet import QuietError

OURS = "quiet-cbench"
LEFT_OUT = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "top_level.txt"}


def pack(target: Path) -> None:
    """Write a tar file of wheels, byte for byte the same for the same files. Raises QuietError if quiet-cbench is not
    installed.
    """
    with tarfile.open(target, "w") as tar:
        for each in _closure():
            name, content = _wheel(each)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def _closure() -> list[Distribution]:
    """The required distributions without extras. A distribution that is not installed is skipped, because its marker
    may exclude this environment.
    """
    found: dict[str, Distribution] = {}
    names = [OURS]
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            if name == OURS:
                raise QuietError(f"{OURS} is not installed here, so it cannot be copied to nodes: install it") from None
            continue
        required = [each for each in found[name].requires or [] if "extra ==" not in each]
        names += [match[0] for each in required if (match := re.match(r"[\w.-]+", each))]
    return [found[name] for name in sorted(found)]


def _files(each: Distribution) -> Iterator[tuple[str, bytes]]:
    if re.sub(r"[-_.]+", "-", each.name).lower() == OURS:  # even if it is installed from a checkout
        base = Path(__file__).parents[2]
        for package in ("quiet", "cbench"):
            for path in _below(base / package):
                yield path.relative_to(base).as_posix(), path.read_bytes()
        return
    for file in each.files or []:
        path = Path(str(each.locate_file(file)))
        inside = ".dist-info/" not in str(file) and ".." not in file.parts and "__pycache__" not in file.parts
        if inside and path.suffix != ".pth" and path.is_file():
            yield file.as_posix(), path.read_bytes()


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "__pycache__":
            yield from _below(path)
        elif path.is_file() and path.suffix not in (".pyc", ".o"):
            yield path


def _wheel(each: Distribution) -> tuple[str, bytes]:
    """The file name and the content of a wheel. A distribution with shared objects but without a platform's tag gets
    this platform's tag; any other distribution without tags gets py3-none-any.
    """
    stem = f"{re.sub(r'[-_.]+', '_', each.name)}-{each.version}"
    info = f"{stem}.dist-info"
    wheel = each.read_text("WHEEL") or ""
    tags = re.findall(r"^Tag: (\S+)$", wheel, re.MULTILINE)
    files = dict(_files(each))
    if any(name.endswith(".so") for name in files) and not any("none-any" not in tag for tag in tags):
        tags = [_native_tag()]
    tags = tags or ["py3-none-any"]
    files[f"{info}/METADATA"] = (each.read_text("METADATA") or each.read_text("PKG-INFO") or "").encode()
    pure = str(tags == ["py3-none-any"]).lower()
    lines = "".join(f"Tag: {tag}\n" for tag in tags)
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: cbench\nRoot-Is-Purelib: {pure}\n{lines}".encode()
    if entries := each.read_text("entry_points.txt"):
        files[f"{info}/entry_points.txt"] = entries.encode()
    record = "".join(f"{name},sha256={_digest(files[name])},{len(files[name])}\n" for name in sorted(files))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)
    parts = [tag.split("-") for tag in tags]
    joined = "-".join(".".join(sorted({part[at] for part in parts})) for at in range(3))
    return f"{stem}-{joined}.whl", buffer.getvalue()


def _native_tag() -> str:
    """The tag of this platform's wheels for the stable ABI, which our extensions use."""
    import sysconfig

    return f"cp311-abi3-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"


def _digest(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
