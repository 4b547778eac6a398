"""Run `quiet status` and `quiet record`: print results to stdout and return the exit code."""

from __future__ import annotations


def status(root: str = "/", as_json: bool = False) -> int:
    """Show this host's CPUs and capabilities, and whether a profile is applied."""
    from quiet.boot import status as boot_status
    from quiet.console import emit_json
    from quiet.host import queue
    from quiet.host.reader import Reader
    from quiet.kernel import check, config, fragments
    from quiet.machine.facts import Facts
    from quiet.service import service
    from quiet.settings import journal
    from quiet.settings import status as host_status

    reader = Reader(root)
    host = host_status.status(Facts(reader), journal.read(reader))
    installed = service.installed(reader)
    boot = boot_status.status(reader)
    kernel = check.report(fragments.load(), config.running(reader), reader)
    tickets = queue.queue(reader)
    if as_json:
        from quiet.cli import json_output

        emit_json(json_output.status(host, installed, boot, check.summary(kernel), tickets))
    else:
        from quiet.cli import text_host

        text_host.status(host, installed, boot, kernel, tickets)
    return 0


def record(file: str, root: str, unmasked: bool, as_json: bool) -> int:
    """Record this machine as a tree for --root: the files that plan and status read, with private data redacted."""
    from quiet.cli import json_output, text, text_host
    from quiet.record import recorder

    done = recorder.record(recorder.Recording(root), file, not unmasked)
    text.show(done, as_json, json_output.to_object, text_host.record)
    return 0
