"""Define the example file that `cbench screen init` writes, in which every key is explained."""

from __future__ import annotations

from cbench.study.resets import registry

EXAMPLE = (
    '''\
# A screening experiment. `cbench screen plan THIS_FILE` shows the runs and the effects that they can test. `cbench
# screen run` runs the experiment. `cbench screen analyze` and `report` report the factors that matter.

[screen]
name = "example"
iterations = 10           # per batch; an iteration runs every treatment of its batch once, in a fresh random order
batches = 1               # per combination of the hard factors' levels, or in total if no factor is hard
# sequence = "mixed"      # batches neither alternate nor form blocks; or a list of levels; default: in rounds
seed = 1                  # of all random orders; the same seed yields the same orders
alpha = 0.05              # probability of any false alarm among all tested effects
confidence = 0.95         # level of the intervals
design = "full"           # every combination; or fraction, plackett-burman: two levels per factor, nothing excluded
# runs = 8                # number of treatments of a fraction or a Plackett-Burman design
# generators = ["D=ABC"]  # of a fraction; default: the best ones
timeout = 60              # time limit for a trial in seconds
# read = "wall"             # how to read the numbers of commands whose responses have no `read`
# Build command, run once for each combination of levels with flags or build. It writes to the directory $CBENCH_BUILD.
build = """
echo 'int main(void) { volatile long s = 0; for (long i = 0; i < 3000000; i++) s += i; return 0; }' |
  cc $CBENCH_FLAGS -x c -o "$CBENCH_BUILD/program" -
"""
counter = "auto"          # counter for workloads of cbench; `cbench list` lists the counters
# profile = "bench"       # run everything inside `quiet run --profile bench`, on the isolated CPUs (needs root)
# cpus = "2-3"            # isolated CPUs to run on
setup = []                # commands to run before the first trial and at each resume
teardown = []             # commands to run when the experiment ends or is interrupted

[environment]             # variables of all commands
LC_ALL = "C"

[reset]                   # reset of the host before each batch, as in a study: see docs/study-file.md
'''
    + registry.EXAMPLE[0]
    + """\

# Factors. Each level has one or several of these keys, which set it:
#   found = true                      set nothing: keep the host's setting
#   environment = { NAME = "value" }  variables of the trial, of equal length unless their size is the factor
#   cpus = "2"                        CPUs to run the trial on
#   aslr = false                      fixed addresses; true: random addresses
#   flags = "-O2"                     $CBENCH_FLAGS of `build` in [screen]
#   build = "..."                     build command to run after `build` in [screen]
#   profiler = "dwarf"                run under `perf record` (none, fp, dwarf, lbr), then event=, hz= or period=
#   knob = "timer_migration"          one or several knobs at their quiet value, or "smt=off" (needs root)
#   profile = "bench"                 profile of quiet, applied for each trial (needs root)
#   governor = "powersave"            frequency governor of all CPUs (needs root)
#   command = "...", restore = "..."  commands to run before and after each trial
#   check = "..."                     command that must succeed while the level is set
#   kernel = ["nosmt"]                kernel parameters of a hard factor, with which [reset] boots
# hard = true: the level changes only between batches.
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
# workload = "hash"       # instead of a command; or FILE.c:FUNCTION, $CBENCH_BUILD/LIB.so:FUNCTION
# params = { n = 1000 }

# Responses to measure, like the metrics of a study; docs/study-file.md lists all values of `read`.
[[response]]
name = "user"
read = "user"
unit = "s"
better = "lower"

[[response]]
name = "elapsed"
read = "wall"
workloads = ["sum"]       # the workloads with this response; default: all

# Treatments that are excluded, questionable (run and marked), or lack a response (unobtainable). A filter names
# factors and levels, with commas between several levels; any other factor may have any level.
[[constraint]]
kind = "questionable"
where = "opt=O0 env=large"
reason = "not used in practice"
# responses = ["user"]    # for kind = "unobtainable": the responses that the treatments lack

# Named filters for the analysis: treatments to keep (only) and to remove (minus).
[[abridgment]]
name = "optimized"
# only = ["opt=O2"]
minus = ["opt=O0"]

# Variables held constant: a stated value, or a command whose output is stored at the beginning of each batch.
[[controlled]]
name = "kernel"
command = "uname -r"      # or value = "..."
"""
)
