"""Run the commands for this host and its kernel: status, record, install-service, remove-service, kernel check.

They print results to stdout and return the exit code.
"""

from __future__ import annotations

from collections.abc import Sequence


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


def install_service(profile: str, cpus: str | None, trust: bool, root: str, as_json: bool) -> int:
    """Install a systemd unit that applies a profile after each boot and restores the settings when the unit stops."""
    from quiet.cli import json_output, text, text_host
    from quiet.host.host import Host
    from quiet.service import service
    from quiet.settings.profile import load

    done = service.install(Host(root), load(profile), cpus, trust)
    text.show(done, as_json, json_output.service, text_host.service_installed)
    return 0


def remove_service(root: str, as_json: bool) -> int:
    """Stop the unit and remove it. Returns 4 if a setting that the unit had applied could not be restored."""
    from quiet.cli import json_output, text, text_host
    from quiet.host.host import Host
    from quiet.service import service

    done = service.remove(Host(root))
    text.show(done, as_json, json_output.service, text_host.service_removed)
    return 4 if done.left else 0


def kernel_check(wanted: Sequence[str] = (), file: str | None = None, root: str = "/", as_json: bool = False) -> int:
    """Report which options of these fragments the kernel lacks, and the cost of each. Returns 0 if no option is missing
    or unknown.

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
