"""Plan a validation as a study: workloads of NIST TN 1855, each read by several instruments.

D. Flater, NIST TN 1855 (2014), section 3: eight instruments, five workloads, 1,000 samples of each. All instruments
that do not disturb a trial read the same trial; `perf record` disturbs, so each of its variants has separate trials.
Everything runs in random order, so that drift affects all workloads equally.
"""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from cbench.study.instruments import registry as instruments
from cbench.study.instruments.instrument import SAMPLES, SYS, USER, WALL, HostInstrument
from cbench.workloads.programs import CLOCKS, NAMES
from quiet import Reader, UsageError

FULL_SAMPLES, QUICK_SAMPLES = 1000, 10
NAME = "validate"
ETALON = "etalon"
OWN = "ticks"
"""The metric of cbench's own clock, which the workload's program reads right before and after the work."""
MARK = "# instruments: "
SOCKET = "validate.load"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
SETTINGS = {"aliquot": "", "competing": f"load={SOCKET}", "perfect": "", "copy": "", "etalon": ""}
QUICK = {
    "aliquot": "times=10",
    "competing": f"load={SOCKET} times=10",
    "perfect": "exponent=19",
    "copy": "blocks=3",
    "etalon": "ms=500",
}
ETALON_S, QUICK_ETALON_S = 10.0, 0.5


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """The options of `cbench screen validate`; None and () for options that were not given.

    `run`: whether to measure the remaining trials.
    """

    data: str = "validate.db"
    samples: int | None = None
    workloads: Sequence[str] = ()
    instruments: Sequence[str] = ()
    quick: bool = False
    seed: int | None = None
    run: bool = True

    @property
    def repetitions(self) -> int:
        return self.samples or (QUICK_SAMPLES if self.quick else FULL_SAMPLES)

    @property
    def plans(self) -> bool:
        """Whether any option selects measurements."""
        return self != ValidateOptions(self.data, run=self.run)


@dataclass(frozen=True, slots=True)
class ValidationFacts:
    """The setup of a validation. `etalon_s`: the etalon's waiting time in seconds; `clocksource`: the kernel's clock
    source, "" if unknown.
    """

    instruments: tuple[HostInstrument, ...]
    etalon_s: float
    clocksource: str


def text(options: ValidateOptions) -> str:
    """The text of the study's file. Raises UsageError for unknown names, and if no instrument is available."""
    workloads = _chosen(options.workloads, NAMES, "--workload")
    chosen = _chosen(options.instruments, (*instruments.NAMES, OWN), "--instrument")
    what, why = "cbench's own counter, around the work only", "one tick of the CPU's counter"
    own = HostInstrument(OWN, "ticks", what, None, why)
    every = (*(instruments.instruments(chosen) if chosen != (OWN,) else ()), *((own,) if OWN in chosen else ()))
    if all(each.missing for each in every):
        raise UsageError(f"nothing to validate: {every[0].read}: {every[0].missing}")
    about = ValidationFacts(every, QUICK_ETALON_S if options.quick else ETALON_S, Reader().text(CLOCKSOURCE) or "")
    begin, end = (_python("competing", f"{what} {SOCKET}") for what in ("begin", "end"))
    loaded = "competing" in workloads
    return "\n".join(
        [
            "# Written by `cbench screen validate`, which runs and resumes it, and reports its result.",
            MARK + json.dumps(asdict(about)),
            "",
            "[study]",
            f"name = {_quoted(NAME)}",
            f"repetitions = {options.repetitions}",
            'design = "random"',
            f"seed = {1 if options.seed is None else options.seed}",
            *([f"setup = [{_quoted(begin)}]", f"teardown = [{_quoted(end)}]"] if loaded else []),
            *(_test(name, each, options.quick, every) for name in workloads for each in _kinds(every)),
            "",
        ]
    )


def duration(source: str) -> str:
    """The expected duration of a validation as text, as far as it is known before the first trial."""
    study = tomllib.loads(source)
    samples, tests = study["study"]["repetitions"], [each["name"] for each in study["test"]]
    etalons = samples * sum(name.split()[0] == ETALON for name in tests)
    known = timedelta(seconds=round(etalons * about(source).etalon_s))
    least = f" at least {known}, for the etalon only;" if etalons else ""
    return f"{samples * len(tests):,} trials:{least} the remaining time is shown after the first trial"


def about(source: str) -> ValidationFacts:
    """Read the setup from a study's text. Raises UsageError for the text of another study."""
    line = next((each for each in source.splitlines() if each.startswith(MARK)), None)
    if line is None:
        raise UsageError("contains another study, not a validation; choose another file (-o)")
    facts = json.loads(line.removeprefix(MARK))
    return ValidationFacts(
        tuple(HostInstrument(**each) for each in facts["instruments"]), facts["etalon_s"], facts["clocksource"]
    )


def _chosen(names: Sequence[str], known: Sequence[str], option: str) -> tuple[str, ...]:
    for each in names:
        if each not in known:
            raise UsageError(f"{option} {each}: must be one of {', '.join(known)}")
    return tuple(each for each in known if not names or each in names)


def _kinds(every: Sequence[HostInstrument]) -> list[str]:
    """The kinds of trial: "" for trials read by all instruments that do not disturb, and the kinds of sampling."""
    sampled = [each.read for each in every if each.read.startswith(SAMPLES) and not each.missing]
    plain = [each for each in every if not each.read.startswith(SAMPLES) and not each.missing]
    return [*([""] if plain else []), *sampled]


def _test(name: str, kind: str, quick: bool, every: Sequence[HostInstrument]) -> str:
    given = f"{name} {(QUICK if quick else SETTINGS)[name]}".rstrip()
    lines = [
        "",
        "[[test]]",
        f"name = {_quoted(test_name(name, kind))}",
        f"command = {_quoted(_python('programs', given))}",
    ]
    if kind:  # the times of sampled trials show the cost of sampling
        reads = {SAMPLES: kind, WALL: WALL, USER: USER, SYS: SYS}
    else:
        plain = [each.read for each in every if not each.missing and not each.read.startswith(SAMPLES)]
        reads = {metric_name(each): f"json:{OWN}" if each == OWN else each for each in plain}
        reads |= {clock: f"json:{clock}" for clock in CLOCKS}
    for metric, read in reads.items():
        lines += ["[[test.metric]]", f"name = {_quoted(metric)}", f"read = {_quoted(read)}"]
        lines += ['unit = "s"'] if metric in CLOCKS else ['unit = "ticks"'] if metric == OWN else []
    return "\n".join(lines)


def test_name(workload: str, kind: str) -> str:
    """The name of a test, such as "aliquot" or "aliquot samples-fp"."""
    return f"{workload} {kind.replace(':', '-')}".rstrip()


def metric_name(read: str) -> str:
    """The name of an instrument's metric, which must be valid in a study's file."""
    return read.replace(":", "-")


def _python(module: str, arguments: str) -> str:
    return f"{shlex.quote(sys.executable)} -P -m cbench.workloads.{module} {arguments}"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
