"""Run `quiet boot`: print results to stdout and return the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quiet.boot.plan import BootRequest
    from quiet.host.reader import Reader


def _request(reader: Reader, profile: str, cpus: str | None) -> BootRequest:
    from quiet.boot.plan import BootRequest
    from quiet.machine.facts import Facts
    from quiet.settings.profile import load

    chosen = load(profile)
    return BootRequest(chosen.name, chosen.boot, chosen.choose(Facts(reader), cpus))


def plan(profile: str, cpus: str | None, root: str, loader: str | None, as_json: bool) -> int:
    """Show how an apply would change the boot configuration, with the reason for each parameter.

    Writes nothing; needs no root.
    """
    from quiet.boot import plan as planning
    from quiet.cli import json_output, text, text_boot
    from quiet.host.reader import Reader

    reader = Reader(root)
    planned = planning.make(reader, _request(reader, profile, cpus), loader)
    text.show(planned, as_json, json_output.boot_plan, text_boot.plan)
    return 0


def apply(profile: str, cpus: str | None, root: str, loader: str | None, as_json: bool) -> int:
    """Add a profile's parameters to the command line of later boots. Idempotent."""
    from quiet.boot import apply as applying
    from quiet.cli import json_output, text, text_boot
    from quiet.host.host import Host

    host = Host(root)
    receipt = applying.apply(host, _request(host, profile, cpus), loader)
    text.show(receipt, as_json, json_output.boot_receipt, text_boot.applied)
    return 0


def remove(root: str, as_json: bool) -> int:
    """Restore the boot configuration. Raises Incomplete (exit code 4) if the restore fails."""
    from quiet.boot import apply as applying
    from quiet.cli import json_output, text, text_boot
    from quiet.host.host import Host

    text.show(applying.remove(Host(root)), as_json, json_output.boot_receipt, text_boot.removed)
    return 0


def once(
    profile: str, cpus: str | None, root: str, kernel: str | None, initrd: str | None, load_only: bool, as_json: bool
) -> int:
    """Boot once with a profile's parameters, by kexec. For a recorded tree, only show the commands."""
    from quiet.boot import once as kexec
    from quiet.cli import json_output, text, text_boot
    from quiet.console import emit_json
    from quiet.host.host import Host

    host = Host(root)
    planned = kexec.make(host, _request(host, profile, cpus), kernel, initrd)
    load = host.live and not planned.settled
    start = load and not load_only
    if load:
        kexec.load(host, planned)
    if as_json:
        emit_json(json_output.boot_once(planned, load, start))
    else:
        text_boot.once(planned, load, start)
    sys.stdout.flush()
    if start:
        kexec.start(host, planned, text.note)
    return 0
