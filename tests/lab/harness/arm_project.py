"""What an arm64 guest has beside its root: the checkout as it is, the compiled C, /init, the modules for its files.

A second cpio, unpacked by the kernel over the first one; it is packed again whenever a file in it changes, which takes
a second. The guest has the checkout at the same path as this machine, with the commands in .venv/bin.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests import CHECKOUT
from tests.lab.harness import arm_c, arm_root, cache
from tests.lab.harness.arm_root import SITE
from tests.lab.harness.cpio import Archive
from tests.lab.harness.kernels import Kernel, modules
from tests.lab.harness.model import commands

PARTS = ("quiet", "cbench", "kernel-configs", "tests", "pyproject.toml")
NO_PART = ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "hosts")
# Made by a build on this machine, for this machine.
BUILT = (".so", ".o", ".ko", ".pyc", "_cbench.c", "_noise.c")
INIT = Path(__file__).with_name("arm_init.sh")
MODULES = ("virtio_pci", "9pnet_virtio", "9p")  # needed by the shared directory
KEPT = 5


def ensure(kernel: Kernel) -> Path:
    """The archive for this kernel and the checkout as it is now."""
    root = arm_root.ensure()
    compiled = arm_c.ensure(root / "include")
    taken = [path for part in PARTS for path in files(CHECKOUT / part)]
    parts = [Path(__file__).with_name(name).read_bytes() for name in ("arm_project.py", "cpio.py", INIT.name)]
    key = cache.digest([*parts, str(compiled), kernel.version, *taken])
    folder = cache.cache_dir() / "arm64-projects"
    return cache.make(folder / key, lambda made: _build(made, kernel, compiled, taken), KEPT) / "project.cpio"


def files(top: Path) -> list[Path]:
    """The files of a part of the checkout, without what was built in it."""
    if top.name in NO_PART or top.name.endswith(BUILT):
        return []
    if not top.is_dir():
        return [top]
    return [path for entry in sorted(top.iterdir()) for path in files(entry)]


def _build(made: Path, kernel: Kernel, compiled: Path, taken: list[Path]) -> None:
    at = str(CHECKOUT).strip("/")
    with tempfile.TemporaryDirectory(prefix=".pack-", dir=made.parent) as temporary:
        copy = Path(temporary) / "checkout"
        for path in taken:
            target = copy / path.relative_to(CHECKOUT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        shutil.copytree(compiled, copy, dirs_exist_ok=True)
        arm_root.compile_python(copy, str(CHECKOUT))
        with open(made / "project.cpio", "wb") as file:
            archive = Archive(file)
            archive.tree(copy, prefix=f"{at}/")
            archive.data(f"{SITE}/checkout.pth", f"{CHECKOUT}\n".encode())
            for name in ("python", "python3"):
                archive.link(f"{at}/.venv/bin/{name}", "/usr/bin/python3")
            for name, text in commands().items():
                archive.data(f"{at}/.venv/bin/{name}", text.encode(), 0o755)
            archive.data("init", INIT.read_bytes(), 0o755)
            for number, (name, content) in enumerate(modules(kernel, MODULES)):
                archive.data(f"lib/lab-modules/{number:02}-{name}", content)
            archive.close()
