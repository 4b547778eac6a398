"""Define knobs that reserve huge pages on the NUMA nodes of the isolated CPUs.

Source: admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

from quiet.host.proc import meminfo
from quiet.knobs.knob import DesiredValue, Knob, Rule, RuleContext, RuleResult, Skip
from quiet.targets import value_types

_NODES = "/sys/devices/system/node"
_WHOLE = "/sys/kernel/mm/hugepages"
_GIGABYTE = 1048576  # KiB


def _pages(size: int | None) -> Rule:
    """The rule for pages of `size` KiB (None: the default size): a minimum for each node with isolated CPUs."""

    def rule(context: RuleContext) -> RuleResult:
        kib = size or meminfo(context.facts.reader, "Hugepagesize")
        nodes = [node for node, cpus in sorted(context.facts.nodes.items()) if cpus & context.cpus.isolated]
        folders = [f"{_NODES}/node{node}/hugepages" for node in nodes]
        local = [f for f in folders if context.facts.reader.exists(f"{f}/hugepages-{kib}kB")]
        for folder in local or [_WHOLE]:
            path = f"{folder}/hugepages-{kib}kB/nr_hugepages"
            current = context.text(path)
            if current is None:
                yield Skip(f"file:{path}", "this kernel or processor does not support pages of this size")
            elif context.choice.isdecimal() and int(current) < int(context.choice):
                yield DesiredValue(f"file:{path}", context.choice, current=current)

    return rule


def _knob(name: str, title: str, size: int | None) -> Knob:
    return Knob(
        name=name,
        title=title,
        why="the work then has this many pages, and no memory needs to be compacted for them during the run",
        doc="admin-guide/mm/hugetlbpage.rst",
        rule=_pages(size),
        kind=value_types.NUMBER,
        choices=("leave",),
        numeric=True,
        targets=f"file:{_NODES}/nodeN/hugepages/hugepages-{size or 'SIZE'}kB/nr_hugepages of the isolated CPUs' nodes",
        clamps=True,  # with fragmented memory, the kernel allocates fewer
        risk="the rest of the host cannot use this memory until the restore",
    )


KNOBS = (
    _knob("hugepages", "huge pages of the default size, for each node", None),
    _knob("hugepages.1G", "huge pages of 1 GiB, for each node", _GIGABYTE),
)
