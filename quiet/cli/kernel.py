"""What `quiet kernel` does: results to stdout, and the exit code. No option parsing, no Typer."""

from __future__ import annotations

from collections.abc import Sequence

from quiet.host.reader import Reader
from quiet.kernel import check, config, fragments, report


def kernel_check(wanted: Sequence[str] = (), file: str | None = None, root: str = "/", as_json: bool = False) -> int:
    """Which options of the fragments the kernel has, and what each missing one costs. Exit 0 when all are there.

    `file`: another kernel's configuration instead of the running kernel's.
    """
    options = fragments.load(wanted)
    reader = Reader(root)
    found = config.of_file(file) if file is not None else config.running(reader)
    answers = check.check(options, found, None if file is not None else reader)
    version = None if file is not None else reader.text("/proc/sys/kernel/osrelease")
    if as_json:
        from quiet.console import emit_json

        emit_json(report.shape(answers, found, version))
    else:
        from quiet.cli import text as render

        for text in report.lines(answers, found, version):
            render.out(text)
    return 0 if report.complete(answers) else 1
