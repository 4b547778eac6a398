"""Define how known harnesses list their tests and run a selection of them, and where they write results.

Each harness was tested for its handling of the order; docs/suites.md describes the tests and the versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cbench.study.suite.suite import FILTER, ORDER, PROGRAM, RESULTS, SEED, TESTS


@dataclass(frozen=True, slots=True)
class Preset:
    """The defaults of one harness for the keys of `[suite]`. `program`: the words that start the harness, () if the
    user must write them.

    `shuffles`: whether `run` draws an order by itself, without a seed from cbench. `ordered`: whether results are in
    the order in which the tests ran. `escape`: the characters that need a backslash in a file of names. `counts`:
    whether the exit status of `discover` may be the number of tests.
    """

    name: str
    discover: tuple[str, ...]
    run: tuple[str, ...]
    program: tuple[str, ...] = ()
    names: str = "(.+)"
    shuffles: bool = False
    ordered: bool = True
    escape: str = ""
    counts: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


_PYTEST = (PROGRAM, "-q", "-p", "no:randomly", "--rootdir=.", "--benchmark-only", f"--benchmark-json={RESULTS}")
_ONCE = ("--benchmark-min-rounds=1", "--benchmark-min-time=0", "--benchmark-max-time=0", "--benchmark-warmup=off")
_GOOGLE_ORDER = ("--benchmark_enable_random_interleaving=true", "--benchmark_repetitions=1")
_GOOGLE_JSON = ("--benchmark_out_format=json",)
_CATCH2 = (PROGRAM, "--reporter", "xml", "--out", RESULTS, "--order", "rand", "--rng-seed", SEED)
_CATCH2_NAMES = ',[]"\\*'

PRESETS = (
    Preset("pytest-benchmark", (*_PYTEST, *_ONCE), (*_PYTEST, TESTS), ("python3", "-m", "pytest")),
    Preset(
        "google-benchmark",
        (PROGRAM, "--benchmark_list_tests=true"),
        (PROGRAM, f"--benchmark_filter={FILTER}", *_GOOGLE_ORDER, f"--benchmark_out={RESULTS}", *_GOOGLE_JSON),
        shuffles=True,
    ),
    Preset(
        "go",
        (PROGRAM, "-test.list=^Benchmark"),
        (PROGRAM, "-test.run=^$", f"-test.bench={FILTER}", f"-test.shuffle={SEED}"),
        ("go", "test"),
        names=r"(Benchmark\S*)",
    ),
    Preset(
        "catch2",
        (PROGRAM, "--list-tests", "--verbosity", "quiet"),
        (*_CATCH2, "--input-file", ORDER),
        escape=_CATCH2_NAMES,
    ),
    Preset(
        "catch2-v2",
        (PROGRAM, "--list-test-names-only"),
        (*_CATCH2, "--input-file", ORDER),
        escape=_CATCH2_NAMES,
        counts=True,
    ),
    Preset(
        "criterion",
        (PROGRAM, "--list"),
        (PROGRAM, FILTER),
        names="(.+): bench(?:mark)?",
        ordered=False,
        environment={"CRITERION_HOME": RESULTS},
    ),
    Preset(
        "jmh",
        (PROGRAM, "-l"),
        (PROGRAM, "-f", "0", "-rf", "json", "-rff", RESULTS, FILTER),
        names=r"(\S+\.\S+)",
        ordered=False,
    ),
)
BY_NAME = {each.name: each for each in PRESETS}
