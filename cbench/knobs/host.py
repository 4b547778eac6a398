"""Plan the knobs of a screening on this host, and apply profiles through quiet's own engine.

An application is `quiet apply` of the profile without some knobs, followed by a restore. The journal is written first:
after a kill in between, the next `--resume` or `quiet restore` restores the settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import quiet
from cbench.knobs.design import LeftOut, ScreenedKnob
from cbench.knobs.options import KnobOptions
from quiet import (
    KNOBS,
    Host,
    Profile,
    Reader,
    Refused,
    UsageError,
    applied_state,
    end_hold,
    format_cpus,
    load_profile,
)

SOURCE = "cbench screen knobs "


@dataclass(frozen=True, slots=True)
class KnobPlan:
    """The knobs to screen on this host. `fixed`: knobs that are always applied; `idle`: the number of the profile's
    other knobs, which have nothing to change on this host; `choices`: the profile's value of each applied knob; `boot`:
    the profile's boot parameters that the kernel lacks; `rest`: the profile's housekeeping CPUs.
    """

    profile: str
    isolated: str
    housekeeping: str
    screened: tuple[ScreenedKnob, ...]
    fixed: tuple[str, ...]
    idle: int
    choices: Mapping[str, str]
    services: Mapping[str, tuple[str, ...]]
    boot: tuple[str, ...]
    rest: str = "auto"

    def as_profile(self, left_out: LeftOut, source: str) -> Profile:
        """The profile without the left-out knobs, on the same CPUs. `source`: the origin that quiet records for this
        profile.
        """
        knobs = {name: choice for name, choice in self.choices.items() if name not in left_out}
        base = Profile(f"{self.profile} less {len(left_out)} knobs", "", source, self.isolated, self.rest, 4, knobs, ())
        return base._replace(services=self.services)


def planned(options: KnobOptions, reader: Reader) -> KnobPlan:
    """Determine the knobs to screen. Raises Refused if there are none, UsageError for a knob of --only that would
    change nothing.
    """
    profile = load_profile(options.profile)
    if options.without:
        profile = profile._replace(knobs={k: v for k, v in profile.knobs.items() if k not in options.without})
    plan = quiet.plan(profile, cpus=options.cpus or None, root=reader)
    changing = dict.fromkeys(change.knob for change in plan.changes)
    for name in options.only:
        if name not in changing:
            why = next(
                (skip.reason for skip in plan.skips if skip.knob == name), "it would change nothing on this host"
            )
            raise UsageError(f"--only {name}: {why}")
    names = [name for name in changing if not options.only or name in options.only]
    if not names:
        why = plan.skips[0].reason if plan.skips else "every setting already has the profile's value"
        raise Refused(
            f"profile {profile.name}: nothing to screen: the profile would change nothing on this host: {why}"
        )
    wanted = sum(choice != "leave" for choice in profile.knobs.values())
    return KnobPlan(
        profile=profile.name,
        isolated=format_cpus(plan.cpus.isolated),
        housekeeping=format_cpus(plan.cpus.housekeeping),
        screened=tuple(ScreenedKnob(name, KNOBS[name].needs) for name in names),
        fixed=tuple(name for name in changing if name not in names),
        idle=wanted - len(changing),
        choices={name: profile.knobs[name] for name in changing},
        services=dict(profile.services) if "services" in changing else {},
        boot=tuple(plan.missing_boot),
        rest=profile.housekeeping,
    )


class KnobHost:
    """Applies profiles and restores the host. `identity`: identifies this screening in quiet's journal; `refused`: for
    each knob that could not be applied, the reason.
    """

    def __init__(self, plan: KnobPlan, identity: str, host: Host | None = None) -> None:
        self._plan, self._source, self._host = plan, f"{SOURCE}{identity}", host or Host()
        self.refused: dict[str, str] = {}

    def restore_left_behind(self) -> bool:
        """Restore settings left by a killed process of this screening. Returns whether there were any. Raises Refused
        if another program has applied settings.
        """
        record = applied_state(self._host)
        if record is None:
            return False
        if record.source != self._source:
            raise Refused(f"'{record.profile}' is applied to this host; run `quiet restore` first")
        end_hold(self._host, self._source)
        return True

    @contextmanager
    def applied(self, left_out: LeftOut) -> Iterator[None]:
        """A context in which the profile is applied without these knobs. Raises Refused if it cannot be applied,
        Incomplete after a partial restore.
        """
        profile = self._plan.as_profile(left_out, self._source)
        if not profile.knobs:
            yield
            return
        try:
            receipt = quiet.apply(profile, root=self._host, temporary=True)
            self.refused.update({each.knob: each.reason for each in receipt.failures})
            yield
        finally:
            end_hold(self._host, self._source)


def toml(plan: KnobPlan, kept: Iterable[str], name: str, summary: str) -> str:
    """A profile of these knobs as TOML, for `quiet plan --profile FILE`."""
    lines = [
        f"# Written by `cbench screen knobs`: the smallest profile for this host, from the knobs of {plan.profile}.",
        f"name = {json.dumps(name)}",
        f"summary = {json.dumps(summary)}",
        "",
        "[cpus]",
        f"isolated = {json.dumps(plan.isolated)}",
        f"housekeeping = {json.dumps(plan.rest)}",
        "",
        "[knobs]",
    ]
    for knob in kept:
        choice = plan.choices[knob]
        number = KNOBS[knob].numeric and choice.isdecimal() and choice not in KNOBS[knob].choices
        lines.append(f"{json.dumps(knob)} = {choice if number else json.dumps(choice)}")
    if "services" in kept and any(plan.services.values()):
        lines += ["", "[services]"]
        lines += [f"{key} = {json.dumps(list(names))}" for key, names in plan.services.items() if names]
    return "\n".join(lines) + "\n"
