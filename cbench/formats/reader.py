"""Define the type of a results reader, and of its return value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, count

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError
from cbench.formats.units import TIMES, nanoseconds
from cbench.machine.passport import Passport, merged

Number = int | float
LARGEST = 1e200
"""Larger values are rejected as damage, because their sums and products would not be finite."""
WAITED_NS, STOLEN_MS = "waited_ns", "stolen_ms"
PLUGIN_COUNTS = ("preempted", "major_faults", WAITED_NS, STOLEN_MS)
"""The counts that the pytest and pyperf plugins record for a process, apart from lines of /proc/interrupts."""


@dataclass(frozen=True, slots=True)
class TestSample:
    """One test's values, a tuple per process. `clean`: the values of undisturbed trials; `cpu`: None if unknown.

    `quantum`: the step of the values, in `unit`; `host`: the model of the CPU, "" if unknown. `cut_short`: the number
    of series of a store that were not finished. `counter`: the counted event; `method`: how it was read; both "" if
    unknown. `cannot_tell`: the reason why the values allow no comparison. `begun`: start time of each process, in ns
    since 1970; empty if unknown. `summary`: the reason why the only value of each process is a summary of samples that
    the file lacks; "" for samples. `more_processes`: advice on how to get `{n}` processes. `passport`: the host's facts
    in the file, None if it has none. `interruptions`: number of interruptions by cause; `waited_ns` and `stolen_ms` are
    times. `failed`: an error message for each process in which the test failed; `processes` contains no values of these
    processes.
    """

    name: str
    test: str
    workload: str
    unit: str
    quantum: int
    cpu: int | None
    host: str
    processes: tuple[tuple[Number, ...], ...]
    clean: tuple[tuple[Number, ...], ...]
    cut_short: int = 0
    counter: str = ""
    method: str = ""
    cannot_tell: str = ""
    begun: tuple[int, ...] = ()
    summary: str = ""
    more_processes: str = "cbench run --processes {n}"
    passport: Passport | None = None
    interruptions: Mapping[str, int] = field(default_factory=dict)
    failed: tuple[str, ...] = ()

    @property
    def trials(self) -> int:
        return sum(len(values) for values in self.processes)

    def like(self, other: TestSample) -> bool:
        """Whether the values of both samples are of the same kind; for example, user-mode cycles differ from cycles of
        all modes.
        """
        alike = self.unit == other.unit or (self.unit in TIMES and other.unit in TIMES)
        return alike and (self.counter == other.counter or not (self.counter and other.counter))

    def in_unit_of(self, other: TestSample) -> TestSample:
        """The sample, converted to ns if both samples are times in different units, otherwise unchanged."""
        if self.unit in (other.unit, "ns") or not (self.unit in TIMES and other.unit in TIMES):
            return self
        return replace(
            self,
            unit="ns",
            quantum=self.quantum if self.quantum == 1 else self.quantum * TIMES[self.unit],
            processes=tuple(tuple(nanoseconds(self.unit, of) or ()) for of in self.processes),
            clean=tuple(tuple(nanoseconds(self.unit, of) or ()) for of in self.clean),
        )

    def undisturbed(self) -> TestSample:
        """The sample without polluted trials and without processes whose trials are all polluted."""
        kept = tuple(values for values in self.clean if values)
        aligned = len(self.begun) == len(self.clean)
        begun = tuple(at for at, values in zip(self.begun, self.clean, strict=False) if values) if aligned else ()
        return replace(self, processes=kept, clean=kept, begun=begun)

    @property
    def polluted(self) -> int:
        return self.trials - sum(len(values) for values in self.clean)


def pooled(samples: Iterable[TestSample]) -> tuple[TestSample, ...]:
    """One sample for each combination of test, unit, counter and CPU, with the processes of all samples in order."""
    tests: dict[tuple[str, str, str, int | None], list[TestSample]] = {}
    for each in samples:
        tests.setdefault((each.name, each.unit, each.counter, each.cpu), []).append(each)
    return tuple(
        replace(reduce(_joined, several), passport=merged([each.passport for each in several if each.passport]))
        if len(several) > 1
        else several[0]
        for several in tests.values()
    )


def _joined(a: TestSample, b: TestSample) -> TestSample:
    hosts = dict.fromkeys([*a.host.split(" and "), b.host])
    return replace(
        a,
        quantum=max(a.quantum, b.quantum),
        host=" and ".join(each for each in hosts if each),
        processes=a.processes + b.processes,
        clean=a.clean + b.clean,
        cut_short=a.cut_short + b.cut_short,
        begun=a.begun + b.begun if all(len(each.begun) == len(each.processes) for each in (a, b)) else (),
        summary=a.summary or b.summary,
        cannot_tell=a.cannot_tell and b.cannot_tell,
        interruptions=Counter(a.interruptions) + Counter(b.interruptions),
        failed=a.failed + b.failed,
    )


def plugin_interruptions(counts: Mapping[str, int | None], interrupts: Mapping[str, int]) -> Counter[str]:
    """The interruptions of a process by cause, from a plugin's counts; causes that the plugin cannot count are
    omitted.
    """
    found = Counter({name: int(counts.get(name) or 0) for name in PLUGIN_COUNTS})
    return +(found + Counter({f"interrupt {line}": int(count) for line, count in interrupts.items()}))


def numbered(names: Iterable[str]) -> list[str]:
    """The names, with numbers added to repeated ones: "sort", "sort #2"."""
    unique: dict[str, None] = {}
    for name in names:
        tries = chain([name], (f"{name} #{number}" for number in count(2)))
        unique[next(each for each in tries if each not in unique)] = None
    return list(unique)


class ResultReader:
    """A format of result files.

    To add a format, write a class in a separate file and add it to registry.READERS. `name`: the format's name in
    messages. `lists_orders`, `lists_treatments`: whether `cbench order analyze` and `cbench screen analyze` can read
    the format. `more`: advice on how to get `{n}` processes.
    """

    name: str
    lists_orders = False
    lists_treatments = False
    more = "run the program {n} times, and give the directory of its files"

    def matches(self, content: Content) -> bool:
        """Whether a file or a directory has this format, judged by its content. Raises UsageError if it is damaged."""
        raise NotImplementedError

    def read(self, content: Content) -> tuple[TestSample, ...]:
        """The tests in the content, at least one. Raises DamagedError with the place of the damage, or UsageError with
        the file's name.
        """
        raise NotImplementedError

    def sample(
        self,
        name: str,
        unit: str,
        processes: Iterable[Iterable[Number]],
        *,
        host: str = "",
        kernel: str = "",
        begun: tuple[int, ...] = (),
        summary: str = "",
        clean: Iterable[Iterable[Number]] | None = None,
    ) -> TestSample:
        """A test of another program; its counter and its CPU number are unknown. `host`: the model of the CPU; `clean`:
        None if all values are clean. Raises DamagedError for a value that is out of range.
        """
        values = tuple(tuple(each) for each in processes)
        wrong = next((each for of in values for each in of if not -LARGEST < each < LARGEST), None)
        if wrong is not None:
            raise DamagedError("", f"{name[:60]}: a value of {wrong:g} {unit}".rstrip() + ", which is out of range")
        return TestSample(
            name=name,
            test=name,
            workload="",
            unit=unit,
            quantum=1,
            cpu=None,
            host=" ".join(host.split()),
            processes=values,
            clean=values if clean is None else tuple(tuple(each) for each in clean),
            begun=begun,
            summary=summary,
            more_processes=self.more,
            passport=Passport.parse({"cpu": host, "kernel": kernel}),
        )
