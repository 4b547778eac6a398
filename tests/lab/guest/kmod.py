"""Runs in a guest where the kernel module is loaded: uses it, misuses it, unloads it, and reports its answers."""

from __future__ import annotations

import array
import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cbench.measure.inkernel import client
from cbench.workloads import registry
from quiet.errors import QuietError, Refused

CPU = 3
TRIALS = 25
FUZZED = 150
PARAMS = {
    "hash": {"n": 50_000},
    "sieve": {"n": 5_000},
    "memory": {"n": 5_000, "size": 65_536},
    "chase": {"n": 5_000, "size": 65_536, "stride": 64, "pages": 0},
    "branch": {"n": 5_000, "pattern": 3, "period": 8},
}
FIELDS = ["version", "flags", "workload", *(f"p{i}" for i in range(6)), "rewarm", "param_count", "cpu", "wanted"]
FIELDS += ["pmu_type", "trials", "warmup", "max_region_ns", "trials_at"]
VALID: dict[str, Any] = {"version": 1, "workload": b"hash", "p0": 1000, "param_count": 1, "cpu": CPU, "trials": 10}
ROOM = array.array("Q", bytes(16 * 1000))
ONLINE = Path(f"/sys/devices/system/cpu/cpu{CPU}/online")
Report = dict[str, Any]


def packed(**changes: Any) -> bytearray:
    asked = dict.fromkeys(FIELDS, 0) | {"trials_at": ROOM.buffer_info()[0]} | VALID | changes
    return bytearray(client.REQUEST.pack(*(asked[name] for name in FIELDS), *[0] * 9))


def answered(device: int, request: bytearray) -> list[Any]:
    answer = client.ask(device, request)
    return [errno.errorcode.get(answer.error, 0), answer.reason, answer.done]


def said(call: Callable[[], object]) -> str:
    try:
        return f"no error: {call()}"
    except QuietError as error:
        return f"{type(error).__name__}: {error}"


def measured(report: Report) -> None:
    for name, params in PARAMS.items():
        for stop_machine in (False, True):
            result = client.measure(name, params, CPU, TRIALS, 2, stop_machine, rewarm=params["n"] // 4)
            report[f"{name} {stop_machine}"] = {
                "values": result.values,
                "outputs": sorted(set(result.outputs)),
                "expected": registry.find(name).expected(params),  # type: ignore[misc]
                "overhead": result.counter.overhead,
                "counter": result.counter.name,
                "why": result.counter.why,
                "longest_ns": result.longest_ns,
                "cut_short": result.cut_short,
            }


def following(advice: str) -> int:
    """Trials with the n that the refusal names. The emulator's speed changes: a second refusal names another n."""
    for _ in range(5):
        try:
            return len(client.measure("hash", {"n": int(advice.rpartition("n=")[2])}, CPU, 1, 0, False).values)
        except Refused as error:
            advice = str(error)
    return 0


def too_long(report: Report) -> None:
    begun = time.monotonic()
    report["said"] = said(lambda: client.measure("hash", {"n": 2**40}, CPU, 1, 0, False))
    report["took_s"] = time.monotonic() - begun
    report["fitting"] = following(report["said"])
    report["rewarm"] = said(lambda: client.measure("hash", {"n": 1}, CPU, 1, 0, False, rewarm=2**40))


BAD: dict[str, dict[str, Any]] = {
    "version": {"version": 2},
    "flags": {"flags": 2},
    "counter": {"wanted": 3},
    "region": {"max_region_ns": client.REGION_MAX_NS + 1},
    "warmup": {"warmup": 1_000_001},
    "workload": {"workload": b"float"},
    "name without end": {"workload": b"h" * 32},
    "no parameter": {"param_count": 0},
    "too many parameters": {"param_count": 7},
    "parameter of nothing": {"param_count": 2},
    "sieve beyond 32 bits": {"workload": b"sieve", "p0": 2**32},
    "sieve's rewarm": {"workload": b"sieve", "rewarm": 2**32},
    "links that overlap": {"workload": b"chase", "param_count": 4, "p1": 65536, "p2": 8},
    "no such pattern": {"workload": b"branch", "param_count": 3, "p1": 4, "p2": 1},
    "no buffer": {"workload": b"memory", "param_count": 2, "p1": 3},
    "buffer above 1 GiB": {"workload": b"memory", "param_count": 2, "p1": 2**30 + 1},
    "no trials": {"trials": 0},
    "too many trials": {"trials": 1_000_001},
    "no such CPU": {"cpu": 999},
    "another CPU": {"cpu": 0},
    "cycles": {"wanted": 1},
    "no room": {"trials_at": 8},
}


def refused(report: Report, device: int) -> None:
    with client.bound(CPU):
        for what, changes in BAD.items():
            report[what] = answered(device, packed(**changes))
        report["good"] = answered(device, packed())
        os.seteuid(65534)
        report["not root"] = answered(device, packed())
        report["not root, open"] = said(lambda: client.measure("hash", {"n": 1}, CPU, 1, 0, False))
        os.seteuid(0)
    report["not bound"] = answered(device, packed())


def fuzzed(device: int, rounds: int, seed: int) -> Report:
    """Random requests, each cut short by a signal after a while; how they ended."""
    draw = random.Random(seed)
    ends: dict[str, int] = {}
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    numbers = [0, 1, 2, 7, 1000, 2**20, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    with client.bound(CPU):
        for _ in range(rounds):
            changes: dict[str, Any] = {}
            for name in draw.sample(FIELDS, draw.randint(1, 4)):
                small = name in ("version", "flags", "cpu", "wanted", "pmu_type", "trials", "warmup", "param_count")
                changes[name] = draw.choice(numbers) % (2**32 if small else 2**64)
            changes["workload"] = draw.choice([*(name.encode() for name in client.WORKLOADS), draw.randbytes(32)])
            request = packed(**changes) if draw.random() < 0.9 else bytearray(draw.randbytes(client.REQUEST.size))
            if not 0 < changes.get("trials", 10) <= 1000:
                request[136:144] = bytes(8)  # no such room
            end = str(answered(device, request)[:2])
            ends[end] = ends.get(end, 0) + 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"ends": ends}


def child(trials: int) -> tuple[int, int]:
    """A process that measures for long; (process id, where it writes the result)."""
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            result = client.measure("hash", {"n": 100_000}, CPU, trials, 0, False)
            text = json.dumps([len(result.values), result.cut_short])
        except BaseException as error:
            text = json.dumps(repr(error))
        os.write(into, text.encode())
        os._exit(0)
    os.close(into)
    limit = time.monotonic() + 120
    while not busy().startswith("Refused") and time.monotonic() < limit:
        time.sleep(0.1)
    return pid, out


def busy() -> str:
    return said(lambda: client.measure("empty", {"n": 1}, 2, 1, 0, False))


def disturbed(report: Report, device: int) -> None:
    """Another process measures; is killed; the CPU goes offline; the module cannot be unloaded during this."""
    pid, _ = child(200_000)
    report["busy"] = busy()
    report["rmmod while used"] = subprocess.run(["rmmod", "cbench"], capture_output=True, check=False).returncode
    begun = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    report["killed_s"] = time.monotonic() - begun
    pid, out = child(200_000)
    ONLINE.write_text("0")
    report["offline"] = json.loads(os.read(out, 4096))
    os.waitpid(pid, 0)
    report["on it"] = said(lambda: client.measure("hash", {"n": 1}, CPU, 1, 0, False))
    ONLINE.write_text("1")
    report["online again"] = len(client.measure("hash", {"n": 1000}, CPU, 3, 0, True).values)


def another_number(device: int) -> str:
    try:
        fcntl.ioctl(device, client.RUN + 1, bytearray(client.REQUEST.size))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "accepted"


def main() -> int:
    report: Report = {}
    try:
        for what in (measured, too_long):
            report[what.__name__] = {}
            what(report[what.__name__])
            print(f"{time.monotonic():.0f} s: {what.__name__}", flush=True)
        with client.opened() as device:
            for step in (refused, disturbed):
                report[step.__name__] = {}
                step(report[step.__name__], device)
                print(f"{time.monotonic():.0f} s: {step.__name__}", flush=True)
            report["fuzzed"] = fuzzed(device, FUZZED, 1)
            print(f"{time.monotonic():.0f} s: fuzzed", flush=True)
            report["not an ioctl of ours"] = another_number(device)
        report["rmmod"] = subprocess.run(["rmmod", "cbench"], check=False).returncode
        report["device left"] = os.path.exists(client.DEVICE)
        report["dmesg"] = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
