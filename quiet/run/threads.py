"""Decide whether the scheduler balances a command over the isolated CPUs, and which NUMA nodes provide its memory."""

from __future__ import annotations

import os
from typing import NamedTuple

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import UsageError
from quiet.host.host import Host
from quiet.knobs.cpuset import NOT_BALANCED
from quiet.machine.facts import Facts
from quiet.run.options import RunRequest
from quiet.settings import journal
from quiet.settings.profile import Profile


class RunProfile(NamedTuple):
    """The profile of one run. `note`: the choice for the command with its reason, "" for none."""

    profile: Profile
    note: str


def for_request(host: Host, profile: Profile, request: RunRequest) -> RunProfile:
    """The profile that a front requests, adapted to its command. Raises QuietError if this host cannot provide it."""
    mems = check_mems(request.mems) if request.mems is not None else None
    facts, record = Facts(host), journal.load(host)
    cpus = (record.cpus if record else profile.choose(facts, request.cpus)).isolated
    return profile_for_run(profile, request.threads, request.pinned, mems, cpus, facts)


def check_mems(text: str) -> str:
    """Check the value of --mems and return it. Raises UsageError unless it is "auto", "leave" or a list of nodes."""
    if text not in ("auto", "leave"):
        try:
            nodes = cpulist.parse(text)
        except UsageError as error:
            raise UsageError(f"--mems: {error}") from None
        if not nodes:
            raise UsageError("--mems lists no node; use auto, leave, or a list such as 0-1")
    return text


def profile_for_run(
    profile: Profile, threads: bool | None, pinned: str, mems: str | None, cpus: CpuSet, facts: Facts
) -> RunProfile:
    """The profile with the partition that the options and the command require.

    `threads`: None selects balancing if there are several CPUs and nothing (`pinned`) pins the command. `mems`: None
    keeps the profile's value. Raises UsageError if this host cannot provide --threads or --mems.
    """
    partition = profile.knobs.get("cpuset", "leave")
    reason = _impossible(profile.name, partition, cpus, facts)
    if threads and reason:
        raise UsageError(f"--threads: {reason}")
    note = ""
    if threads is False and partition == "balanced":
        partition = "quiet"
    elif threads is not False and reason:
        note = f"threads stay on the CPU that they start on: {reason}" if reason is NOT_BALANCED and not pinned else ""
    elif threads or (threads is None and not pinned):
        if partition != "balanced":
            note = f"threads may use all of CPUs {cpulist.format(cpus)} (--no-threads keeps each thread on its CPU)"
        partition = "balanced"
    elif threads is None:
        partition = "quiet" if partition == "balanced" else partition
        note = f"the CPUs are not balanced, because {os.path.basename(pinned)} pins its tasks (--threads balances them)"
    choices = {**profile.knobs, "cpuset": partition, **_mems(mems, facts)}
    return RunProfile(profile._replace(knobs=choices), note)


def _impossible(profile: str, partition: str, cpus: CpuSet, facts: Facts) -> str:
    """The reason why the scheduler cannot balance these CPUs; "" if it can."""
    if partition == "leave":
        return f'profile {profile} sets cpuset = "leave", so there is no partition'
    if len(cpus) == 1:
        return f"only CPU {cpulist.format(cpus)} is isolated; add more with --cpus"
    return NOT_BALANCED if cpus & facts.boot_isolated else ""


def _mems(mems: str | None, facts: Facts) -> dict[str, str]:
    if mems is None:
        return {}
    if mems[0].isdigit() and (absent := cpulist.parse(mems) - facts.memory_nodes):
        known = cpulist.format(facts.memory_nodes)
        raise UsageError(f"--mems: no memory on node {cpulist.format(absent)}; nodes with memory: {known}")
    return {"cpuset.mems": "quiet" if mems == "auto" else mems}
