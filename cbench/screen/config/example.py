"""Define the example file that `cbench screen init` writes, in which every key is explained."""

from __future__ import annotations

from cbench.study.resets import registry

EXAMPLE = (
    '''\
# A screening experiment. `cbench screen plan THIS_FILE` shows what would run and what it can test, `cbench screen run`
# runs it, `cbench screen analyze` and `report` report which factors matter.

[screen]
name = "example"
iterations = 10           # of each batch; an iteration runs every treatment once, in a fresh random order
batches = 1               # for each combination of the hard factors' levels (in all where no factor is hard)
# sequence = "mixed"      # of the batches: neither alternating nor in blocks; or a list of levels; else in rounds
seed = 1                  # for all orders; the same seed gives the same ones
alpha = 0.05              # chance of a false alarm
confidence = 0.95         # of the intervals
design = "full"           # every combination; with two levels each and no constraints also fraction, plackett-burman
# runs = 8                # ... of so many treatments
# generators = ["D=ABC"]  # ... of a fraction, in place of the best one
timeout = 60              # seconds that a trial may take
# read = "wall"             # how the numbers of commands are read that do not say it themselves
# Once for each combination of levels with flags; what it makes goes to $CBENCH_BUILD.
build = """
echo 'int main(void) { volatile long s = 0; for (long i = 0; i < 3000000; i++) s += i; return 0; }' |
  cc $CBENCH_FLAGS -x c -o "$CBENCH_BUILD/program" -
"""
counter = "auto"          # what counts for workloads of cbench, see `cbench list`
# profile = "bench"       # run everything inside `quiet run --profile bench`, on the isolated CPUs (needs root)
# cpus = "2-3"            # ... on these
setup = []                # commands before the first trial, and at each resume
teardown = []             # and when the experiment ends or is interrupted

[environment]             # for all commands
LC_ALL = "C"

[reset]                   # what happens to the host before each batch, as in a study: see docs/study-file.md
'''
    + registry.EXAMPLE[0]
    + """\

# Factors. Each level says how it is set, in one way or several:
#   found = true                      nothing: the host's own setting
#   environment = { NAME = "value" }  variables of the trial; of equal length, for their size moves the stack
#   cpus = "2"                        the CPUs that it runs on
#   aslr = false                      random addresses or fixed ones
#   flags = "-O2"                     for [screen] build, in $CBENCH_FLAGS; build = "..." a command of its own, after it
#   profiler = "dwarf"                under `perf record`: none, fp, dwarf or lbr, then event= and hz= or period=
#   knob = "timer_migration"          quiet's knob at its quiet value, or "smt=off"; or several (needs root)
#   profile = "bench"                 quiet's profile, around each trial (needs root)
#   governor = "powersave"            of all CPUs (needs root)
#   command = "...", restore = "..."  commands of yours, before and after each trial; check = "...": has to succeed
#   kernel = ["nosmt"]                words of the kernel's command line, in a hard factor: [reset] boots with them
# hard = true: the level changes between batches only.
[[factor]]
name = "opt"
[[factor.level]]
name = "O0"
flags = "-O0"
[[factor.level]]
name = "O2"
flags = "-O2"

[[factor]]
name = "aslr"
# hard = true
[[factor.level]]
name = "off"
aslr = false
[[factor.level]]
name = "on"
aslr = true

[[factor]]
name = "env"
[[factor.level]]
name = "small"
environment = { PADDED = "x" }
[[factor.level]]
name = "large"
environment = { PADDED = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }

# The work of every treatment: a shell command, in which "$CBENCH_BUILD" is the directory of the treatment's build, or a
# workload of `cbench list`.
[[workload]]
name = "sum"
command = '"$CBENCH_BUILD/program"'
directory = "."
# workload = "hash"       # in place of a command; or FILE.c:FUNCTION, $CBENCH_BUILD/LIB.so:FUNCTION
# params = { n = 1000 }

# What is measured, as a study's metrics are: docs/study-file.md has all values of `read`.
[[response]]
name = "user"
read = "user"
unit = "s"
better = "lower"

[[response]]
name = "elapsed"
read = "wall"
workloads = ["sum"]       # the workloads with this response; default: all

# Treatments that are excluded, questionable (run, and marked), or lack a response (unobtainable). A filter names
# factors and levels, several with commas; a factor that it does not name may have any.
[[constraint]]
kind = "questionable"
where = "opt=O0 env=large"
reason = "nobody runs it so"
# responses = ["user"]    # kind unobtainable: the unavailable responses

# Named filters of the analysis: what stays (only) and what goes (minus).
[[abridgment]]
name = "optimized"
# only = ["opt=O2"]
minus = ["opt=O0"]

# What is held, said or read at the beginning of each batch.
[[controlled]]
name = "kernel"
command = "uname -r"      # or value = "..."
"""
)
