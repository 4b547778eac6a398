"""The processes of a run: where those go that outlive the command, and that no other process is ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.run.group import RunGroup
from tests.trees import machine, plant

CGROUPS = "/sys/fs/cgroup"


class Cgroups(Host):
    """A tree in which a process is in one cgroup at a time, and in none when it has ended."""

    def write(self, path: str, value: str) -> None:
        """As the kernel."""
        if path.endswith("/cgroup.procs"):
            others = Path(self.root + CGROUPS).rglob("cgroup.procs")
            if self.exists(path):
                for each in others:
                    each.write_text("".join(line for line in each.read_text().splitlines(True) if line != f"{value}\n"))
                name = path.removeprefix(CGROUPS).removesuffix("/cgroup.procs")
                plant(Path(self.root), {f"proc/{value}/cgroup": f"0::{name}"})
        super().write(path, value)

    def text(self, path: str) -> str | None:
        """As the kernel."""
        found = super().text(path)
        if found is None or not path.endswith("/cgroup.procs"):
            return found
        return "\n".join(pid for pid in found.split() if not os.path.exists(f"/proc/{pid}") or not ended(int(pid)))


def ended(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    names = ("quiet", "quiet/run-1", "command", "caller")
    plant(tmp_path, machine(cpus=2) | {f"sys/fs/cgroup/{name}/cgroup.procs": "" for name in names})
    return Cgroups(str(tmp_path))


@pytest.fixture
def command(host: Host) -> Iterator[subprocess.Popen[bytes]]:
    """A process that outlives its command, and what the tree says of it."""
    with subprocess.Popen(["sleep", "600"]) as process:
        status = f"Name: sleep\nState: S (sleeping)\nPPid: {os.getpid()}\nUid: 7 7 7 7"
        plant(
            Path(host.root),
            {
                f"proc/{process.pid}/status": status,
                f"proc/{process.pid}/cgroup": "0::/command",
                f"proc/{os.getpid()}/cgroup": "0::/caller",
            },
        )
        yield process
        process.kill()


def run(host: Host, pid: int) -> RunGroup:
    found = RunGroup(host, "run-1")
    found.remember(os.getpid())
    found.add(pid, os.getpid(), 7, frozenset(os.sched_getaffinity(0)))
    return found


@pytest.mark.slow
def test_what_outlives_a_command_returns_to_the_cgroup_of_the_command_itself(
    host: Host, command: subprocess.Popen[bytes]
) -> None:
    found = run(host, command.pid)
    assert host.text(f"{CGROUPS}/quiet/run-1/cgroup.procs") == str(command.pid)
    found.release()
    assert host.text(f"{CGROUPS}/command/cgroup.procs") == str(command.pid)
    assert command.poll() is None


@pytest.mark.slow
def test_what_cannot_return_is_ended(host: Host, command: subprocess.Popen[bytes]) -> None:
    found = run(host, command.pid)
    for path in (f"{CGROUPS}/command/cgroup.procs", f"{CGROUPS}/caller/cgroup.procs"):
        host.unlink(path)
    found.release()
    assert command.wait(60) == -signal.SIGKILL


def test_a_process_that_has_the_number_of_a_command_that_has_ended_is_not_ended(
    host: Host, command: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunGroup, "path", "")  # as where the CPUs are isolated at boot
    found = run(host, command.pid)
    command.kill()
    command.wait()
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    monkeypatch.setattr("quiet.run.group._PATIENCE_S", 0.1)
    found.kill()
    assert killed == []


def services(host: Host, pid: int) -> None:
    """Have the ID belong to a new child of a service of root."""
    files = {f"proc/{pid}/status": "State: R (running)\nPPid: 77\nUid: 0 0 0 0", f"proc/{pid}/cgroup": "0::/service"}
    plant(Path(host.root), files | {"proc/77/cgroup": "0::/service", "sys/fs/cgroup/service/cgroup.procs": ""})


def test_a_process_of_root_that_reuses_an_id_of_the_run_stays_in_its_cgroup(
    host: Host, command: subprocess.Popen[bytes]
) -> None:
    found = run(host, command.pid)
    services(host, command.pid)  # after the ID was read from the cgroup
    before = os.sched_getaffinity(command.pid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "kill", lambda: None)
        patch.setattr(found, "_remove", lambda: None)
        found.release()
    assert host.text(f"/proc/{command.pid}/cgroup") == "0::/service"
    assert os.sched_getaffinity(command.pid) == before


@pytest.mark.parametrize("when", ["release", "add"])
def test_a_process_of_root_that_reuses_an_id_during_the_move_returns_to_its_parents_cgroup(
    host: Host, command: subprocess.Popen[bytes], when: str
) -> None:
    """`when`: the move out of the run's cgroup, or the move into it."""
    found = run(host, command.pid) if when == "release" else RunGroup(host, "run-1")
    moves = []

    def write(path: str, pid: int) -> None:
        if not moves:
            command.kill()
            command.wait()
            services(host, pid)
        moves.append(path)
        host.write(path, str(pid))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(found, "_write", write)
        patch.setattr(found, "kill", lambda: None)
        patch.setattr(found, "_remove", lambda: None)
        if when == "release":
            found.release()
        else:
            found.add(command.pid, os.getpid(), 7, frozenset(os.sched_getaffinity(0)))
    assert moves
    assert host.text(f"/proc/{command.pid}/cgroup") == "0::/service"


def test_a_process_of_root_that_reuses_an_id_is_not_ended_before_linux_5_14(
    host: Host, command: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(host, command.pid)
    services(host, command.pid)
    monkeypatch.setattr(host, "write", lambda path, value: os.stat("/none"))  # there is no cgroup.kill
    monkeypatch.setattr("quiet.run.group._PATIENCE_S", 0.02)
    found.kill()
    assert command.poll() is None


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**62])
def test_a_number_that_no_process_can_have_is_refused(host: Host, pid: int) -> None:
    with pytest.raises(Refused, match="ended before it could be moved"):
        RunGroup(host, "run-1").add(pid, os.getpid(), 7, frozenset({1}))
