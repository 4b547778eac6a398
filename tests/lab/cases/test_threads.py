"""Programs with every kind of threads use all isolated CPUs of a balanced partition, and no other task does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.lab.harness import cache, debian
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["plain-6.12"], indirect=True)]

CPUS = "2-3"
TIMEOUT_S = 3600  # far more than a busy machine takes
SOURCES = CHECKOUT / "tests/lab/guest/programs"
PROFILE = """\
[knobs]
cpuset = "{cpuset}"
slices = "quiet"
tasks = "quiet"
irq = "quiet"
workqueue = "quiet"
"""
# name -> the command in the guest; those whose program is not here are left out
PROGRAMS = {
    "isolated": "env OMP_NUM_THREADS=4 $LAB_IN/openmp",
    "threads": "env OMP_NUM_THREADS=4 $LAB_IN/openmp",
    "openmp": "$LAB_IN/openmp",
    "go": "$LAB_IN/busy-go",
    "java": "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp $LAB_IN Busy",
    "xdist": "python -m pytest -q -p no:cacheprovider -n 4 $LAB_IN/busy_tests.py",
}

# what perf takes in one second of CPU time, outside and in each bundled profile, and what cbench says of `samples:`
PERF = """
burn='import time
while time.process_time() < 1: pass'
obstacle='from cbench.study.instruments.perf_record import obstacle, parse
print(repr(obstacle(parse("none"))))'
if command -v perf >/dev/null; then
    record() { perf record -F 999 -e cpu-clock -o /run/perf.data -- python -S -c "$burn" 2>&1; }
    export burn; export -f record
    keep() {
        perf script -F time -i /run/perf.data >$LAB_OUT/times.$1
        perf report --stats -i /run/perf.data >$LAB_OUT/stats.$1
    }
    record >$LAB_OUT/perf.outside && keep outside
    for profile in bench strict; do
        quiet run --profile $profile --cpus 1 -- bash -c record >$LAB_OUT/perf.$profile 2>&1
        keep $profile
        quiet run --profile $profile --cpus 1 -- python -c "$obstacle" >$LAB_OUT/samples.$profile
    done
fi
"""


def _go(made: Path) -> None:
    root = debian.programs("go", ["golang-1.19-go", "golang-1.19-src"]) / "usr/lib/go-1.19"
    env = {**os.environ, "GOROOT": str(root), "GOCACHE": str(made / "cache"), "CGO_ENABLED": "0", "GO111MODULE": "off"}
    done = subprocess.run(
        [root / "bin/go", "build", "-o", made / "busy-go", SOURCES / "busy.go"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    shutil.rmtree(made / "cache", ignore_errors=True)
    if done.returncode:
        raise PackageError(f"go build: {done.stderr}")


@once
def given() -> dict[str, Path]:
    """What could be built or found here, by the program's name."""
    work = cache.make(cache.cache_dir() / "threads" / cache.digest([path.read_bytes() for path in _sources()]), _built)
    return {path.name: path for path in work.iterdir()}


def _sources() -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path.is_file())  # not the compiled modules


def _built(made: Path) -> None:
    _openmp(made)
    shutil.copy(SOURCES / "busy_tests.py", made)
    if shutil.which("javac") and shutil.which("java"):
        subprocess.run(["javac", "-d", made, SOURCES / "Busy.java"], check=True)
    _go(made)


def _openmp(made: Path) -> None:
    subprocess.run(["gcc", "-O1", "-fopenmp", "-static", "-o", made / "openmp", SOURCES / "openmp.c"], check=True)


@once
def booted(machine: Machine) -> Result:
    try:
        files = given()
    except PackageError as error:
        pytest.skip(f"no lab: {error}")
    names = [name for name in PROGRAMS if name != "java" or "Busy.class" in files]
    return _boot(machine, names, files.values(), f"quiet run --cpus {CPUS} -- true 2>$LAB_OUT/unpinned")


@once
def sampled(machine: Machine) -> Result:
    """The commands under perf, in a boot of their own, on two CPUs that run side by side.

    The profiles let idle CPUs poll. In one thread, the emulator runs a polling CPU in turn with the busy one.
    """
    result = _boot(replace(machine, cpus=2, threads="multi"), [], [], PERF)
    if "perf.outside" not in result.files:
        pytest.skip("not here: perf")
    return result


@once
def short(machine: Machine) -> Result:
    """Only the program with four threads, written in C, so that nothing has to be downloaded."""
    key = cache.digest([(SOURCES / "openmp.c").read_bytes()])
    made = cache.make(cache.cache_dir() / "threads-c" / key, _openmp)
    return _boot(machine, ["threads"], made.iterdir())


def _boot(machine: Machine, names: Iterable[str], files: Iterable[Path], more: str = "") -> Result:
    lines = [f"cat >/run/{name}.toml <<'E'\n{PROFILE.format(cpuset=name)}E" for name in ("quiet", "balanced")]
    for name in names:
        profile = "quiet" if name == "isolated" else "balanced"
        lines.append(f"python -m tests.lab.guest.threads /run/{profile}.toml {CPUS} {name} {PROGRAMS[name]}")
    lines.append(more)
    lines.append("cat /sys/fs/cgroup/cgroup.subtree_control >$LAB_OUT/left; ls -d /sys/fs/cgroup/quiet >>$LAB_OUT/left")
    return boot(machine, "\n".join(lines), timeout=TIMEOUT_S, give=files)


def used(result: Result, name: str) -> tuple[float, float]:
    """The seconds that the program had of each isolated CPU."""
    found = result.files
    if f"{name}.json" not in found and name == "java" and "Busy.class" not in given():
        pytest.skip("not here: a JDK")
    report = json.loads(found[f"{name}.json"])
    assert report["code"] == 0, result.output
    assert report["foreign"] == {}, "others ran on the isolated CPUs"
    first, second = report["used"].values()
    return first, second


@pytest.mark.long
def test_in_an_isolated_partition_four_threads_stay_on_one_cpu(machine: Machine) -> None:
    times = used(booted(machine), "isolated")
    assert min(times) < 0.1 * max(times)


def test_in_a_balanced_one_four_threads_use_two_cpus_equally(machine: Machine) -> None:
    times = used(short(machine), "threads")
    assert min(times) > 0.8 * max(times)
    assert short(machine).files["threads.txt"] == "4\n"


@pytest.mark.long
@pytest.mark.parametrize("name", ["openmp", "go", "java", "xdist"])
def test_every_kind_of_program_uses_all_isolated_cpus(machine: Machine, name: str) -> None:
    times = used(booted(machine), name)
    assert min(times) > 0.4 * max(times)


@pytest.mark.long
def test_an_unpinned_command_automatically_gets_all_isolated_cpus(machine: Machine) -> None:
    assert f"threads may use all of CPUs {CPUS}" in booted(machine).files["unpinned"]


@pytest.mark.long
def test_a_runtime_sees_as_many_processors_as_are_isolated(machine: Machine) -> None:
    assert booted(machine).files["openmp.txt"] == "2\n"


@pytest.mark.long
@pytest.mark.parametrize("where", ["outside", "bench", "strict"])
def test_perf_at_999_hz_takes_900_samples_in_a_second_of_cpu_time(machine: Machine, where: str) -> None:
    assert len(sampled(machine).files[f"times.{where}"].split()) >= 900, sampled(machine).files[f"perf.{where}"]
    assert "THROTTLE" not in sampled(machine).files[f"stats.{where}"]


@pytest.mark.long
@pytest.mark.parametrize("profile", ["bench", "strict"])
def test_cbench_can_sample_under_a_bundled_profile(machine: Machine, profile: str) -> None:
    assert sampled(machine).files[f"samples.{profile}"] == "''\n"
