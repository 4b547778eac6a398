"""Print the text of `quiet status`, `record`, `kernel check`, `watch` and the service commands."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from quiet import cpulist
from quiet.cli.text import apply_command, columns, counted, note, out
from quiet.host.queue import described
from quiet.kernel.check import ELSEWHERE, MISSING, THERE, UNKNOWN, in_state
from quiet.settings.profile import bundled
from quiet.targets import value_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiet.boot.status import BootStatus
    from quiet.host.queue import Ticket
    from quiet.kernel.check import KernelReport, OptionState
    from quiet.record.recorder import RecordReceipt
    from quiet.service.service import Installed, ServiceReceipt
    from quiet.settings.status import AppliedProfile, HostStatus
    from quiet.watch.events import WatchEvent

_FEW = 4  # number of missing options named in the status


def status(
    host: HostStatus,
    installed: Installed | None,
    boot: BootStatus | None,
    checked: KernelReport,
    tickets: Sequence[Ticket],
) -> None:
    """Print the status of a host."""
    cpus = host.cpus
    rows = [("kernel", str(host.kernel)), ("processor", host.processor)]
    rows.append(("virtual", host.virtual or "no sign of a hypervisor"))
    rows.append(("CPUs online", f"{cpulist.format(cpus.online)} in {len(cpus.cores)} cores"))
    if cpus.offline:
        rows.append(("CPUs offline", cpulist.format(cpus.offline)))
    if cpus.slow:
        rows.append(("slower cores", cpulist.format(cpus.slow)))
    if len(cpus.nodes) > 1:
        rows += [(f"NUMA node {node}", cpulist.format(members)) for node, members in cpus.nodes.items()]
    rows.append(("isolated at boot", cpulist.format(cpus.boot_isolated) or "none"))
    rows += [*host.can.items(), ("kernel options", _options(checked))]
    if host.rivals:
        rows.append(("rivals", f"{', '.join(host.rivals)} (also tuning this host; see `quiet explain rivals`)"))
    columns(rows, "")
    for line in host.unreachable:
        out(f"outside quiet's control: {line}")
    if host.confined:
        out(f"**nothing can be applied here**: {host.confined}")
    out()
    out(f"applied: {_applied(host.applied) if host.applied else 'nothing'}")
    if boot:
        words = (
            f"{boot.profile} on CPUs {boot.cpus}, by {boot.loader}"
            if boot.profile
            else "unknown: its record is damaged, from another version of quiet, or readable only by root"
        )
        incomplete = "; incomplete: run `quiet boot apply` or `boot remove`"
        out(f"boot configuration: {words}{'' if boot.state in ('applied', None) else incomplete}")
    if installed:
        on = f" on CPUs {installed.cpus}" if installed.cpus else ""
        when = "after each boot" if installed.at_boot else "only when started manually, because it is disabled"
        out(f"service: {installed.profile}{on}, {when} ({installed.unit})")
    for each in tickets:
        out(f"{'on the isolated CPUs' if each.running else 'waiting for the isolated CPUs'}: {described(each)}")


def _applied(applied: AppliedProfile) -> str:
    if applied.damage:
        more = f" and {len(applied.damage) - 1} more" if len(applied.damage) > 1 else ""
        name = "an unknown profile" if applied.profile == "unknown" else applied.profile
        return f"{name}, but the **journal is damaged** ({applied.damage[0]}{more}): run `quiet restore`"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(applied.since))
    is_profile = "/" in applied.source or applied.source in bundled()
    again = f"`{apply_command(applied.source)}` or " if is_profile else ""
    incomplete = "" if applied.complete else f"; incomplete: run {again}`quiet restore`"
    if applied.restoring:
        incomplete = "; a restore was not completed: run `quiet restore` again (with --force or --keep for conflicts)"
    isolated = cpulist.format(applied.cpus.isolated)
    return f"**{applied.profile}** on CPUs {isolated} since {since}, {applied.targets} targets{incomplete}"


def _options(checked: KernelReport) -> str:
    """One line about the kernel's build options."""
    missing = checked.of(MISSING)
    parts = [f"{len(checked.of(THERE))} of {len(checked.options) - len(checked.of(ELSEWHERE))} present"]
    if missing:
        names = ", ".join(_plain(option) for option in missing[:_FEW])
        parts.append(f"missing {names}" + (f" and {len(missing) - _FEW} more" if len(missing) > _FEW else ""))
    if checked.unknown:
        parts.append(f"{checked.unknown} unknown without the kernel's configuration")
    return "; ".join(parts) + ("" if checked.complete else " (`quiet kernel check`)")


def kernel(checked: KernelReport) -> None:
    """Print how many options of each fragment the kernel has, then the missing options with their costs."""
    seen = checked.source or "no configuration found: derived from the files that the options create"
    out(f"kernel **{checked.kernel}**, {seen}" if checked.kernel else f"kernel of {seen}")
    fragments = dict.fromkeys(option.fragment for option in checked.options)
    for name in fragments:
        own = [option for option in checked.options if option.fragment == name and option.state != ELSEWHERE]
        if own:
            out(f"  {name:<{max(map(len, fragments))}}  {len(in_state(own, THERE))} of {len(own)}")
    if checked.missing:
        out()
        out(f"**missing** ({checked.missing}):")
    for option in checked.of(MISSING):
        on = option.wanted == "n"
        out(f"  **{_plain(option)}** ({option.fragment}{', should be off' if on else ''}): {option.why}")
        out(f"      {'with' if on else 'without'} it: {option.cost}")
    if checked.unknown:
        out()
        out(f"**unknown** ({checked.unknown}): {', '.join(_plain(option) for option in checked.of(UNKNOWN))}")
        out("  only the kernel's configuration shows them; pass it with --config FILE")
    if checked.complete:
        out("**all present**")


def _plain(option: OptionState) -> str:
    return option.option.removeprefix("CONFIG_")


def record(done: RecordReceipt) -> None:
    """Print the archive's name and the data that the archive omits."""
    out(f"{done.file}: {done.files} files; unpack it with tar -xzf and pass the directory with --root")
    for words in done.left_out or [
        "nothing; task names, addresses, identifiers, the whole command line and the boot loaders' files are included"
    ]:
        note(f"left out: {words}")
    if done.unreadable:
        note(f"missing: {counted(len(done.unreadable), 'file')} that only root can read")


def service_installed(done: ServiceReceipt) -> None:
    """Print the files that were written for the service."""
    out(
        f"installed **{done.unit}**: it applies profile {done.profile} after each boot and restores the settings when "
        "it is stopped"
    )
    _service_files(done)
    if done.ran:
        out("`systemctl start quiet` applies it now; `quiet remove-service` removes everything")


def service_removed(done: ServiceReceipt) -> None:
    """Print the files that were removed."""
    if done.profile is None:
        out("no quiet service is installed: **nothing was changed**")
        return
    out(f"removed **{done.unit}** (profile {done.profile}):")
    _service_files(done)
    if done.left:
        note("some of its settings could not be restored; `quiet restore` lists them")


def _service_files(done: ServiceReceipt) -> None:
    for path in done.files:
        out(f"  {path}")
    for command in done.commands:
        out(f"  {'ran' if done.ran else 'to run on that host:'} {command}")


def watch_event(event: WatchEvent, width: int) -> str:
    """A line of `quiet watch`; `width` is the width of the longest event name."""
    parts = [time.strftime("%H:%M:%S"), event.event.ljust(width)]
    if change := event.change:
        target = f"{change.target.removeprefix('file:')} {change.label}".strip()
        now = "absent" if change.current is None else value_types.plain(change.kind, change.current)
        state = change.wanted if event.settled else f"{now}, wanted {change.wanted}"
        parts.append(f"{change.knob}: {target}: {state}")
    words = "; ".join(filter(None, (event.text, event.by and f"reported by {event.by}")))
    return "  ".join([*parts, *filter(None, [f"({words})" if event.change and words else words])])
