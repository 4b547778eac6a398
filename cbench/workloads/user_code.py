"""Load the user's functions: compile `FILE.c:FUNCTION`, or load `LIB.so:FUNCTION` unchanged."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from cbench.model import Workload
from cbench.workloads.registry import USER_PARAMETERS
from quiet import UsageError

FLAGS = ("-O2", "-g", "-Wall", "-shared", "-fPIC")
PROTOTYPE = "uint64_t run(void *state, uint64_t n)"


def is_user_code(text: str) -> bool:
    """Whether the text names a file, with or without :FUNCTION, and not a built-in workload."""
    return ":" in text or "/" in text or text.endswith((".c", ".so"))


def split(text: str) -> tuple[Path, str]:
    """The file and the name of the function. Raises UsageError for an invalid text."""
    file, _, function = text.rpartition(":")
    if not file or not re.fullmatch(r"[A-Za-z_]\w*", function, re.ASCII):
        raise UsageError(f"{text!r}: write it as FILE.c:FUNCTION or LIB.so:FUNCTION, with a function `{PROTOTYPE}`")
    path = Path(file)
    if path.suffix not in (".c", ".so"):
        raise UsageError(f"{file}: neither a C file (.c) nor a shared library (.so)")
    if not path.is_file():
        raise UsageError(f"{file}: no such file")
    return path.resolve(), function


def compiled(source: Path, cache: Path, tell: Callable[[str], None]) -> Path:
    """The path of the shared library of a C file, built once for each `cache` directory.

    `tell` receives the compiler's command line; the compiler's messages go to stderr unchanged. Raises UsageError if
    the compiler fails.
    """
    library = cache / f"{hashlib.sha256(os.fsencode(source)).hexdigest()}.so"
    if library.exists():
        return library
    try:
        compiler = shlex.split(os.environ.get("CC") or "cc")  # CC may include options
    except ValueError as error:
        raise UsageError(f"CC={os.environ['CC']!r}: {error}") from None
    command = [*compiler, *FLAGS, "-o", str(library), str(source)]
    tell(shlex.join(command))
    try:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode
    except OSError as error:
        raise UsageError(f"compiler {command[0]}: {error.strerror}; install one or set CC") from None
    if code:
        raise UsageError(f"{source.name}: does not compile (exit code {code}); see the compiler's messages above")
    return library


def load(text: str, cache: Path, tell: Callable[[str], None]) -> Workload:
    """The user's function as a workload; the worker checks that the function exists. Raises UsageError if the file is
    unusable.
    """
    path, function = split(text)
    library = compiled(path, cache, tell) if path.suffix == ".c" else path
    return Workload(
        name=text,
        function=function,
        stresses="the user's own function",
        parameters=USER_PARAMETERS,
        library=str(library),
        enters_kernel=None,
    )
