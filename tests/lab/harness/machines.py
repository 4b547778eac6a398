"""The named machines of the lab."""

from __future__ import annotations

from quiet.kernel import fragments
from tests.lab.harness import disk_grub, kernels
from tests.lab.harness.boot import Machine

ISOLATED = fragments.command_line("lab")

LOAD_CPUFREQ = """
modprobe acpi-cpufreq
for governor in powersave conservative ondemand userspace; do modprobe cpufreq_$governor; done
test "$(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_driver)" = acpi-cpufreq
"""

# Controllers may change hierarchies only while nothing uses them, so version 2 goes before version 1 comes.
ONLY_CGROUP_V1 = """
umount /sys/fs/cgroup
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
mkdir /sys/fs/cgroup/cpuset
mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset
"""

# On the models of Intel's processors Linux isolates its page tables, and each entry into the kernel then empties the
# emulator's TLB: without it, the same work takes half to two thirds of the time.
FAST = "mitigations=off"
# Not every processor model of QEMU makes Linux offer its SMT switch; this one does.
SMT = ("-cpu", "Skylake-Server-v4", "-smp", "8,sockets=2,cores=2,threads=2")

ALL = (
    Machine("isolated-6.1", "6.1", append=ISOLATED),
    Machine("isolated-6.12", "6.12", append=ISOLATED),
    Machine("plain-6.1", "6.1"),
    Machine("plain-6.12", "6.12"),
    Machine("plain-7.3", "7.3"),
    Machine("smt", "6.12", cpus=8, append=FAST, qemu_options=SMT),
    Machine("numa", "6.12", vng_options=("--numa", "1G,cpus=0-1", "--numa", "1G,cpus=2-3")),
    Machine("cpufreq-6.1", "6.1", append=FAST, qemu_options=("-cpu", "Nehalem"), cpufreq=True, prelude=LOAD_CPUFREQ),
    Machine("cpufreq", "6.12", append=FAST, qemu_options=("-cpu", "Nehalem"), cpufreq=True, prelude=LOAD_CPUFREQ),
    Machine("cgroup-v1", "6.1", prelude=ONLY_CGROUP_V1),
)
# The counters may be read in user space, which the kernel leaves off.
USER_COUNTERS = "echo 1 >/proc/sys/kernel/perf_user_access"
# As the profiles ask for it: no isolcpus=domain, so that the partition is made at run time.
TICKLESS = Machine("tickless", "6.12", append=f"{fragments.command_line('isolated')} psi=1")
# Exact: time is counted in instructions. With one CPU whatever is not interrupted takes the same number of cycles, to
# the cycle; the other one is of the shape of the thesis's host, 16 Cortex-A72 in clusters of 4, with the last three
# clusters isolated. There all CPUs share one clock: interrupts are counted exactly, cycles of one CPU are not.
A72_ISOLATED = "isolcpus=managed_irq,domain,4-15 nohz_full=4-15 rcu_nocbs=4-15 irqaffinity=0"
A72_SHAPE = ("-smp", "16,clusters=4,cores=4,threads=1")
ARM = (
    Machine("exact", "6.1-arm64", cpus=1, prelude=USER_COUNTERS),
    Machine("exact-6.12", "6.12-arm64", cpus=1, prelude=USER_COUNTERS),
    Machine("a72", "6.1-arm64", cpus=16, append=A72_ISOLATED, qemu_options=A72_SHAPE, prelude=USER_COUNTERS),
    Machine("a72-6.12", "6.12-arm64", cpus=16, append=A72_ISOLATED, qemu_options=A72_SHAPE, prelude=USER_COUNTERS),
)
# Its processors run side by side, as real ones do: what to take where it matters who runs when. Without the boot
# parameters an isolated CPU still runs RCU's callbacks, now and then in a thread of its own (ksoftirqd).
BUSY = Machine("busy", "6.12", append="nohz_full=2-3 rcu_nocbs=2-3", threads="multi")
# For `quiet watch`: a governor that the test changes, and a device that it removes and adds.
WATCHED = Machine(
    "watched",
    "6.12",
    append=FAST,
    qemu_options=("-cpu", "Nehalem", "-device", "virtio-rng-pci"),
    cpufreq=True,
    prelude=LOAD_CPUFREQ + "modprobe virtio-rng\n",
)
# Has a network device with as many queues as processors.
NET = (
    Machine("net", "6.12", queues=4, prelude="modprobe virtio_net"),
    Machine("net-6.1", "6.1", queues=4, prelude="modprobe virtio_net"),
)
# Boots as a host does, from a disk with systemd and services, and can be rebooted.
HOST = Machine("host", "6.12", cpus=2, disk=True)
HOSTS = (
    *(HOST, Machine("host-6.1", "6.1", disk=True), Machine("host-own", kernels.OWN, disk=True)),
    Machine("host-isolated", "6.12", append=ISOLATED, disk=True),
)
# Boots as a PC does: GRUB on a partitioned disk starts the kernel with the command line of its menu.
GRUB = Machine("grub", disk_grub.SERIES, grub=True)
# Debian 12 and 13, to install packages on.
CLEAN = (
    Machine("debian-12", "6.1", append=FAST, clean="bookworm"),
    Machine("debian-13", "6.12", append=FAST, clean="trixie"),
)
# The lab's own kernel, with the tracers that Debian's leave out. It exists only after `make kernel`:
# the tests that boot it are skipped where it is not.
OWN = Machine("own", kernels.OWN, append=ISOLATED)
MACHINES = {machine.name: machine for machine in (*ALL, TICKLESS, *ARM, BUSY, WATCHED, *NET, *HOSTS, GRUB, *CLEAN, OWN)}
