"""Memory management in the background: huge pages, page merging, statistics.

Source: admin-guide/mm/{transhuge,ksm}.rst, admin-guide/sysctl/vm.rst.
"""

from __future__ import annotations

from quiet.knobs.knob import Knob, RuleContext, at_least, derived, one_file
from quiet.targets import value_types

_THP = "/sys/kernel/mm/transparent_hugepage/"
_KSM = "/sys/kernel/mm/ksm/run"
_STAT = "/proc/sys/vm/stat_interval"
_RARELY = 120  # seconds


def _at_most_on_request(scene: RuleContext, current: str) -> str | None:
    """Huge pages only on request (madvise); "never" is quiet already."""
    if scene.choice == "never":
        return "never"
    return None if value_types.plain(value_types.CHOICE, current) == "never" else "madvise"


def _merging(scene: RuleContext, current: str) -> str | None:
    return "0" if current == "1" else None  # 2 means: unmerge everything, which would itself be work


KNOBS = (
    Knob(
        name="thp",
        title="transparent huge pages",
        why="with 'always', pages are merged and split behind the work's back; a program can still ask for them",
        doc="admin-guide/mm/transhuge.rst",
        **derived(_THP + "enabled", _at_most_on_request, kind=value_types.CHOICE),
        choices=("quiet", "never", "leave"),
    ),
    Knob(
        name="thp.defrag",
        title="memory compaction for huge pages",
        why="a page fault may stop to compact memory, or wake the threads that do",
        doc="admin-guide/mm/transhuge.rst",
        **derived(_THP + "defrag", _at_most_on_request, kind=value_types.CHOICE),
        choices=("quiet", "never", "leave"),
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
        **derived(_KSM, _merging),
    ),
    Knob(
        name="vm.stat_interval",
        title="seconds between updates of memory statistics",
        why="each update runs on every CPU that has counters to fold in",
        doc="admin-guide/sysctl/vm.rst (stat_interval)",
        **at_least(_STAT, _RARELY),
    ),
)
