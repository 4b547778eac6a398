"""The JSON shapes of `quiet`: pure functions from results to plain dictionaries. These keys do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quiet import __version__, cpulist
from quiet.knobs import rivals
from quiet.knobs.knob import Knob
from quiet.machine import hypervisor_effects, virtualization, write_access
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.service.service import Installed, ServiceReceipt
from quiet.service.systemd_unit import NAME
from quiet.settings.applied_state import AppliedState
from quiet.settings.apply import Receipt
from quiet.settings.plan import Change, Plan, Skipped
from quiet.settings.restore import Outcome
from quiet.targets import value_types

Json = dict[str, object]


def cpus(choice: CpuPartition) -> Json:
    """The CPU sets of a plan, with the reason for them."""
    return {
        "isolated": cpulist.format(choice.isolated),
        "housekeeping": cpulist.format(choice.housekeeping),
        "offline": cpulist.format(choice.offline),
        "why": choice.why,
    }


def changes(items: Iterable[Change]) -> list[Json]:
    """Changes with the plain values."""
    return [
        {
            "knob": item.knob,
            "target": item.target,
            "current": None if item.current is None else value_types.plain(item.kind, item.current),
            "wanted": item.wanted,
            "why": item.why,
            "label": item.label or None,
        }
        for item in items
    ]


def skips(items: Iterable[Skipped]) -> list[Json]:
    """Skips, conflicts and failures with their reasons."""
    return [
        {"knob": item.knob, "target": item.target, "reason": item.reason, "label": item.label or None} for item in items
    ]


def plan(made: Plan, applied: bool) -> Json:
    """`quiet plan --json`."""
    return {
        "profile": made.profile,
        "applied": applied,
        "cpus": cpus(made.cpus),
        "changes": changes(made.changes),
        "skips": skips(made.skips),
        "boot": {"missing": list(made.missing_boot)},
    }


def receipt(done: Receipt) -> Json:
    """`quiet apply --json`."""
    return {
        "profile": done.profile,
        "cpus": cpus(done.cpus),
        "changes": changes(done.changes),
        "skips": skips(done.skips),
        "failures": skips(done.failures),
        "boot": {"missing": list(done.missing_boot)},
    }


def verify(made: Plan, applied: bool, noise: Json | None = None) -> Json:
    """`quiet verify --json`. `noise`: what was measured (noise.report.shape); None when nothing was."""
    return {
        "quiet": not made.changes and not (noise and noise["exceeded"]),
        "applied": applied,
        "profile": made.profile,
        "cpus": cpus(made.cpus),
        "drift": changes(made.changes),
        "skips": skips(made.skips),
        "noise": noise,
    }


def restore(outcome: Outcome) -> Json:
    """`quiet restore --json`."""
    return {
        "profile": outcome.profile,
        "complete": outcome.complete,
        "restored": outcome.restored,
        "gone": list(outcome.gone),
        "conflicts": skips(outcome.conflicts),
        "failures": skips(outcome.failures),
    }


def status(facts: Facts, record: AppliedState | None) -> Json:
    """`quiet status --json`."""
    applied: Json | None = None
    if record is not None:
        applied = {
            "profile": record.profile,
            "source": record.source,
            "cpus": cpus(record.cpus),
            "since": record.time,
            "targets": sum(not entry.passing for entry in record.entries.values()),
            "complete": record.complete and not record.restoring,
            "restoring": record.restoring,
        }
    return {
        "version": __version__,
        "kernel": facts.reader.text("/proc/sys/kernel/osrelease"),
        "processor": virtualization.model(facts),
        "virtual": virtualization.virtual(facts) or None,
        "cpus": {
            "online": cpulist.format(facts.online),
            "offline": cpulist.format(facts.present - facts.online),
            "cores": [cpulist.format(core) for core in facts.cores],
            "slow": cpulist.format(facts.slow_cpus),
            "nodes": {str(node): cpulist.format(members) for node, members in facts.nodes.items()},
            "boot_isolated": cpulist.format(facts.boot_isolated),
            "nohz_full": cpulist.format(facts.nohz_full),
        },
        "can": virtualization.kernel_can(facts),
        "rivals": rivals.running(facts),
        "confined": write_access.whole(facts) or None,
        "unreachable": hypervisor_effects.disturbances(facts),
        "applied": applied,
    }


def knob(item: Knob) -> Json:
    """`quiet explain --json`."""
    return {
        "name": item.name,
        "title": item.title,
        "why": item.why,
        "doc": item.doc,
        "targets": item.targets,
        "choices": [*item.choices, *(["NUMBER"] if item.numeric else [])],
        "after": list(item.after),
        "entangled": item.moves or None,
        "risk": item.risk or None,
        "refusals": {str(number): reason for number, reason in item.refusals.items()},
    }


def profile(name: str, summary: str, source: str, knobs: Mapping[str, str]) -> Json:
    """One row of `quiet profiles --json`."""
    return {"name": name, "summary": summary, "source": source, "knobs": dict(knobs)}


def service(found: Installed | None) -> Json | None:
    """The service in `quiet status --json`; None where there is none."""
    if found is None:
        return None
    return {"unit": NAME, "profile": found.profile, "cpus": found.cpus, "at_boot": found.enabled}


def service_done(done: ServiceReceipt) -> Json:
    """`--json` of install-service and remove-service. `ran`: the commands were run, not only shown."""
    return {
        "unit": NAME,
        "profile": done.profile,
        "files": list(done.files),
        "commands": list(done.commands),
        "ran": done.ran,
        "restored": not done.left,
    }
