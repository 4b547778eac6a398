"""Properties of the whole, on any machine: a second apply changes nothing, restore is exact, and others' changes are
kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quiet import cpulist
from quiet.host.host import Host
from quiet.knobs.registry import BY_NAME
from quiet.settings.apply import apply
from quiet.settings.profile import Profile
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from quiet.targets import value_types
from tests.quiet.kernels import KNOBS, profile
from tests.quiet.lives import Life
from tests.trees import contents, cpufreq, machine, plant

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NUMBERS = {
    "proc/sys/kernel/timer_migration": ("0", "1"),
    "proc/sys/kernel/nmi_watchdog": ("0", "1"),
    "proc/sys/kernel/perf_event_max_sample_rate": ("1", "25000", "100000"),
    "proc/sys/kernel/perf_cpu_time_max_percent": ("0", "1", "25", "100"),
    "proc/sys/vm/stat_interval": ("1", "60", "120"),
    "proc/sys/vm/compaction_proactiveness": ("0", "20"),
    "proc/sys/vm/dirty_writeback_centisecs": ("0", "500", "1500", "9000"),
    "proc/sys/kernel/printk": ("7\t4\t1\t7", "1 4 1 7", "0\t0\t0\t0"),
    "sys/module/kfence/parameters/sample_interval": ("0", "100"),
    "sys/module/kfence/parameters/deferrable": ("0",),
    "sys/kernel/mm/numa/demotion_enabled": ("true", "false"),
    "sys/kernel/rcu_normal": ("0", "1"),
    "sys/kernel/mm/ksm/run": ("0", "1", "2"),
    "sys/kernel/mm/transparent_hugepage/enabled": ("always", "madvise", "never"),
    "sys/kernel/mm/transparent_hugepage/defrag": ("always", "defer", "defer+madvise", "never"),
    "sys/kernel/mm/transparent_hugepage/khugepaged/defrag": ("0", "1"),
    "sys/devices/system/cpu/intel_pstate/no_turbo": ("0", "1"),
}
CPUS = 4
SOME = st.frozensets(st.integers(0, CPUS - 1), min_size=1)


@st.composite
def machines(draw: st.DrawFn) -> dict[str, str]:
    """Four CPUs with any part of the settings that the knobs know, each with any value."""
    files = machine(cpus=CPUS, threads=draw(st.sampled_from([1, 2])), irqs=draw(st.integers(0, 4)), cgroup=0)
    if draw(st.booleans()):
        files |= cpufreq(CPUS, draw(st.sampled_from(["acpi-cpufreq", "intel_pstate", "amd-pstate-epp"])))
    for path, choices in NUMBERS.items():
        if draw(st.booleans()):
            files[path] = draw(st.sampled_from(choices))
    for path in (name for name in files if name.endswith("smp_affinity_list")):
        files[path] = cpulist.format(draw(SOME))
    for name in ("proc/irq/default_smp_affinity", "sys/devices/virtual/workqueue/cpumask"):
        if draw(st.booleans()):
            files[name] = cpulist.format_mask(draw(SOME))
    return files


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any of the knobs for any CPUs but the first."""
    knobs = draw(st.lists(st.sampled_from(KNOBS), min_size=1, unique=True))
    cpus = draw(st.frozensets(st.integers(2, CPUS - 1), min_size=1))
    return profile(*knobs, cpus=cpulist.format(cpus))


@contextmanager
def planted(files: dict[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield plant(Path(folder), files)


@pytest.mark.slow
@QUICK
@given(machines(), profiles())
def test_after_an_apply_no_change_is_left_and_a_restore_is_exact(files: dict[str, str], wanted: Profile) -> None:
    with planted(files) as root:
        found = contents(root)
        host = Host(str(root))
        planned = plan_now(host, wanted, None)[0].changes
        assert contents(root) == found
        done = apply(host, wanted)
        assert done.failures == ()
        assert {change.target for change in planned} <= {change.target for change in done.changes}
        assert plan_now(host, wanted, None)[0].changes == ()
        assert restore(host).complete
        assert contents(root) == found


@pytest.mark.slow
@QUICK
@given(machines(), profiles(), st.data())
def test_a_change_by_another_program_is_named_or_left_alone(
    files: dict[str, str], wanted: Profile, data: st.DataObject
) -> None:
    with planted(files) as root:
        found = contents(root)
        host = Host(str(root))
        apply(host, wanted)
        written = {change.target: change for change in plan_of(root, found, wanted)}
        candidates = sorted(set(found) & set(NUMBERS))
        others: dict[str, bytes] = {}
        for path in data.draw(st.lists(st.sampled_from(candidates), unique=True, max_size=3)) if candidates else []:
            others[path] = data.draw(st.sampled_from(NUMBERS[path])).encode() + b"\n"
            (root / path).write_bytes(others[path])
        outcome = restore(host)
        named = {skip.target.removeprefix("file:/") for skip in outcome.conflicts}
        after = contents(root)
        for path, text in others.items():
            change = written.get(f"file:/{path}")
            if change is None:
                assert after[path] == text
                assert path not in named
            elif path in named:
                assert after[path] == text
            else:
                ours = (change.current, change.wanted)
                assert BY_NAME[change.knob].drifts or any(
                    value_types.same(change.kind, value, text.decode().strip()) for value in ours
                )
                assert after[path] == found[path]
        assert {path: after[path] for path in after if path not in others} == {
            path: found[path] for path in found if path not in others
        }
        assert outcome.complete == (not named)


def plan_of(root: Path, found: dict[str, bytes], wanted: Profile) -> tuple:  # type: ignore[type-arg]
    """The plan for a machine as it was first."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in found.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return plan_now(Host(folder), wanted, None)[0].changes


# The journal waits for its disk at each step, and there are ten thousand lives: as /run is, it is in memory.
SHARED = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.mark.slow
@QUICK
@given(st.randoms(use_true_random=False))
def test_a_generated_machine_obeys_the_laws(random: Random) -> None:
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        Life(random, Path(folder), {}).live()


@pytest.mark.parametrize("seed", range(40))
def test_machines_of_known_seeds_obey_the_laws(seed: int) -> None:
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        Life(Random(seed), Path(folder), {}).live()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_machines_obey_the_laws(part: int) -> None:
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory(dir=SHARED) as folder:
        for seed in range(100_000 + part * 1000, 100_000 + part * 1000 + 1000):
            try:
                Life(Random(seed), Path(folder), counts).live()
            except Exception as error:
                raise AssertionError(f"the machine of seed {seed}: {error}") from error
    # every way through a life is walked, and most machines go all of it
    assert counts["hosts"] == 1000
    assert counts["applied"] > 300
    assert counts["killed while applying"] > 30
    assert counts["killed while restoring"] > 10
    assert counts["restored"] > 400
    assert counts["restored but for what is named"] > 5
    assert counts["confined"] > 10
    assert counts["no CPUs to isolate"] > 100
