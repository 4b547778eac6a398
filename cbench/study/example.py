"""Define the example file that `cbench order init` writes, in which every key is explained."""

from __future__ import annotations

from cbench.study.instruments.registry import INSTRUMENTS
from cbench.study.resets import registry

EXAMPLE = (
    """\
# A study of order dependence. `cbench order run THIS_FILE` runs it, `cbench order analyze` says what was found.

[study]
name = "example"
repetitions = 20          # runs of the fixed order, and as many of random ones
design = "interleaved"    # fixed, random, fixed, ...; shuffled: a coin decides which run of each pair is first;
                          # random: all runs in random orders; williams: each test after each other equally often
seed = 1                  # for the random orders; the same seed gives the same ones
alpha = 0.05              # chance of a false alarm in the whole study
timeout = 60              # seconds that a trial may take
# read = "wall"             # how the numbers of commands are read that do not say it themselves
failures = "trial"        # a failed trial counts as missing; run: it takes its whole run with it, in both orders
counter = "auto"          # what counts for workloads, see `cbench list`; one for the whole study
# profile = "bench"       # run everything inside `quiet run --profile bench`, on the isolated CPUs (needs root)
# cpus = "2-3"            # ... on these
setup = []                # commands before the first run, and at each resume
teardown = []             # and when the study ends or is interrupted

[environment]             # for all commands; trials also have CBENCH_RUN, CBENCH_POSITION and CBENCH_TEST
LC_ALL = "C"

[reset]                   # what happens to the host before each run
"""
    + "".join(registry.EXAMPLE)
    + """\
settle = 0                # seconds to wait after it
timeout = 600

# In place of [[test]] a whole suite: its harness lists the tests, and one process runs all of them in a run's order.
# [suite]
# preset = "pytest-benchmark"         # or google-benchmark, go, catch2, catch2-v2, criterion, jmh: fills in the rest
# program = ["python3", "-m", "pytest", "benchmarks"]  # the harness and its constant arguments; no shell
# discover = ["{program}", "--list"]  # prints the names, or writes {results}
# names = "(.+)"                      # the name in a line of it
# run = ["{program}", "--json={results}", "{tests}"]   # or {order}, a file of names, {filter}, an expression, {seed}
# isolated = "both"                   # a process per test and a process per run in turn; true, false: one of them only
# timeout = 600                       # seconds that a process may take
# directory = "."
# better = "lower"
# (design = "subsets": random halves of the tests, for a harness with an order of its own)

# The tests, in the order that is the fixed one. A test is a command of the shell or a workload of `cbench list`.
[[test]]
name = "sort"
command = "seq 200000 | shuf --random-source=/dev/zero | sort -n | tail -1"
read = "wall"             # or user, sys, perf-elapsed, cycles, cycles:u, task-clock, cpu-clock; last-float: the last
                          # number printed (the default); regex:EXPRESSION with one group; json:PATH such as
                          # jobs.0.iops; file:PATH; samples:HOW of perf record around it, such as samples:fp,hz=1000;
"""
    + "".join(f"{'':26}# {each.example}\n" for each in INSTRUMENTS if each.example)
    + """\
unit = "s"
better = "lower"          # or higher
timeout = 10              # for this test
directory = "."           # where it runs, from the directory of this file

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
