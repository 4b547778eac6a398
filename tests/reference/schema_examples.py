"""Files with the keys that the examples of `init` leave out, for the parsers that schemas are recorded from."""

from __future__ import annotations

RESET = """\
[reset]
kind = "cool-down"
celsius = 60
khz = 1000000
"""
GATE = """\
old = "./old"
new = "./new"
timeout_s = 1
blocks = 5
better = "lower"
"""
STUDY = f"""\
[study]
repetitions = 2
timeout = 5
read = "wall"
{RESET}
[[test]]
name = "a"
command = "true"
[[test.metric]]
name = "b"
"""
SUITE = """\
[study]
repetitions = 2
timeout = 5
[suite]
preset = "pytest-benchmark"
program = ["pytest"]
isolated = true
"""
OTHER_SUITE = SUITE.replace("pytest-benchmark", "go").replace("true", '"both"').replace("timeout = 5", "timeout = 6")
SCREEN = """\
[screen]
iterations = 2
read = "wall"
build = "make"
timeout = 5
[reset]
kind = "reboot"
command = "reboot $CBENCH_KERNEL"
[[factor]]
name = "way"
hard = true
[[factor.level]]
name = "a"
cpus = "0"
aslr = true
build = "make"
flags = "-O2"
knob = "smt"
governor = "performance"
command = "true"
restore = "true"
check = "true"
kernel = ["nosmt"]
environment = { A = "b" }
[[factor.level]]
name = "b"
profile = "bench"
kernel = []
[[workload]]
name = "hash"
workload = "hash"
[[workload]]
name = "true"
command = "true"
[[response]]
name = "count"
read = "value"
workloads = ["hash"]
[[response]]
name = "user"
[[response]]
name = "elapsed"
[[controlled]]
name = "c"
value = "x"
[[constraint]]
kind = "unobtainable"
where = "way=a"
reason = "x"
responses = ["user"]
"""
FRACTION = f"""\
[screen]
iterations = 2
design = "plackett-burman"
runs = 4
{RESET}
[[workload]]
command = "true"
[[response]]
name = "time"
[[factor]]
name = "profiler"
[[factor.level]]
name = "none"
profiler = "none"
[[factor.level]]
name = "fp"
profiler = "fp"
""" + "".join(
    f"""\
[[factor]]
name = "{name}"
[[factor.level]]
name = "short"
environment = {{ {name} = "y" }}
[[factor.level]]
name = "long"
environment = {{ {name} = "yyyy" }}
"""
    for name in "AB"
)
