"""Define knobs for background memory management: huge pages, merging, statistics, compaction, reclaim, write-back.

Sources: admin-guide/mm/{transhuge,ksm,concepts}.rst, admin-guide/sysctl/vm.rst, admin-guide/mm/damon/usage.rst.
dirty_ratio and dirty_bytes are one setting in two units: writing one sets the other to 0, and 0 bytes cannot be
written. Therefore both files are journaled, and the one that was in use is restored.
"""

from __future__ import annotations

from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, Skip, at_least, derived, one_file
from quiet.targets import value_types

_THP = "/sys/kernel/mm/transparent_hugepage/"
_KSM = "/sys/kernel/mm/ksm/run"
_STAT = "/proc/sys/vm/stat_interval"
_RARELY = 120  # seconds
_VM = "/proc/sys/vm/"
_DOC = "admin-guide/sysctl/vm.rst"
_SCAN = "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"
_DEMOTION = "/sys/kernel/mm/numa/demotion_enabled"
_KDAMONDS = "/sys/kernel/mm/damon/admin/kdamonds"
_DAMON_MODULES = ("damon_reclaim", "damon_lru_sort", "damon_stat")
_HOUR = 3_600_000  # milliseconds
_INTERVAL = at_least(_STAT, _RARELY)


def _at_most_on_request(context: RuleContext, current: str) -> str | None:
    """The value that limits huge pages to explicit requests ("madvise"), or "never" if the profile's choice is "never".

    None if the choice is "quiet" and the current value is "never", which is already quiet.
    """
    if context.choice == "never":
        return "never"
    return None if value_types.plain(value_types.CHOICE, current) == "never" else "madvise"


def _thp(context: RuleContext) -> RuleResult:
    """Set the global policy, and the separate policy of each huge page size.

    A size with the policy "inherit" follows the global policy (Linux 6.8).
    """
    yield from derived(_THP + "enabled", _at_most_on_request, kind=value_types.CHOICE)["rule"](context)
    for path, current in _sizes(context, "enabled"):
        if current == "always" or (current == "madvise" and context.choice == "never"):
            yield DesiredValue(f"file:{path}", "never" if context.choice == "never" else "madvise")


def _shmem(context: RuleContext) -> RuleResult:
    path = _THP + "shmem_enabled"
    whole = value_types.plain(value_types.CHOICE, context.text(path) or "")
    if not whole:
        yield Skip(f"file:{path}", NOT_HERE)
    for file, current in ((path, whole), *_sizes(context, "shmem_enabled")):
        if current in ("always", "within_size", "force") or (current == "advise" and context.choice == "never"):
            yield DesiredValue(f"file:{file}", "never" if context.choice == "never" else "advise")


def _sizes(context: RuleContext, name: str) -> list[tuple[str, str]]:
    """The path and value of a file in the directory of each huge page size."""
    folders = (folder for folder in context.facts.reader.names(_THP) if folder.startswith("hugepages-"))
    paths = (f"{_THP}{folder}/{name}" for folder in folders)
    return [(path, value_types.plain(value_types.CHOICE, text)) for path in paths if (text := context.text(path))]


def _statistics(context: RuleContext) -> RuleResult:
    if context.choice == "quiet" and context.facts.release >= (6, 8):
        yield Skip(
            f"file:{_STAT}",
            "since Linux 6.8 the kernel skips the CPUs of an isolated partition, isolcpus= or nohz_full=; for other "
            "CPUs, set a number",
        )
    else:
        yield from _INTERVAL["rule"](context)


def _damon(context: RuleContext) -> RuleResult:
    reader = context.facts.reader
    states = [f"{_KDAMONDS}/{number}/state" for number in reader.numbered(_KDAMONDS)]
    for path in states:
        if (current := context.text(path)) is not None:
            yield DesiredValue(f"file:{path}", "off", current=current, kind=value_types.TEXT)
    modules = [f"/sys/module/{name}/parameters/enabled" for name in _DAMON_MODULES]
    for path in modules:
        if (current := context.text(path)) is not None:
            yield DesiredValue(f"file:{path}", "N", current=current)


KNOBS = (
    Knob(
        name="thp",
        gain="repeatable memory behavior",
        noticed="programs get fewer huge pages",
        title="transparent huge pages",
        why="with 'always', the kernel merges and splits pages at any time; a program can still request huge pages",
        doc="admin-guide/mm/transhuge.rst",
        rule=_thp,
        kind=value_types.CHOICE,
        choices=("quiet", "never", "leave"),
        targets=f"file:{_THP}enabled and file:{_THP}hugepages-*kB/enabled, unless it is 'inherit' or already quieter",
        kernels="a policy for each page size: since 6.8",
        risk="smaller pages change the measurement: each TLB entry covers 4 KiB instead of 2 MiB",
    ),
    Knob(
        name="thp.shmem",
        gain="repeatable memory behavior",
        title="transparent huge pages of shared memory and tmpfs",
        why="with 'always', the kernel also merges and splits pages of shared memory and of files in tmpfs at any time",
        doc="admin-guide/mm/transhuge.rst (shmem_enabled)",
        rule=_shmem,
        kind=value_types.CHOICE,
        choices=("quiet", "never", "leave"),
        targets=f"file:{_THP}shmem_enabled and file:{_THP}hugepages-*kB/shmem_enabled, unless it is 'inherit' or "
        "already quieter; a tmpfs mounted with huge= follows that option instead",
        kernels="a policy for each page size: since 6.11",
        risk="the same as for the knob thp",
    ),
    Knob(
        name="thp.defrag",
        gain="repeatable memory behavior",
        title="memory compaction for huge pages",
        why="a page fault may compact memory before it returns, or wake the threads that compact memory",
        doc="admin-guide/mm/transhuge.rst",
        **derived(_THP + "defrag", _at_most_on_request, kind=value_types.CHOICE),
        choices=("quiet", "never", "leave"),
    ),
    Knob(
        name="thp.khugepaged",
        noticed="running programs get fewer huge pages",
        title="compaction by khugepaged",
        why="khugepaged reclaims and compacts memory to get a huge page; the knob thp.scan limits how often it "
        "collapses pages",
        doc="admin-guide/mm/transhuge.rst",
        **one_file(_THP + "khugepaged/defrag", "0"),
    ),
    Knob(
        name="ksm",
        gain="repeatable memory behavior",
        noticed="equal pages of virtual machines are not merged",
        title="merging of equal pages (KSM)",
        why="ksmd scans memory and write-protects pages that the measured work then faults on",
        doc="admin-guide/mm/ksm.rst",
        **derived(_KSM, lambda context, now: "0" if now == "1" else None),  # 2 would unmerge all pages
    ),
    Knob(
        name="vm.stat_interval",
        title="seconds between updates of memory statistics",
        why="each update runs on every CPU that has counters to fold in",
        doc="admin-guide/sysctl/vm.rst (stat_interval)",
        rule=_statistics,
        kind=value_types.NUMBER,
        numeric=True,
        targets=f"file:{_STAT}",
        kernels="until 6.4 for CPUs isolated at boot, until 6.7 for CPUs of a partition; later kernels skip these CPUs",
    ),
    Knob(
        name="vm.compaction",
        title="compaction in the background",
        why="kcompactd moves pages in the background, and a program that uses a moved page faults or waits",
        doc=f"{_DOC} (compaction_proactiveness)",
        kernels="since 5.9",
        **one_file(f"{_VM}compaction_proactiveness", "0"),
    ),
    Knob(
        name="vm.compact_unevictable",
        gain="repeatable memory behavior",
        title="compaction of locked memory",
        why="memory that the work has locked (mlock) may otherwise be moved, and then faults again",
        doc=f"{_DOC} (compact_unevictable_allowed)",
        **one_file(f"{_VM}compact_unevictable_allowed", "0"),
    ),
    Knob(
        name="vm.watermark_boost",
        title="reclaim ahead of need after fragmentation",
        why="after an allocation has mixed page types, kswapd frees memory without demand",
        doc=f"{_DOC} (watermark_boost_factor)",
        **one_file(f"{_VM}watermark_boost_factor", "0"),
    ),
    Knob(
        name="vm.zone_reclaim",
        gain="repeatable memory behavior",
        title="reclaim before another node's memory is used",
        why="with zone reclaim, an allocation first spends time on reclaiming its own node's pages",
        doc=f"{_DOC} (zone_reclaim_mode)",
        **one_file(f"{_VM}zone_reclaim_mode", "0", "this kernel does not support NUMA"),
    ),
    Knob(
        name="vm.demotion",
        gain="repeatable memory behavior",
        title="moving cold pages to slower memory",
        why="pages that the work has not used for a while may move to a slower tier of memory",
        doc="ABI/testing/sysfs-kernel-mm-numa (demotion_enabled)",
        **one_file(_DEMOTION, "false", "this kernel has no memory tiers", kind=value_types.FLAG),
    ),
    Knob(
        name="thp.scan",
        title="milliseconds between khugepaged's scans",
        why="khugepaged unmaps the pages that it collapses into a huge page, with TLB shootdowns on the CPUs that use "
        "them",
        doc="admin-guide/mm/transhuge.rst (khugepaged/scan_sleep_millisecs)",
        **at_least(_SCAN, _HOUR),
    ),
    Knob(
        name="damon",
        noticed="memory that DAMON manages is neither reclaimed nor sorted",
        title="monitoring of memory accesses (DAMON)",
        why="DAMON clears the accessed bits of some pages every 5 ms by default, and may move or reclaim pages",
        doc="admin-guide/mm/damon/usage.rst, admin-guide/mm/damon/reclaim.rst",
        rule=_damon,
        kind=value_types.FLAG,
        targets=f"file:{_KDAMONDS}/N/state, and the parameter 'enabled' of the modules damon_reclaim, damon_lru_sort, "
        "damon_stat",
        refusals={22: "DAMON's parameters are no longer complete", 16: "another user of DAMON runs"},
        risk="until the restore DAMON does not free or sort the memory that it was configured for",
    ),
    Knob(
        name="writeback.interval",
        noticed="a crash loses a few more seconds of written data",
        title="hundredths of a second between the flushers' wake-ups",
        why="each wake-up scans all dirty files and may start writing to the disk",
        doc=f"{_DOC} (dirty_writeback_centisecs)",
        **at_least(f"{_VM}dirty_writeback_centisecs", 1500, never=0),
        risk="a crash loses that many more seconds of written data",
    ),
    Knob(
        name="writeback.expire",
        noticed="a crash loses a few more seconds of written data",
        title="hundredths of a second until a dirty page must be written",
        why="a file that is rewritten during the work is then written to the disk less often",
        doc=f"{_DOC} (dirty_expire_centisecs)",
        **at_least(f"{_VM}dirty_expire_centisecs", 6000),
        risk="a crash loses that many more seconds of written data",
    ),
    Knob(
        name="writeback.background",
        title="percent of memory that may be dirty before the flushers start",
        why="above this share, the flushers write to the disk during the measured work",
        doc=f"{_DOC} (dirty_background_ratio)",
        **at_least(f"{_VM}dirty_background_ratio", 10),
        entangled=lambda context: (f"file:{_VM}dirty_background_bytes",),
        moves="dirty_background_bytes, the same limit in bytes",
    ),
    Knob(
        name="writeback.limit",
        title="percent of memory that may be dirty before a writing program is stopped",
        why="above this share, a program that writes sleeps until the disk has caught up",
        doc=f"{_DOC} (dirty_ratio)",
        **at_least(f"{_VM}dirty_ratio", 40),
        entangled=lambda context: (f"file:{_VM}dirty_bytes",),
        moves="dirty_bytes, the same limit in bytes",
    ),
    Knob(
        name="writeback.laptop_mode",
        title="laptop mode",
        why="in this mode, each read from the disk starts a timer after which all dirty pages are written",
        doc=f"{_DOC} (laptop_mode), admin-guide/laptops/laptop-mode.rst",
        **one_file(f"{_VM}laptop_mode", "0"),
    ),
)
