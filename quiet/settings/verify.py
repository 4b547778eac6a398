"""Verify a profile by planning again: a plan without changes means that every setting still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiet.errors import Refused, UsageError
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import parse_requested
from quiet.machine.facts import Facts
from quiet.settings import journal, plan
from quiet.settings.plan import Plan
from quiet.settings.profile import Profile, load

if TYPE_CHECKING:
    from quiet.settings.applied_state import AppliedState


def plan_now(
    reader: Reader, profile: Profile, requested: str | None, facts: Facts | None = None
) -> tuple[Plan, AppliedState | None]:
    """The plan for the host as it is now, and the applied state if this profile is applied to these CPUs.

    In that case, the CPUs stay the same, and changes that the kernel rejected or rounded are not tried again.
    """
    facts = facts or Facts(reader)
    record = journal.load(reader)
    ours = record is not None and (record.profile, record.source) == (profile.name, profile.source)
    if (
        record is not None
        and ours
        and (requested is None or parse_requested(requested, "--cpus") == record.cpus.isolated)
    ):
        return plan.make(reader, profile, record.cpus, record.accepted(), record.refused, facts), record
    return plan.make(reader, profile, profile.choose(facts, requested), facts=facts), None


def applied_profile(reader: Reader, name: str | None) -> Profile:
    """The profile to verify: the named profile; without a name, the applied one; if none is applied, "bench". Raises
    Refused if settings are held without a profile.
    """
    if name is not None:
        return load(name)
    record = journal.load(reader)
    try:
        return load(record.source if record else "bench")
    except UsageError as error:
        if record is None or "/" in record.source:
            raise
        raise Refused(f"'{record.profile}' is applied, but is not a profile; name one with --profile") from error
