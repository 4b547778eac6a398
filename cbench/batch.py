"""One `cbench run`: every workload on every CPU, checked before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import psutil

from cbench import runner, usercode, wire, workloads
from cbench.model import Params, Result, Workload
from quiet.errors import QuietError, UsageError
from quiet.host import Host
from quiet.noise.follow import Follower

MOST_TRIALS = 1_000_000
MEMORY_SHARE = 0.8

Show = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to measure; `warmup` None: until settled."""

    trials: int
    warmup: int | None
    counter: str
    timeout: float
    trace: bool = True


def options(trials: int, warmup: str, counter: str, timeout: float, trace: bool = True) -> Options:
    """UsageError for what cannot be measured so."""
    if not 1 <= trials <= MOST_TRIALS:
        raise UsageError(f"--trials {trials}: from 1 to {MOST_TRIALS:,}")
    if warmup != "auto" and not (warmup.isascii() and warmup.isdecimal() and int(warmup) <= MOST_TRIALS):
        raise UsageError(f"--warmup {warmup!r}: 'auto' or a number of trials from 0 to {MOST_TRIALS:,}")
    if not (math.isfinite(timeout) and timeout > 0):
        raise UsageError(f"--timeout {timeout:g}: a number of seconds above 0")
    return Options(trials, None if warmup == "auto" else int(warmup), counter, timeout, trace)


def find(texts: Iterable[str], cache: Path, tell: Callable[[str], None]) -> list[Workload]:
    """Built-in workloads by name, and the user's own; UsageError for what is neither."""
    names = list(dict.fromkeys(texts))
    builtin = {text: workloads.find(text) for text in names if not usercode.is_user_code(text)}
    return [builtin[text] if text in builtin else usercode.load(text, cache, tell) for text in names]


def check_memory(workload: Workload, params: Params) -> None:
    """UsageError when the buffer would not fit: locked memory cannot be swapped out."""
    available = psutil.virtual_memory().available
    if workload.buffers * params.get("size", 0) > MEMORY_SHARE * available:
        raise UsageError(
            f"--param size={params['size']}: {workload.name} would need more than "
            f"{MEMORY_SHARE:.0%} of the {available // 2**20:,} MiB of memory that are free"
        )


def check_outputs(result: Result, expected: int | None) -> None:
    """QuietError when a built-in workload did not compute the same, right value in every trial."""
    if not result.workload.builtin:
        return
    outputs = {trial.output for trial in result.session.trials}
    wrong = outputs - {expected} if expected is not None else outputs if len(outputs) > 1 else set()
    if wrong:
        right = "one and the same value" if expected is None else str(expected)
        raise QuietError(
            f"{result.workload.name} on CPU {result.cpu}: computed {min(wrong)} instead of {right}: "
            "broken build or broken hardware, nothing here is to be trusted"
        )


def measure(
    chosen: Sequence[Workload],
    params: Sequence[Params],
    cpus: Sequence[int],
    *,
    isolated: frozenset[int],
    options: Options,
    show: Show,
) -> list[Result]:
    """All results, workload by workload, CPU by CPU. `show` gets a text, trials done and trials wanted."""
    expected = [workloads.expected_output(w, p) for w, p in zip(chosen, params, strict=True)]
    results: list[Result] = []
    following = Follower(Host(), frozenset(cpus)) if options.trace else nullcontext()
    with runner.away_from(set(cpus)), following as follower:
        for workload, settings, output in zip(chosen, params, expected, strict=True):
            for cpu in cpus:
                job = wire.Job(
                    function=workload.function,
                    library=workload.library,
                    params=settings,
                    rewarm=settings["n"] // workload.rewarm_share,
                    cpu=cpu,
                    trials=options.trials,
                    warmup=options.warmup,
                    counter=options.counter,
                )
                title = f"{workload.name} on CPU {cpu}"

                def progress(phase: str, done: int, title: str = title) -> None:
                    show(f"{title}: {phase}", done, options.trials)

                session = runner.run(workload, job, options.timeout, progress, follower)
                result = Result(workload, settings, cpu, cpu in isolated, session)
                check_outputs(result, output)
                results.append(result)
    return results
