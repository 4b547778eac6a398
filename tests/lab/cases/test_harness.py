"""The lab does what it promises: exact results, machines that match their description, nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import CHECKOUT
from tests.lab.cases import visits
from tests.lab.harness import boot, debian, kernels
from tests.lab.harness.boot import GuestError, GuestTimeoutError, Machine
from tests.lab.harness.machines import ALL, ISOLATED, MACHINES

pytestmark = pytest.mark.lab

BOOT_S = 600  # generous: a busy machine boots several times slower
PLAIN = pytest.mark.parametrize("machine", ["plain-6.12"], indirect=True)
BOTH = pytest.mark.parametrize(  # a machine of each architecture
    "machine", [pytest.param("plain-6.12", marks=pytest.mark.long), "exact"], indirect=True
)


def left_by(pid: int) -> set[str]:
    """What a guest that this process booted uses of this machine: processes and temporary files."""
    name = f"quiet-lab-{pid}-"
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if name.encode() in path.read_bytes():
                found.add(path.parent.name)
    return found | {str(path) for path in Path(tempfile.gettempdir()).glob(f"{name}*")}


@pytest.mark.visit
@pytest.mark.parametrize("machine", [machine.name for machine in ALL], indirect=True)
def test_a_machine_matches_its_description(machine: Machine) -> None:
    result, lines = visits.visit(machine)
    assert result.code == 0, result.output
    assert result.output.splitlines() == lines
    seen = visits.seen(result)

    assert seen["kernel"].startswith(machine.series + ".")
    assert (seen["user"], seen["systemd"], seen["run"], seen["tracing"]) == ("0", "no", "writable", "yes")
    assert seen["online"] == f"0-{machine.cpus - 1}"
    isolated = "2-3" if machine.append == ISOLATED else ""
    assert (seen["isolated"], seen["nohz"].replace("(null)", "")) == (isolated, isolated)
    assert seen["nodes"] == ("0-1" if machine.name == "numa" else "0")
    assert (seen["smt"], seen["siblings"]) == (("on", "0-1") if machine.name == "smt" else ("notsupported", "0"))
    assert seen["driver"] == ("acpi-cpufreq" if machine.cpufreq else "")
    assert seen["range"] == ("1000000 3000000" if machine.cpufreq else "")
    assert seen["version1"] == ("yes" if machine.name == "cgroup-v1" else "no")
    assert left_by(os.getpid()) == set()


@BOTH
def test_status_output_and_files_come_back_exactly(machine: Machine, tmp_path: Path) -> None:
    script = """
        echo out; echo err >&2; printf 'no newline at the end'
        echo "$GREETING" > "$LAB_OUT/greeting"
        echo '<4>a kernel message' > /dev/kmsg
        test "$(od -An -tx1 "$LAB_IN/given")" = " 00 ff" && exit 42
    """
    given = tmp_path / "given"
    given.write_bytes(b"\0\xff")
    result = boot.boot(machine, script, timeout=BOOT_S, env={"GREETING": "it's $HOME"}, give=[given])
    assert result.code == 42
    assert result.output == "out\nerr\nno newline at the end"
    assert result.files == {"greeting": "it's $HOME\n"}


@BOTH
def test_a_time_out_leaves_no_process_and_no_file_behind(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over as soon as the guest has begun, however long it takes to boot."""
    passed = 0.0

    def expire(_line: str) -> None:
        nonlocal passed
        passed = BOOT_S

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed, sleep=time.sleep)
    monkeypatch.setattr(boot, "time", clock)
    with pytest.raises(GuestTimeoutError, match="not done in time") as caught:
        # A guest whose time is counted in instructions sleeps in no time.
        boot.boot(machine, "echo begun; while :; do :; done", timeout=BOOT_S, on_line=expire)
    assert caught.value.output == "begun\n"
    assert left_by(os.getpid()) == set()


@BOTH
def test_a_panic_is_reported_with_the_end_of_the_console(machine: Machine) -> None:
    with pytest.raises(
        GuestError,
        match=rf"(?s){machine.name}: the guest's kernel panicked: sysrq triggered crash.*write_sysrq_trigger",
    ):
        boot.boot(machine, "echo c > /proc/sysrq-trigger; sleep 100", timeout=BOOT_S)
    assert left_by(os.getpid()) == set()


@PLAIN
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_boot_leaves_nothing_behind(machine: Machine, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.lab", machine.name, "sleep 1000"]
    process = subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(6000):  # another guest may have to end first
            if any(each.isdigit() for each in left_by(process.pid)):
                break
            time.sleep(0.1)
        else:
            pytest.fail("the emulator never started")
        process.send_signal(number)
        assert process.wait(timeout=BOOT_S) != 0
        assert left_by(process.pid) == set()
    finally:
        process.kill()


def test_a_cached_kernel_is_used_without_asking_apt(lab: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian, "run", lambda *_, **__: pytest.fail("asked a tool"))
    for version in ("6.1.0-9-amd64", "6.1.0-10-amd64", "6.12.90+deb12-amd64", ".fetch-x"):
        (tmp_path / "quiet-lab/kernels" / version).mkdir(parents=True)
    assert [kernels.ensure(series).version for series in ("6.1", "6.12")] == [
        "6.1.0-10-amd64",
        "6.12.90+deb12-amd64",
    ]


def test_a_missing_kernel_is_reported_in_one_clear_line(
    lab: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian, "run", lambda *_, **__: "linux-image-6.1.0-9-rt-amd64\n")
    with pytest.raises(kernels.KernelError, match=r"^apt knows no kernel package of series 6\.1 .*$"):
        kernels.ensure("6.1")
    assert list((tmp_path / "quiet-lab").glob("kernels/*")) == []


def test_every_machine_can_be_described_as_json() -> None:
    assert json.dumps([vars(machine) for machine in MACHINES.values()])
