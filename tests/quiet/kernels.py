"""Hosts for the tests: trees with settings to change, and writers that refuse as the kernel does, or get killed."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from quiet.host.host import Host
from quiet.settings.profile import Profile, check
from tests.trees import cpufreq, machine, plant

POLICY = "/sys/devices/system/cpu/cpufreq/policy"
SYSCTL = "/proc/sys/kernel/"
KNOBS = (
    *("smt", "irq.default", "irq", "workqueue", "cpufreq.epp", "cpufreq.governor", "cpufreq.turbo", "cpufreq.limits"),
    *("timer_migration", "watchdog.nmi", "watchdog.cpus", "perf.sample_rate", "perf.cpu_time"),
    *("thp", "thp.defrag", "thp.khugepaged", "ksm", "vm.stat_interval"),
    *("kfence", "vm.compaction", "vm.demotion", "thp.scan", "writeback.interval", "console.loglevel", "rcu.normal"),
)
VM = {"stat_interval": "1", "compaction_proactiveness": "20", "dirty_writeback_centisecs": "500"}


def profile(*knobs: str, cpus: str = "3", name: str = "test") -> Profile:
    """A profile of the knobs that a tree without a kernel can keep, or of the named ones."""
    choices = {knob: "siblings" if knob == "smt" else "quiet" for knob in knobs or KNOBS}
    return check({"name": name, "cpus": {"isolated": cpus}, "knobs": choices}, f"profile {name}", name)


def settings() -> dict[str, str]:
    """A machine of four CPUs with something to change for every knob of `profile`."""
    files = machine(cpus=4, threads=2, irqs=3)
    files |= cpufreq(4, "intel_pstate", energy_performance_preference="balance_power", base_frequency="2100000")
    files["sys/devices/system/cpu/intel_pstate/no_turbo"] = "0"
    files["sys/devices/system/cpu/intel_pstate/min_perf_pct"] = "26"
    files["proc/irq/default_smp_affinity"] = "f"
    files["sys/devices/virtual/workqueue/cpumask"] = "f"
    files["sys/devices/virtual/workqueue/writeback/cpumask"] = "8"
    names = {"timer_migration": "0", "nmi_watchdog": "1", "watchdog_cpumask": "0-3"}
    names |= {"perf_event_max_sample_rate": "100000", "perf_cpu_time_max_percent": "25"}
    files |= {f"proc/sys/kernel/{name}": text for name, text in names.items()}
    pages = "sys/kernel/mm/transparent_hugepage"
    files["proc/sys/kernel/printk"] = "7\t4\t1\t7"
    files |= {f"proc/sys/vm/{name}": text for name, text in VM.items()}
    files |= {"sys/kernel/rcu_normal": "0", "sys/kernel/mm/numa/demotion_enabled": "true"}
    files["sys/module/kfence/parameters/deferrable"] = "0"
    files |= {"sys/module/kfence/parameters/sample_interval": "100", f"{pages}/khugepaged/scan_sleep_millisecs": "9"}
    files |= {f"{pages}/enabled": "always", f"{pages}/defrag": "defer", f"{pages}/khugepaged/defrag": "1"}
    return files | {"sys/kernel/mm/ksm/run": "1"}


def small() -> dict[str, str]:
    """As `settings`, with less: for tests that run many times."""
    files = machine(cpus=2, irqs=2, cgroup=0)
    files |= {"sys/devices/virtual/workqueue/cpumask": "3", "sys/kernel/mm/ksm/run": "1"}
    return files | {"proc/sys/vm/stat_interval": "1", "proc/sys/kernel/nmi_watchdog": "1"}


def tree(root: Path, files: dict[str, str] | None = None) -> Path:
    """A tree in a directory that does not exist yet."""
    root.mkdir(parents=True)
    return plant(root, settings() if files is None else files)


Law = Callable[["Kernel", str, str], str]


class Kernel(Host):
    """A tree with rules for each write: a rule may raise OSError, or change the written value."""

    def __init__(self, root: Path, *laws: Law) -> None:
        super().__init__(str(root))
        self.laws = laws
        self.written: list[tuple[str, str]] = []

    def write(self, path: str, value: str) -> None:
        """As the kernel: first the laws, then the value is there."""
        for law in self.laws:
            value = law(self, path, value)
        super().write(path, value)
        self.written.append((path, value))


def refuse(end: str, number: int) -> Law:
    """A law: files whose path ends so cannot be written."""

    def law(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith(end):
            raise OSError(number, os.strerror(number))
        return value

    return law


def preference_under_governor(kernel: Kernel, path: str, value: str) -> str:
    """No preference but performance can be written while the governor is performance."""
    folder, _, name = path.rpartition("/")
    performs = kernel.text(f"{folder}/scaling_governor") == "performance"
    if name == "energy_performance_preference" and performs and value != "performance":
        raise OSError(errno.EBUSY, "Device or resource busy")
    return value


def rate_under_share(kernel: Kernel, path: str, value: str) -> str:
    """The sampling rate is fixed while its share of CPU time is not bounded."""
    if path.endswith("max_sample_rate") and kernel.text(SYSCTL + "perf_cpu_time_max_percent") in ("0", "100"):
        raise OSError(errno.EINVAL, "Invalid argument")
    return value


def clamped(kernel: Kernel, path: str, value: str) -> str:
    """The processor knows only multiples of 100 MHz, and nothing above 2 GHz."""
    return str(min(int(value) // 100000 * 100000, 2000000)) if path.endswith("_freq") else value


class Cgroups(Kernel):
    """A cgroup v2 hierarchy whose partitions turn out as `verdict`."""

    verdict = "isolated"

    def mkdir(self, path: str) -> None:
        """A new cgroup has its files at once."""
        super().mkdir(path)
        for name, text in {"cpuset.cpus": "", "cpuset.cpus.partition": "member", "cgroup.procs": ""}.items():
            Path(self.root + path, name).write_text(text + "\n")

    def rmdir(self, path: str) -> None:
        """A cgroup goes with its files, but not while it is a partition."""
        if self.text(f"{path}/cpuset.cpus.partition") != "member":
            raise OSError(errno.EBUSY, "Device or resource busy")
        shutil.rmtree(self.root + path)

    def write(self, path: str, value: str) -> None:
        """Controllers are switched by name, and a partition may be accepted and yet be invalid."""
        if path.endswith("/cgroup.subtree_control"):
            now = (self.text(path) or "").split()
            value = " ".join([*now, value[1:]] if value[0] == "+" else [n for n in now if n != value[1:]])
        elif path.endswith(".partition") and value == "isolated":
            value = self.verdict
        super().write(path, value)


def killed(work: Callable[[], object], at: int, torn: bool = False) -> bool:
    """Do `work` in a child that is killed at its n-th step; False when it came to its end before.

    A step is a write to a file or its fsync: SIGKILL comes before it, or `torn` in the middle of a line of the journal.
    """
    pid = os.fork()
    if pid == 0:
        _count_to_death(at, torn)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def _count_to_death(at: int, torn: bool) -> None:
    """Replace the system calls of this process, which is a child that never returns to the tests."""
    write, fsync, steps = os.write, os.fsync, iter(range(1, 1 << 30))

    def dying_write(fd: int, data: bytes) -> int:
        line = data.startswith(b'{"op"')
        if (line or not torn) and next(steps) == at:
            if torn:
                write(fd, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(fd, data)

    def dying_fsync(fd: int) -> None:
        if not torn and next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(fd)

    os.write, os.fsync = dying_write, dying_fsync  # type: ignore[assignment]
