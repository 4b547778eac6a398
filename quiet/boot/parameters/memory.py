"""Parameters of memory and of the guards against attacks: what a measurement may want, and what it opens."""

from __future__ import annotations

from quiet.boot.parameters.parameter import DOC, FLAG, BootParameter, x86

TABLE: tuple[BootParameter, ...] = (
    BootParameter(
        "mitigations",
        "off removes the work against speculation attacks from every entry into the kernel. No profile asks for it: "
        "it changes what is measured, and it opens the machine",
        risk="any program can read the memory of all others",
        doc="admin-guide/hw-vuln, " + DOC + " (mitigations=)",
        example="auto",
    ),
    BootParameter(
        "split_lock_detect",
        "off neither slows down nor reports a program whose atomic access crosses a cache line",
        risk="such a program stops the memory bus of the whole machine unseen",
        doc="arch/x86/buslock",
        example="off",
        needs=x86,
    ),
    BootParameter(
        "randomize_kstack_offset",
        "off ends the random stack offset of each system call, which varies its cost and its cache lines a little",
        risk="one guard against attacks on the kernel's stack less",
        example="off",
    ),
    BootParameter(
        "audit",
        "0 takes the audit system out of the way of system calls",
        risk="no audit log, which a policy may demand",
        example="0",
        runtime="auditctl -e 0",
    ),
    BootParameter(
        "transparent_hugepage",
        "whether memory is made of huge pages unasked",
        doc="admin-guide/mm/transhuge",
        example="madvise",
        runtime="the knobs thp and thp.khugepaged",
    ),
    BootParameter(
        "hugepages",
        "sets huge pages aside while memory is still whole; hugepagesz= before it says their size",
        risk="that memory serves nothing else",
        doc="admin-guide/mm/hugetlbpage",
        example="512",
        runtime="nr_hugepages, as far as memory is not yet in pieces",
    ),
    BootParameter(
        "hugepagesz",
        "the size that the following hugepages= means; 1G pages come at boot most surely",
        doc="admin-guide/mm/hugetlbpage",
        example="1G",
    ),
    BootParameter(
        "default_hugepagesz",
        "the size of a huge page for whoever does not name one, and of hugepages= without a size before it",
        doc="admin-guide/mm/hugetlbpage",
        example="1G",
    ),
    BootParameter(
        "numa_balancing",
        "disable ends the page faults by which the kernel learns who uses which memory",
        risk="badly placed memory stays where it is",
        example="disable",
        runtime="the knob numa_balancing",
    ),
    BootParameter(
        "iommu",
        "pt leaves devices' own accesses untranslated: fewer invalidations and interrupts",
        risk="a faulty device can write anywhere; passing devices to guests still works",
        example="pt",
        against=("iommu=nopt",),
        covered=("iommu=off",),
        adds=True,
    ),
    BootParameter(
        "nokaslr",
        "puts the kernel at the same address at each boot, so that its code meets the same cache sets each time",
        risk="one guard against attacks on the kernel less",
        takes=FLAG,
    ),
    BootParameter(
        "norandmaps",
        "switches address randomisation off for every program",
        risk="one guard less for every program",
        takes=FLAG,
        runtime="the knob aslr, for one command alone or for the host",
    ),
    BootParameter(
        "init_on_alloc",
        "0 hands memory out as it is; 1 writes zeroes first, which costs time and cache at each allocation",
        risk="old contents can leak through bugs in the kernel",
        example="0",
    ),
    BootParameter(
        "psi",
        "0 ends the accounting of how long tasks wait, which costs a little at each switch between them",
        risk="systemd-oomd and others that look at it have nothing to look at",
        doc="accounting/psi, " + DOC + " (psi=)",
        example="0",
    ),
)
