"""The rows of `make thesis`: on which machine each is measured, and with which commands.

The thesis: "Chasing Zero Variability in Software Performance", https://dspace.mit.edu/handle/1721.1/127419.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.lab.harness.machines import MACHINES
from tests.lab.harness.model import Machine

ONE, MANY = "one", "many"
CPU = {ONE: 0, MANY: 5}
# The abstract's claim is about work that only computes; the row where nothing can come between is where it has to hold.
CLAIM = "0 cycles (its claim)"
ISOLCPUS = "isolcpus=managed_irq,domain,4-15 irqaffinity=0"
HASH = "cbench run hash --param n=10000"
# Another task on every CPU. With 16 CPUs each works for some 0.2 ms and rests for 100 ms, for they share one clock:
# of 16 that work all the time a trial would have a sixteenth.
BUSY = """
mkfifo /tmp/never
rest='while :; do for ((i = 0; i < 100; i++)); do :; done; read -t 0.1 -u 4; done'
[ $(nproc) -gt 1 ] || rest='while :; do :; done'
for cpu in $(seq 0 $(($(nproc) - 1))); do taskset -c $cpu bash -c "$rest" 4<>/tmp/never & done
"""
STOP = "kill $(jobs -p)\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `options`: of cbench; `quiet`: measured by `quiet run`; `exact`: its range must be 0."""

    key: str
    name: str
    machine: str
    trials: int
    options: str = ""
    busy: bool = False
    quiet: bool = False
    exact: bool = False
    claim: str = "-"

    @property
    def cpu(self) -> int:
        return CPU[ONE if self.machine == "exact" else MANY]

    def script(self) -> str:
        """The command that measures it, and writes the report to $LAB_OUT/KEY; cbench's 1 is a result too."""
        command = f"{HASH} --cpu {self.cpu} --trials {self.trials} {self.options} --json >$LAB_OUT/{self.key}"
        if self.quiet:
            command = f"quiet run --profile bench -- bash -c '{command}'"
        around = (BUSY, STOP) if self.busy else ("", "")
        run = f"{command} 2>/tmp/said || [ $? = 1 ] || {{ cat /tmp/said; exit 1; }}"
        return f"echo 'measuring: {self.name}'\n{around[0]}{run}\n{around[1]}"


@dataclass(frozen=True, slots=True)
class Boot:
    """One machine, with the rows that are measured in one boot of it. `module`: the kernel module is loaded."""

    machine: Machine
    title: str
    rows: tuple[Row, ...]

    @property
    def module(self) -> bool:
        return any("--in-kernel" in row.options for row in self.rows)


A72 = MACHINES["a72"]
PLAIN = replace(A72, name="a72-plain", append="")
WITH_TICKS = replace(A72, name="a72-isolcpus", append=ISOLCPUS)

BOOTS = (
    Boot(
        MACHINES["exact"],
        "one CPU",
        (
            Row("one-busy", "busy system", "exact", 1000, busy=True),
            Row("one-quiet", "quiet system", "exact", 1000),
            Row("one-module", "kernel module", "exact", 1000, "--in-kernel", exact=True, claim=CLAIM),
        ),
    ),
    Boot(
        PLAIN,
        "16 CPUs in 4 clusters",
        (
            Row("many-busy", "busy system", "a72", 300, "--warmup 20", busy=True),
            Row("many-quiet", "quiet system", "a72", 1000),
            Row("many-module", "kernel module", "a72", 1000, "--in-kernel"),
        ),
    ),
    Boot(
        WITH_TICKS,
        "16 CPUs in 4 clusters",
        (Row("many-ticks", "user space, isolated, with the periodic tick", "a72", 1000),),
    ),
    Boot(
        A72,
        "16 CPUs in 4 clusters",
        (Row("many-nohz", "user space, isolated, dynamic ticks (nohz_full)", "a72", 1000, quiet=True, claim=CLAIM),),
    ),
)
