"""Run `quiet kernel`: print results to stdout and return the exit code."""

from __future__ import annotations

from collections.abc import Sequence


def kernel_check(wanted: Sequence[str] = (), file: str | None = None, root: str = "/", as_json: bool = False) -> int:
    """Report which options of these fragments the kernel lacks, and the cost of each. Returns 0 if none is missing.

    `file`: the configuration of another kernel, instead of the running kernel's.
    """
    from quiet.cli import json_output, text, text_host
    from quiet.host.reader import Reader
    from quiet.kernel import check, config, fragments

    options = fragments.load(wanted)
    reader = Reader(root)
    built = config.of_file(file) if file is not None else config.running(reader)
    report = check.report(options, built, None if file is not None else reader)
    text.show(report, as_json, json_output.to_object, text_host.kernel)
    return 0 if report.complete else 1
