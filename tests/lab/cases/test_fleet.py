"""A fleet of two hosts with systemd, sshd and real reboots: from `quiet boot apply` to the disk as it was.

Five boots of each: as found; with the profile's parameters; one for each of two runs; as found again. Then a user's own
playbook calls the collection's modules on the same hosts.
"""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cbench.fleet.ansible import environment, program
from tests import ABSENT, CHECKOUT
from tests.cbench.running import CBENCH
from tests.lab.harness.boot import Machine, Result, boot_together
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["grub"], indirect=True)]
SCRIPT = "exec python3 -P -m tests.lab.guest.fleet"
NAMES = ("n0", "n1")
TIMEOUT_S = 3600
OPTIONS = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
WANTED = {"isolcpus=managed_irq,2-3", "nohz_full=2-3"}
# Ansible's own, whatever it does on a host.
ANSIBLES = ("/root/.ansible: was absent", "/root/.ansible/tmp: was absent")
# The lab's: it shows the checkout again at each boot, and Python compiles the programs that the lab has installed.
LABS = "/usr/lib/python3/dist-packages/"


@dataclass(frozen=True)
class Fleet:
    """`printed`: by `cbench fleet run --json`; `stores`: of each node; `own`: what the user's own playbook saw."""

    printed: dict[str, Any]
    stores: dict[str, Path]
    own: dict[str, dict[str, Any]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def inventory(folder: Path, ports: dict[str, int]) -> Path:
    variables = {
        "ansible_host": "127.0.0.1",
        "ansible_user": "root",
        "ansible_timeout": 60,
        "ansible_ssh_private_key_file": str(folder / "key"),
        "ansible_ssh_common_args": OPTIONS,
        "ansible_ssh_control_path_dir": str(folder / "c"),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    hosts = {name: {"ansible_port": port} for name, port in ports.items()}
    file = folder / "hosts.json"
    file.write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}))
    return file


def finish(process: subprocess.Popen[str], check: Callable[[], None]) -> None:
    """Wait for its end, or for that of a guest."""
    try:
        while process.poll() is None:
            check()
            time.sleep(0.5)
    finally:
        process.kill()
        process.wait()


@once
def ran(machine: Machine, folder: Path) -> tuple[dict[str, Result], Fleet]:
    if not all(map(shutil.which, ("ssh", "ssh-keygen"))):
        pytest.skip(f"{ABSENT}openssh-client (tests/lab/harness/needs.sh fleet)")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    ports = {name: free_port() for name in NAMES}
    hosts = inventory(folder, ports)
    guests = {
        name: replace(
            machine,
            qemu_options=(
                *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"),
                *("-device", "virtio-net-pci,netdev=net"),
            ),
        )
        for name, port in ports.items()
    }
    up = {name: threading.Event() for name in NAMES}

    def on_line(name: str, line: str) -> None:
        print(f"{name}: {line}", file=sys.stderr, flush=True)
        if line == "up 1":
            up[name].set()

    def beside(check: Callable[[], None]) -> Fleet:
        while not all(each.wait(0.5) for each in up.values()):
            check()
        out = folder / "out"
        shutil.rmtree(out, ignore_errors=True)  # of a guest whose emulator has failed
        words = [
            "run",
            "-i",
            str(hosts),
            "tests/lab/guest/studies/fleet.toml",
            "-o",
            str(out),
            "--poll",
            "10",
            "--json",
        ]
        with open(folder / "printed", "w+") as printed:
            controller = subprocess.Popen([*CBENCH, "fleet", *words], cwd=CHECKOUT, stdout=printed, text=True)
            finish(controller, check)
        log = (out / "ansible.log").read_text() if (out / "ansible.log").exists() else ""
        assert controller.returncode == 0, log
        (folder / "own").mkdir(exist_ok=True)
        given = json.dumps({"bin": "/srv/bin", "report": str(folder / "own")})
        playbook = [program("ansible-playbook"), "-i", str(hosts), "-e", given, "tests/lab/guest/own_playbook.yml"]
        with open(folder / "own.log", "w+") as log_file:
            own = subprocess.Popen(
                playbook, cwd=CHECKOUT, env=environment(), stdout=log_file, stderr=log_file, text=True
            )
            finish(own, check)
        assert own.returncode == 0, (folder / "own.log").read_text()
        return Fleet(
            json.loads((folder / "printed").read_text()),
            {name: out / "results" / f"{name}.db" for name in NAMES},
            {name: json.loads((folder / "own" / f"{name}.json").read_text()) for name in NAMES},
        )

    give = [folder / "key.pub"]
    return boot_together(guests, SCRIPT, beside, timeout=TIMEOUT_S, give=give, on_line=on_line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet")


def rows(store: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute(query).fetchall()


def test_every_node_is_finished_fetched_and_released(machine: Machine, folder: Path) -> None:
    nodes = ran(machine, folder)[1].printed["nodes"]
    assert sorted(nodes) == sorted(NAMES)
    for node in nodes.values():
        assert (node["state"], node["finished"], node["complete"]) == ("released", True, True)
        assert (node["trials_done"], node["trials_failed"]) == (4, 0)


def test_each_run_has_its_own_boot_with_the_parameters_and_every_trial_once(machine: Machine, folder: Path) -> None:
    for store in ran(machine, folder)[1].stores.values():
        places: list[tuple[int, int]] = []
        boots: dict[int, set[str]] = {}
        for run, position, failure, output in rows(store, "SELECT run, position, failure, output FROM study_trial"):
            assert failure is None
            boot_id, line, _ = output.decode().splitlines()
            assert set(line.split()) >= WANTED
            boots.setdefault(run, set()).add(boot_id)
            places.append((run, position))
        assert sorted(places) == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert [len(boots[run]) for run in (0, 1)] == [1, 1]
        assert boots[0] != boots[1]


def test_orders_are_drawn_from_the_seed_and_the_name_in_the_inventory(machine: Machine, folder: Path) -> None:
    for name, store in ran(machine, folder)[1].stores.items():
        ((host,),) = rows(store, "SELECT host FROM study")
        assert json.loads(host)["hostname"] == name


def test_a_detached_study_is_a_unit_and_after_each_reboot_the_unit_that_resumes_it(
    machine: Machine, folder: Path
) -> None:
    for result in ran(machine, folder)[0].values():
        units = [line.split() for line in result.files["units"].splitlines()]
        assert next(boot for boot, name in units if name.startswith("cbench-detached-")) == "2"
        assert {"3", "4"} <= {boot for boot, name in units if name.startswith("cbench-study-")}


def test_the_parameters_are_set_from_the_second_boot_to_the_last_but_one(machine: Machine, folder: Path) -> None:
    for result in ran(machine, folder)[0].values():
        lines = [set(line.split()) for line in result.files["command-lines"].splitlines()]
        assert [line >= WANTED for line in lines] == [False, True, True, True, False]
        assert lines[0] == lines[-1]


def test_in_the_end_the_disk_is_as_it_was_first_byte_for_byte(machine: Machine, folder: Path) -> None:
    for result in ran(machine, folder)[0].values():
        changed = json.loads(result.files["changed.json"])
        assert [line for line in changed if not line.startswith((*ANSIBLES, LABS))] == []


def test_the_collection_s_modules_work_in_a_user_s_own_playbook(machine: Machine, folder: Path) -> None:
    for own in ran(machine, folder)[1].own.values():
        assert own["changed"] == [True, True, False, True, False, False]
        assert own["isolated"]
        assert set(own["noise"]["cpus"])
