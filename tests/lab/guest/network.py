"""Runs in the guest: a network device with four queues is quieted under traffic and restored; $LAB_OUT/report.json.

The device is found in a state of its own. What it is then is read by ethtool and from files, not by the tool under
test.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import mmap
import os
import random
import re
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyroute2.netlink.generic.ethtool  # noqa: F401 - loaded once for all forks

from quiet import cpulist
from quiet.host.reader import Reader
from quiet.settings import profile
from quiet.settings.verify import plan_now
from tests.lab.guest import drive
from tests.lab.guest.drive import Report, called, quiet, quiet_json

GUEST, PEER = os.environ.get("LAB_GUEST", ""), os.environ.get("LAB_PEER", "")  # both ends' addresses
ISOLATED, HOUSEKEEPING = (2, 3), (0, 1)
PORTS = range(10000, 60000)
MOVED, FEWEST = 100, 400  # connections: until each interrupt has moved, and then at least counted
MOST_S = 300
PROFILE = Path("/tmp/network.toml")
KNOBS = (
    *("irq.default", "irq", "net.channels", "net.rss", "net.threaded", "net.adaptive", "net.defer"),
    *("net.rps_default", "net.rps", "net.xps", "net.rfs", "net.busy_poll"),
)
WITH = ("--profile", str(PROFILE))
CLASS = Path("/sys/class/net")
CORE = Path("/proc/sys/net/core")
SYSCTLS = ("rps_default_mask", "rps_sock_flow_entries", "busy_poll", "busy_read")
FILES = (
    *("threaded", "napi_defer_hard_irqs", "gro_flush_timeout", "queues/*/rps_*", "queues/*/xps_*"),
    *("queues/*/tx_maxrate", "queues/*/byte_queue_limits/limit_m*"),
)


def ethtool(*arguments: str) -> str:
    given = os.environ["LAB_IN"]
    program = [f"{given}/ethtool", *arguments]
    environment = {**os.environ, "LD_LIBRARY_PATH": given}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def devices() -> list[str]:
    return sorted(path.parent.name for path in CLASS.glob("*/device"))


def real() -> str:
    """The device that is to be quieted."""
    (name,) = (path.parent.name for path in CLASS.glob("*/device") if "virtio" in path.resolve().name)
    return name


def interrupts(name: str) -> list[int]:
    folder = (CLASS / name / "device").resolve().parent / "msi_irqs"
    return sorted(int(path.name) for path in folder.iterdir()) if folder.is_dir() else []


def snapshot() -> dict[str, str]:
    found = {str(path): text(path) for path in (CORE / name for name in SYSCTLS) if path.exists()}
    for name in devices():
        found |= {str(path): text(path) for pattern in FILES for path in (CLASS / name).glob(pattern)}
        found |= {f"{name} {option}": ethtool(option, name) for option in ("-l", "-x", "-c")}
        found |= {f"irq {number}": text(Path(f"/proc/irq/{number}/smp_affinity")) for number in interrupts(name)}
    return found | {"irq default": text(Path("/proc/irq/default_smp_affinity"))}


def text(path: Path) -> str:
    with contextlib.suppress(OSError):  # no answer from an interface with one queue
        return path.read_text()
    return ""


def differences(before: dict[str, str]) -> list[str]:
    now = snapshot()
    return [
        f"{key}: {before.get(key)!r} -> {now.get(key)!r}" for key in before | now if before.get(key) != now.get(key)
    ]


def disturb(name: str) -> None:
    """A state in which every setting differs from its default, and which any of the knobs would change."""
    subprocess.run(f"ip link set {name} up; ip address add {GUEST}/24 dev {name}", shell=True, check=True)
    queues = CLASS / name / "queues"
    settings = {CORE / "rps_sock_flow_entries": "1024", CORE / "busy_poll": "50", CORE / "busy_read": "50"}
    if (CORE / "rps_default_mask").exists():
        settings[CORE / "rps_default_mask"] = "e"
    for queue, mask in enumerate(("f", "c", "8", "1")):
        settings[queues / f"rx-{queue}/rps_cpus"] = mask
        settings[queues / f"rx-{queue}/rps_flow_cnt"] = str(256 << queue)
        settings[queues / f"tx-{queue}/xps_cpus"] = ("3", "6", "c", "8")[queue]
        settings[queues / f"tx-{queue}/byte_queue_limits/limit_max"] = str(100000 + queue)
    settings[CLASS / name / "gro_flush_timeout"] = "7000"
    for at, number in enumerate(interrupts(name)):
        settings[Path(f"/proc/irq/{number}/smp_affinity")] = f"{1 << at % 4:x}"
    for path, value in settings.items():
        path.write_text(value)


@contextlib.contextmanager
def traffic(cpus: tuple[int, ...]) -> Iterator[Callable[[], int]]:
    """Connections that the peer refuses, from many ports: packets both ways through every queue.

    The CPUs take turns, because the scheduler may leave a process on one CPU. Yields how many were made so far.
    """
    with mmap.mmap(-1, 8) as made:
        pid = os.fork()
        if not pid:
            try:
                connect(cpus, made)
            finally:
                os._exit(1)
        try:
            yield lambda: int(struct.unpack("q", made[:])[0])
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def connect(cpus: tuple[int, ...], made: mmap.mmap) -> None:
    """Connect again and again, until killed."""
    for number, port in enumerate(itertools.cycle(PORTS), 1):
        os.sched_setaffinity(0, {cpus[number % len(cpus)]})
        with socket.socket() as end, contextlib.suppress(OSError):
            end.settimeout(0.2)
            end.bind((GUEST, port))
            end.connect((PEER, 9))
        made[:] = struct.pack("q", number)


def counted(name: str) -> dict[str, Counter[int]]:
    """By CPU: interrupts of the device, and its packets that another CPU handed over (RPS)."""
    numbers = {str(number) for number in interrupts(name)}
    found: dict[str, Counter[int]] = {"interrupts": Counter(), "handed": Counter(), "softirqs": Counter()}
    for line in text(Path("/proc/interrupts")).splitlines():
        fields = line.split()
        if fields[0].rstrip(":") in numbers:
            found["interrupts"].update({cpu: int(fields[1 + cpu]) for cpu in range(4)})
    for cpu, line in enumerate(text(Path("/proc/net/softnet_stat")).splitlines()):
        found["handed"][cpu] = int(line.split()[9], 16)
    received = re.search(r"NET_RX:(.*)", text(Path("/proc/softirqs")))
    found["softirqs"].update({cpu: int(n) for cpu, n in enumerate(received[1].split()[:4])} if received else {})
    return found


def watched(name: str, cpus: tuple[int, ...], enough: Callable[[Report], bool]) -> Report:
    """What so much traffic as is enough brings to each CPU; what was counted by then when that takes too long."""
    limit, found = time.monotonic() + MOST_S, Report()
    with traffic(cpus) as connections:
        while connections() < MOVED and time.monotonic() < limit:
            time.sleep(0.1)  # an interrupt moves when it next arrives, where it arrived before
        first, before = connections(), counted(name)
        while not (found and enough(found)) and time.monotonic() < limit:
            time.sleep(0.1)
            connected, after = connections() - first, counted(name)
            found = {what: {str(cpu): after[what][cpu] - before[what][cpu] for cpu in range(4)} for what in after}
            found["connections"] = connected
    return found


def reached(found: Report) -> bool:
    """Every CPU had an interrupt of the device, an isolated one was handed a packet, and there was traffic."""
    handed = any(found["handed"][str(cpu)] for cpu in ISOLATED)
    return found["connections"] >= FEWEST and all(found["interrupts"].values()) and handed


def round_trip(report: Report, name: str) -> None:
    before = snapshot()
    report["found"] = before
    report["without"] = watched(name, (*HOUSEKEEPING, *ISOLATED), reached)
    report["left_by_traffic"] = differences(before)
    report["plan"] = quiet_json("plan", *WITH)
    report["plan_root"], report["plan_unprivileged"] = planned(), unprivileged()
    report["left_by_plan"] = differences(before)
    report["apply"] = quiet("apply", *WITH)
    report["applied"] = snapshot()
    report["changed"] = differences(before)
    report["with"] = watched(name, HOUSEKEEPING, lambda found: found["connections"] >= report["without"]["connections"])
    report["plan_again"] = quiet_json("plan", *WITH)
    report["verify"] = quiet_json("verify", "--duration", "0")
    report["restore"] = quiet("restore")
    report["left"] = differences(before)


def unprivileged() -> list[str]:
    """The plan as an unprivileged user, who needs no right to load modules: all are loaded by then."""
    planned()
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.setgid(65534)
        os.setuid(65534)
        os.write(write, json.dumps(planned()).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        lines: list[str] = json.loads(pipe.read() or "[]")
    os.waitpid(pid, 0)
    return lines


def planned() -> list[str]:
    made, _ = plan_now(Reader(), profile.load(str(PROFILE)), None)
    return [f"{each.knob} {each.target} {each.current} {each.wanted}" for each in made.changes if "net" in each.knob]


def killed(report: Report, rounds: int) -> None:
    before = snapshot()
    draw = random.Random(6)
    profile_file = str(PROFILE)
    every = drive.cut_short("apply", None, profile=profile_file)
    report["warm"], report["rounds"] = called("restore"), []
    for number in range(rounds):
        command = ("apply", "restore")[number % 2]
        if command == "restore":
            called("apply", *WITH)
        done = drive.cut_short(command, draw.randrange(every), draw.random() * drive.MOST_DELAY_S, profile_file)
        cut = differences(before)
        code = called("restore")
        report["rounds"].append(
            {"of": command, "after": done, "cut": len(cut), "code": code, "left": differences(before)}
        )


def table_by_hand(report: Report, name: str) -> None:
    """A table that needs the queues that are to go: they stay, with the reason."""
    report["table"] = ethtool("-X", name, "weight", "1", "2", "3", "4") + ethtool("-x", name)
    before = snapshot()
    report["refused"] = quiet("apply", *WITH)
    report["refused_plan"] = quiet_json("plan", *WITH)
    report["refused_restore"] = quiet("restore")
    report["left_by_refused"] = differences(before)
    ethtool("-X", name, "default")


def replugged(report: Report, name: str) -> None:
    """The device goes while the profile is applied, and another one comes in its place."""
    driver, device = Path("/sys/bus/virtio/drivers/virtio_net"), (CLASS / name / "device").resolve().name
    report["replug_apply"] = quiet("apply", *WITH)
    (driver / "unbind").write_text(device)
    report["replug_plan"] = quiet_json("plan", *WITH)
    (driver / "bind").write_text(device)
    time.sleep(1)
    fresh = {key: value for key, value in snapshot().items() if "/net/" in key and "/class/" in key}
    report["replug_restore"] = quiet_json("restore")
    report["left_by_replug"] = [key for key in fresh if snapshot()[key] != fresh[key]]


def main() -> int:
    report: Report = {}
    try:
        cpus = cpulist.format(frozenset(ISOLATED))
        knobs = "\n".join(f'"{knob}" = "quiet"' for knob in KNOBS)
        PROFILE.write_text(f'name = "network"\n[cpus]\nisolated = "{cpus}"\n[knobs]\n{knobs}\n')
        PROFILE.chmod(0o644)
        name = real()
        disturb(name)
        round_trip(report, name)
        killed(report, int(sys.argv[1]))
        table_by_hand(report, name)
        replugged(report, name)
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
