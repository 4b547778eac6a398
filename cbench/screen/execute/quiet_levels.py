"""Apply knobs, profiles and governors as levels through quiet's journal, like `quiet apply`, and restore them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import quiet
from cbench.screen.config.checks import GOVERNOR
from cbench.screen.config.model import Level
from quiet import (
    CPU_FOLDER,
    Facts,
    Host,
    Profile,
    Reader,
    Refused,
    TargetState,
    UsageError,
    applied_state,
    begin_hold,
    cpufreq_state,
    load_profile,
    overwritten,
)

SOURCE = "cbench screen "
WHAT = "settings that quiet had applied"


class Applied(NamedTuple):
    """The levels that quiet has applied. `texts`: the value read back for each level; `isolated`: the CPUs that the
    profile isolated, None if there are none or no profile; `fixed`: whether the profile fixes addresses.
    """

    texts: tuple[str, ...]
    isolated: frozenset[int] | None = None
    fixed: bool = False


def ours(reader: Reader, source: str) -> bool:
    """Whether this experiment's settings are applied now."""
    record = applied_state(reader)
    return record is not None and record.source == source


def wanted(levels: Sequence[Level], source: str) -> Profile | None:
    """The profile that quiet applies for these levels: the profile that a level names, or a profile of the levels'
    knobs; None if the levels only set governors. `source`: the source that the profile gets.
    """
    named = next((level.profile for level in levels if level.profile), "")
    knobs = {name: value for level in levels for name, value in level.knobs.items()}
    if named:
        return load_profile(named)._replace(source=source)
    if not knobs:
        return None
    title = " ".join(f"{name}={value}" for name, value in knobs.items())
    return Profile(title, "", source, "auto", "auto", 4, knobs, ())


def obstacle(reader: Reader, level: Level, cpus: str | None, others: Sequence[Level] = ()) -> str:
    """The reason why this level can never be set on this host, or would change nothing, if that can be determined
    without setting it; otherwise "". `others`: all levels of the factor.
    """
    if level.governor:
        policies = Facts(reader).policies
        if not policies:
            return "the host has no cpufreq driver: the firmware or the hypervisor sets the frequency"
        for number in policies:
            path = f"{CPU_FOLDER}/cpufreq/policy{number}/scaling_available_governors"
            if level.governor not in (names := (reader.text(path) or "").split()):
                return f"policy {number} offers no governor {level.governor!r}, only {', '.join(names)}"
        now = {reader.text(f"{CPU_FOLDER}/cpufreq/policy{number}/scaling_governor") for number in policies}
        if now == {level.governor} and not all(each.governor for each in others):
            return f"every cpufreq policy already has the governor {level.governor}, so nothing would change"
    parts = [Level(level.name, knobs={name: value}) for name, value in level.knobs.items()]
    for part in [*parts, *([Level(level.name, profile=level.profile)] if level.profile else [])]:
        if why := _unplanned(reader, part, cpus):
            return why
    return ""


def _unplanned(reader: Reader, level: Level, cpus: str | None) -> str:
    """The reason why a plan for one knob, or one profile, would change nothing; "" if it would change something."""
    profile = wanted([level], SOURCE)
    assert profile is not None
    try:
        plan = quiet.plan(profile, cpus=cpus, root=reader)
    except (Refused, UsageError) as error:
        return str(error)
    if plan.changes:
        return ""
    if level.profile:
        return f"the profile {profile.name} has nothing to change here"
    ((name, value),) = level.knobs.items()
    why = plan.skips[0].reason if plan.skips else f"is already {value}, so nothing would change"
    return f"the knob {name}: {why}"


def apply(host: Host, source: str, levels: Sequence[Level], cpus: str | None) -> Applied:
    """Apply the levels together and read them back. Raises Refused if settings are already applied, or if a level
    cannot be applied; the caller must then restore.
    """
    record = applied_state(host)
    if record is not None:
        raise Refused(f"'{record.profile}' is applied to this host; run `quiet restore` first")
    chosen = wanted(levels, source)
    if chosen is not None:
        receipt = quiet.apply(chosen, cpus=cpus, root=host, temporary=True)
        if receipt.failures:
            first = receipt.failures[0]
            raise Refused(f"{first.knob}: {first.reason}")
        names = {name for level in levels for name in level.knobs}
        if missing := sorted(names - {change.knob for change in receipt.changes}):
            why = next(
                (skip.reason for skip in receipt.skips if skip.knob == missing[0]),
                "it has nothing to change on this host",
            )
            raise Refused(f"the knob {missing[0]}: {why}")
        if not receipt.changes:
            raise Refused(f"the profile {chosen.name} has nothing to change here")
    if governor := next((level.governor for level in levels if level.governor), ""):
        _govern(host, source, governor)
    return confirm(host, source, levels)


def _govern(host: Host, source: str, governor: str) -> None:
    """Set the governor of every cpufreq policy, with the journal written first."""
    policies = [f"file:{CPU_FOLDER}/cpufreq/policy{number}/scaling_governor" for number in Facts(host).policies]
    begin_hold(
        host,
        dict.fromkeys(policies, governor),
        knob=GOVERNOR,
        source=source,
        title=f"governor {governor}",
        entangled=cpufreq_state(host),
    )


def confirm(reader: Reader, source: str, levels: Sequence[Level]) -> Applied:
    """Read back the written values. Raises Refused if one has changed.

    For a profile, this function only checks that the profile is applied, because some of its hundreds of targets drift
    by themselves. `quiet verify` reports drift, and its result is stored with each batch.
    """
    record = applied_state(reader)
    if record is None or record.source != source:
        raise Refused(
            "the settings applied by quiet are gone: another process restored them; do not run `quiet restore` "
            "during an experiment"
        )
    written = [entry for entry in record.entries.values() if entry.wanted is not None]
    named = next((level.profile for level in levels if level.profile), "")
    if named:
        texts = tuple(_text(reader, level, written) for level in levels)
        return Applied(texts, record.cpus.isolated or None, load_profile(named).knobs.get("aslr") == "command")
    for entry, now in overwritten(reader, record):
        raise Refused(
            f"{entry.target} is {now!r} instead of the applied {entry.wanted!r}: another program changed it; stop that "
            "program"
        )
    return Applied(tuple(_text(reader, level, written) for level in levels))  # knobs do not affect the CPUs of a trial


def _text(reader: Reader, level: Level, written: Sequence[TargetState]) -> str:
    """The value that was written for a level, as text. Raises Refused if the current governor differs from it."""
    if level.governor:
        for number in Facts(reader).policies:
            path = f"{CPU_FOLDER}/cpufreq/policy{number}/scaling_governor"
            if (value := reader.text(path)) != level.governor:
                raise Refused(
                    f"{path} is {value!r} instead of {level.governor!r}: another program changed it; stop that program"
                )
    own = [f"{each.target}={each.wanted}" for each in written if level.profile or each.knob in level.knobs]
    parts = [f"governor {level.governor}"] if level.governor else []
    if own:
        parts.append(own[0] + (f" and {len(own) - 1} more" if len(own) > 1 else ""))
    return ", ".join(parts)
