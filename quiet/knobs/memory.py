"""Memory management in the background: huge pages, page merging, statistics.

Source: admin-guide/mm/{transhuge,ksm}.rst, admin-guide/sysctl/vm.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.knobs.knob import DesiredValue, Knob, Rule, RuleContext, Skip, at_least, one_file
from quiet.targets import value_types

_THP = "/sys/kernel/mm/transparent_hugepage/"
_KSM = "/sys/kernel/mm/ksm/run"
_STAT = "/proc/sys/vm/stat_interval"
_RARELY = 120  # seconds


def _at_most_on_request(path: str) -> Rule:
    """Huge pages only for who asks (madvise); "never" is quiet already."""

    def rule(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
        current = scene.text(path)
        if current is None:
            yield Skip(f"file:{path}", "this kernel does not have it")
        elif scene.choice == "never" or value_types.plain(value_types.CHOICE, current) != "never":
            yield DesiredValue(f"file:{path}", "never" if scene.choice == "never" else "madvise", current=current)

    return rule


def _merging(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    current = scene.text(_KSM)
    if current is None:
        yield Skip(f"file:{_KSM}", "this kernel does not have it")
    elif current == "1":  # 2 means: unmerge everything, which would itself be work
        yield DesiredValue(f"file:{_KSM}", "0", current=current)


KNOBS = (
    Knob(
        name="thp",
        title="transparent huge pages",
        why="with 'always', pages are merged and split behind the work's back; a program can still ask for them",
        doc="admin-guide/mm/transhuge.rst",
        rule=_at_most_on_request(_THP + "enabled"),
        kind=value_types.CHOICE,
        choices=("quiet", "never", "leave"),
        targets=f"file:{_THP}enabled",
    ),
    Knob(
        name="thp.defrag",
        title="memory compaction for huge pages",
        why="a page fault may stop to compact memory, or wake the threads that do",
        doc="admin-guide/mm/transhuge.rst",
        rule=_at_most_on_request(_THP + "defrag"),
        kind=value_types.CHOICE,
        choices=("quiet", "never", "leave"),
        targets=f"file:{_THP}defrag",
    ),
    Knob(
        name="thp.khugepaged",
        title="compaction by khugepaged",
        why="khugepaged compacts and collapses pages in the background, with TLB shootdowns on every CPU",
        doc="admin-guide/mm/transhuge.rst",
        **one_file(_THP + "khugepaged/defrag", "0"),
    ),
    Knob(
        name="ksm",
        title="merging of equal pages (KSM)",
        why="ksmd scans memory and write-protects pages that the measured work then faults on",
        doc="admin-guide/mm/ksm.rst",
        rule=_merging,
        kind=value_types.NUMBER,
        targets=f"file:{_KSM}",
    ),
    Knob(
        name="vm.stat_interval",
        title="seconds between updates of memory statistics",
        why="each update runs on every CPU that has counters to fold in",
        doc="admin-guide/sysctl/vm.rst (stat_interval)",
        **at_least(_STAT, _RARELY),
    ),
)
