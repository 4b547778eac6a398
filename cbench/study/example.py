"""Define the example file that `cbench order init` writes, in which every key is explained."""

from __future__ import annotations

from cbench.study.instruments.registry import INSTRUMENTS
from cbench.study.resets import registry

EXAMPLE = (
    """\
# A study of order dependence. `cbench order run THIS_FILE` runs it; `cbench order analyze` analyzes the results.

[study]
name = "example"
repetitions = 20          # number of runs in fixed order, and of runs in random order
design = "interleaved"    # fixed, random, fixed, ...; shuffled: a coin flip decides which run of each pair is first;
                          # random: all runs in random order; williams: each test follows each other one equally often
seed = 1                  # for the random orders; the same seed gives the same orders on the same host
alpha = 0.05              # chance of a false alarm in the whole study
timeout = 60              # seconds that a trial may take
# read = "wall"           # default for commands without a `read` of their own
failures = "trial"        # a failed trial excludes only itself; run: it excludes its whole run, in both orders
counter = "auto"          # the counter for all workloads of the study, see `cbench list`
# profile = "bench"       # run everything inside `quiet run --profile bench`, on the isolated CPUs (needs root)
# cpus = "2-3"            # isolate these CPUs instead of those that the profile selects
setup = []                # commands to run before the first run, and at each resume
teardown = []             # commands to run when the study ends or is interrupted

[environment]             # variables for all commands; trials also get CBENCH_RUN, CBENCH_POSITION and CBENCH_TEST
LC_ALL = "C"

[reset]                   # resets the host before each run
"""
    + "".join(registry.EXAMPLE)
    + """\
settle = 0                # seconds to wait after the reset
timeout = 600             # seconds that the reset, and each command of setup and teardown, may take

# Instead of [[test]], a study can measure a suite: its harness lists the tests, and one process per run runs them all.
# [suite]
# preset = "pytest-benchmark"         # or google-benchmark, go, catch2, catch2-v2, criterion, jmh: fills in the rest
# program = ["python3", "-m", "pytest", "benchmarks"]  # the harness and its constant arguments; no shell
# discover = ["{program}", "--list"]  # prints the names, or writes {results}
# names = "(.+)"                      # matches the name of a test in a line of this output
# run = ["{program}", "--json={results}", "{tests}"]  # or {order}: file of names; {filter}: expression; {seed}: number
# isolated = "both"                   # a process per test (as with true) and a process per run (as with false)
# timeout = 600                       # seconds that a process may take
# directory = "."
# better = "lower"
# (design = "subsets": random halves of the tests, for a harness that imposes its own order)

# The tests, in the fixed order. A test is a shell command or a workload of `cbench list`.
[[test]]
name = "sort"
command = "seq 200000 | shuf --random-source=/dev/zero | sort -n | tail -1"
read = "wall"             # or user, sys, perf-elapsed, cycles, cycles:u, task-clock, cpu-clock; last-float: the last
                          # number printed (the default); regex:EXPRESSION with one group; json:PATH such as
                          # jobs.0.iops; file:PATH; samples:HOW, such as samples:fp,hz=1000 (perf record);
"""
    + "".join(f"{'':26}# {each.example}\n" for each in INSTRUMENTS if each.example)
    + """\
unit = "s"
better = "lower"          # or higher
timeout = 10              # for this test
directory = "."           # where the command runs, relative to the directory of this file

[[test]]
name = "hash"
workload = "hash"         # one execution, counted by cbench (read = "value"); or FILE.c:FUNCTION
params = { n = 100000 }

[[test]]
name = "both"
command = "echo latency=1.5 throughput=200"
[[test.metric]]
name = "latency"
read = "regex:latency=([0-9.]+)"
unit = "ms"
[[test.metric]]
name = "throughput"
read = "regex:throughput=([0-9.]+)"
unit = "1/s"
better = "higher"
"""
)
