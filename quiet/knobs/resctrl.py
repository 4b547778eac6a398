"""Define knobs that reserve a part of the caches for the isolated CPUs, and limit the bandwidth of other CPUs.

Source: filesystems/resctrl.rst (arch/x86/resctrl.rst before Linux 6.16).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip
from quiet.machine.facts import CPU
from quiet.targets import registry, value_types
from quiet.targets.resctrl import ROOT, groups
from quiet.targets.schemata import lines

GROUP = "/quiet"
_MOUNT = f"mount:{ROOT}"
_TARGET = f"resctrl:{GROUP}"
Masks = dict[int, int]  # the ways of each cache as bits, by the cache's id


class DivisibleCache(NamedTuple):
    """A cache that can be divided. With CDP, it has one resource for code and one for data, which get the same ways."""

    level: str
    resources: tuple[str, ...]
    fewest: int  # minimum number of ways of a group
    shareable: int  # ways that devices may also fill
    sparse: bool  # whether the ways of a group need not be contiguous


def read_masks(line: str) -> Masks:
    """Parse a line of schemata without its name: "0=ff0;1=00f" gives {0: 0xff0, 1: 0xf}."""
    pairs = (domain.partition("=") for domain in line.split(";"))
    return {int(name): int(mask, 16) for name, _, mask in pairs if mask}


def write_masks(masks: Masks) -> str:
    """Format masks as a line of schemata, without its name."""
    return ";".join(f"{name}={mask:x}" for name, mask in sorted(masks.items()))


def _run(mask: int) -> bool:
    """Whether the set bits of a mask are contiguous; False if no bit is set."""
    low = mask & -mask
    return mask > 0 and (mask // low) & (mask // low + 1) == 0


def split(whole: int, usable: int, ways: int, cache: DivisibleCache) -> int:
    """Pick up to `ways` contiguous bits of `usable` such that the rest of `whole` is valid too; 0 if there are none."""
    for count in range(ways, cache.fewest - 1, -1):
        for start in range(whole.bit_length()):
            mask = ((1 << count) - 1) << start
            rest = whole & ~mask
            lawful = rest.bit_count() >= cache.fewest and (cache.sparse or _run(rest))
            if mask & usable == mask and lawful:
                return mask
    return 0


def _caches(context: RuleContext) -> list[DivisibleCache]:
    reader = context.facts.reader
    caches: dict[str, DivisibleCache] = {}
    for name in reader.names(f"{ROOT}/info"):
        base = f"{ROOT}/info/{name}/"
        if not reader.exists(base + "cbm_mask"):
            continue
        level = name.removesuffix("CODE").removesuffix("DATA")
        before = caches[level].resources if level in caches else ()
        fewest = int(context.text(base + "min_cbm_bits") or 1)
        shareable = int(context.text(base + "shareable_bits") or "0", 16)
        caches[level] = DivisibleCache(
            level, (*before, name), fewest, shareable, context.text(base + "sparse_masks") == "1"
        )
    return list(caches.values())


def _users(context: RuleContext, level: str) -> dict[int, CpuSet]:
    """The online CPUs that use each cache of a level ("L3"), by the cache's id."""
    users: dict[int, CpuSet] = {}
    seen: set[int] = set()
    for cpu in sorted(context.facts.online):
        if cpu in seen:
            continue
        for index in context.facts.reader.numbered(f"{CPU}/cpu{cpu}/cache", "index"):
            base = f"{CPU}/cpu{cpu}/cache/index{index}/"
            number = context.text(base + "id")
            if context.text(base + "level") != level[1:] or not number or context.text(base + "type") == "Instruction":
                continue
            cpus = cpulist.parse(context.text(base + "shared_cpu_list") or str(cpu)) & context.facts.online
            users[int(number)] = cpus
            seen |= cpus
    return users


def _divided(
    context: RuleContext, cache: DivisibleCache, schemata: Mapping[str, Mapping[str, str]]
) -> dict[str, tuple[Masks, Masks]]:
    """The masks of the default group and of our group for each resource of a cache; empty if it cannot be divided."""
    users = _users(context, cache.level)
    mine: Masks = {}
    masks = {
        group: {name: read_masks(values.get(name, "")) for name in cache.resources}
        for group, values in schemata.items()
    }
    # the divisible part: the ways of the default group and the ways that our group already has
    wholes = {
        name: {domain: mask | masks[GROUP][name].get(domain, 0) for domain, mask in masks[""][name].items()}
        for name in cache.resources
    }
    others = [masks[group][name] for group in schemata.keys() - {"", GROUP} for name in cache.resources]
    for domain in wholes[cache.resources[0]]:
        taken = reduce(or_, (mask.get(domain, 0) for mask in others), cache.shareable)
        whole = reduce(and_, (wholes[name][domain] for name in cache.resources))
        cpus = users.get(domain, frozenset())
        # an exclusive group must have its own ways in every cache, even in caches without any of its CPUs
        ways = cache.fewest
        if cpus & context.cpus.isolated:
            half = whole.bit_count() // 2
            ways = max(cache.fewest, half if cpus - context.cpus.isolated else whole.bit_count() - cache.fewest)
        mine[domain] = split(whole, whole & ~taken, ways, cache)
        if not mine[domain]:
            return {}
    return {name: ({domain: wholes[name][domain] & ~mine[domain] for domain in mine}, mine) for name in cache.resources}


def _group(context: RuleContext) -> RuleResult:
    reader = context.facts.reader
    if not reader.exists(ROOT):
        yield Skip(_TARGET, "this processor or kernel cannot divide its caches (no resctrl)")
        return
    if registry.get(reader, _MOUNT) is None:
        if _cannot(context):
            yield Skip(_TARGET, "this processor can monitor its caches, but not divide them (no CAT)")
            return
        yield DesiredValue(_MOUNT, "resctrl", "the caches are divided through this file system", creates=True)
        yield Skip(_TARGET, "the group's ways are known once resctrl is mounted; `quiet apply` mounts it")
        return
    yield from _exclusive(context)


def _cannot(context: RuleContext) -> bool:
    """Whether an x86 processor reports that it cannot divide a cache; other architectures do not report this."""
    text = context.text("/proc/cpuinfo") or ""
    start = text.find("\nflags")
    flags = text[start + 1 :].partition("\n")[0].split() if start >= 0 else []
    return bool(flags) and not {"cat_l2", "cat_l3"} & set(flags)


def _exclusive(context: RuleContext) -> RuleResult:
    reader = context.facts.reader
    caches = _caches(context)
    if not caches:
        yield Skip(_TARGET, "no cache of this processor can be divided (no CAT)")
        return
    names = groups(reader)
    for name in names:
        owned = cpulist.parse(context.text(f"{ROOT}/{name}/cpus_list") or "") & context.cpus.isolated
        if owned:
            yield Skip(_TARGET, f"CPU {cpulist.format(owned)} is already in the resctrl group {name}")
            return
    schemata = {group: lines(reader, group) for group in ("", GROUP, *(f"/{name}" for name in names))}
    divided: dict[str, tuple[Masks, Masks]] = {}
    for cache in caches:
        parts = _divided(context, cache, schemata)
        if not parts:
            yield Skip(_TARGET, f"no ways of {cache.level} are free: other groups or devices use them")
            return
        divided |= parts
    # a restore runs in reverse: it removes the group, then returns its ways to the default group, and unmounts last
    for name, (rest, _) in divided.items():
        why = f"the rest of {name}, for all other CPUs"
        yield DesiredValue(f"schemata:/{name}", write_masks(rest), why, kind=value_types.SCHEMATA)
    isolated = cpulist.format(context.cpus.isolated)
    yield DesiredValue(_TARGET, "present", "the group of the isolated CPUs", creates=True)
    yield DesiredValue(f"{_TARGET}/cpus_list", isolated, "the CPUs of the group", True, kind=value_types.CPULIST)
    for name, (_, mine) in divided.items():
        why = f"the part of {name} that only the isolated CPUs fill"
        yield DesiredValue(f"schemata:{GROUP}/{name}", write_masks(mine), why, True, kind=value_types.SCHEMATA)
    yield DesiredValue(f"{_TARGET}/mode", "exclusive", "the kernel gives the same ways to no other group", True)


def _bandwidth(context: RuleContext) -> RuleResult:
    target = "schemata:/MB"
    line = lines(context.facts.reader, "").get("MB")
    if line is None:
        yield Skip(target, "memory bandwidth cannot be divided here, or resctrl is not mounted")
        return
    domains = {name: int(value) for name, _, value in (part.partition("=") for part in line.split(";"))}
    if max(domains.values()) > 100:
        yield Skip(target, "this processor counts bandwidth in its own units, or resctrl is mounted with mba_MBps")
        return
    most = int(context.choice) if context.choice.isdecimal() else 100
    wanted = ";".join(f"{name}={min(value, most)}" for name, value in domains.items())
    yield DesiredValue(target, wanted, current=line)


KNOBS = (
    Knob(
        name="resctrl",
        gain="repeatable memory behavior",
        noticed="other CPUs keep half of the shared caches",
        title="a part of the caches for the isolated CPUs only",
        why="all CPUs of a cache fill the same ways, so other work evicts the data of the measured work",
        doc="filesystems/resctrl.rst (arch/x86/resctrl.rst before Linux 6.16)",
        rule=_group,
        path=f"{ROOT}{GROUP}/schemata, cpus_list, mode",
        targets=f"{_MOUNT}, schemata:/RESOURCE, {_TARGET} with its cpus_list, schemata and mode",
        after=("smt", "cpuset"),
        atomic=True,
        refusals={
            2: "the resctrl group could not be created",
            28: "the processor has no class of service left for another group",
            16: "another use of resctrl prevents this",
        },
        verdicts={"verlap": "other groups have the same ways of the cache", "exclusive": "another group is exclusive"},
        risk="all other CPUs of these caches keep only half of them, and the measured work has a cache size that "
        "no real machine has",
    ),
    Knob(
        name="resctrl.bandwidth",
        gain="repeatable memory behavior",
        noticed="other programs wait longer for memory",
        title="percent of the memory bandwidth for all other CPUs",
        why="reads and writes of other CPUs delay the measured work's cache misses",
        doc="filesystems/resctrl.rst (memory bandwidth allocation)",
        rule=_bandwidth,
        kind=value_types.SCHEMATA,
        choices=("leave",),
        numeric=True,
        targets="schemata:/MB",
        path=f"{ROOT}/schemata",
        after=("resctrl",),
        clamps=True,  # the kernel rounds up to a step of the processor
        refusals={22: "less than the processor supports"},
        risk="every other program of the machine waits longer for memory",
    ),
)
