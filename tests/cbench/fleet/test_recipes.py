"""The recipes of contrib/fleet, with doubles of the programs that they call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests import CHECKOUT

RECIPES = CHECKOUT / "contrib" / "fleet"

DOUBLES = {
    "salloc": 'echo "$@" >>"$CALLS"; echo granted',
    # no job before the allocation; a job that waits has run when it has been looked at once
    "squeue": """[ -s "$CALLS" ] || exit 0
case "$*" in
*states=RUNNING*) ;;
*) [ -e "$CALLS.waits" ] || exit 0; rm "$CALLS.waits" ;;
esac
echo 'n[1-2]'""",
    "sleep": 'echo "$@" >>"$CALLS"',
    "scontrol": "echo n1; echo n2",
    "scancel": 'echo "$@" >>"$CALLS"',
}


def test_slurm_prints_its_nodes_as_an_inventory_and_cancels_by_the_fleets_name(tmp_path: Path) -> None:
    for name, script in DOUBLES.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "FLEET_ID": "f00d"}
    done = subprocess.run([RECIPES / "slurm-allocate"], env=known, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"all": {"hosts": {"n1": {}, "n2": {}}}}
    again = subprocess.run([RECIPES / "slurm-allocate"], env=known, capture_output=True, text=True, check=True)
    assert (again.stdout, len(calls.read_text().splitlines())) == (done.stdout, 1)  # the job that it has already
    (tmp_path / "calls.waits").touch()
    waited = subprocess.run([RECIPES / "slurm-allocate"], env=known, capture_output=True, text=True, check=True)
    assert (waited.stdout, calls.read_text().splitlines()[1:]) == (done.stdout, ["5"])
    calls.write_text(calls.read_text().splitlines()[0] + "\n")
    subprocess.run([RECIPES / "slurm-release"], env=known, check=True)
    assert [("f00d" in line) for line in calls.read_text().splitlines()] == [True, True]


class Portal(BaseHTTPRequestHandler):
    """As CloudLab's portal: an experiment is ready when it has been looked at twice."""

    experiments: dict[str, dict[str, object]]
    tokens: list[str | None]

    def do_GET(self) -> None:
        if self.path == "/experiments":
            self.answer(
                {"experiments": [{key: each[key] for key in ("id", "name")} for each in self.experiments.values()]}
            )
            return
        each = self.experiments[self.path.rpartition("/")[2]]
        each["status"] = {"provisioning": "booting"}.get(str(each["status"]), "ready")
        nodes = [{"client_id": f"node{n}", "hostname": f"node{n}.example.net"} for n in range(2)]
        self.answer({**each, "aggregates": {"urn:1": {"nodes": nodes}}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.experiments["17"] = {"id": "17", "status": "provisioning", **body}
        self.answer(self.experiments["17"])

    def do_DELETE(self) -> None:
        del self.experiments[self.path.rpartition("/")[2]]
        self.send_response(204)
        self.end_headers()

    def answer(self, content: object) -> None:
        self.tokens.append(self.headers["X-Api-Token"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def portal() -> Iterator[ThreadingHTTPServer]:
    Portal.experiments, Portal.tokens = {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def recipe(name: str, verb: str, known: dict[str, str]) -> str:
    words = [sys.executable, RECIPES / name, verb]
    return subprocess.run(words, env=known, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_cloudlab_begins_one_experiment_waits_for_it_and_terminates_it_by_the_fleets_name(
    portal: ThreadingHTTPServer,
) -> None:
    known = {"PORTAL_HTTP": f"http://127.0.0.1:{portal.server_port}", "PORTAL_TOKEN": "secret", "FLEET_ID": "f00d"}
    known |= {"PROJECT": "ours", "PROFILE": "PortalProfiles/small-lan", "BINDINGS": '{"nodes": "2"}'}
    known |= {"PORTAL_POLL": "0.01", "no_proxy": "*"}
    hosts = {f"node{n}": {"ansible_host": f"node{n}.example.net"} for n in range(2)}
    for _ in range(2):  # a kill between the two has allocated nothing twice
        Portal.experiments.get("17", {})["status"] = "booting"
        assert json.loads(recipe("cloudlab", "allocate", {**known})) == {"all": {"hosts": hosts}}
    (experiment,) = Portal.experiments.values()
    assert (experiment["name"], experiment["profile_name"]) == ("cb-f00d", "small-lan")
    assert experiment["bindings"] == {"nodes": "2"}
    assert set(Portal.tokens) == {"secret"}
    for _ in range(2):
        recipe("cloudlab", "release", known)
    assert Portal.experiments == {}


# As labgrid-client prints them; a place is acquired once, by the token of its reservation.
LABGRID = """#!/bin/sh
cd "$LAB"
case "$*" in
reserve*) n=$(ls reserved | wc -l); touch "reserved/T$n"; echo "export LG_TOKEN=T$n" ;;
wait*) [ -e "reserved/$2" ] ;;
*acquire) mkdir "acquired/${2#+}" ;;
*show)
    n=${2#+T}
    echo "Place 'board-$n':"
    [ -d "acquired/T$n" ] && echo "  acquired: host/user" || echo "  acquired: None"
    echo "Acquired resource 'net' (exporter/group/NetworkService/NetworkService):"
    echo "  {'avail': True, 'cls': 'NetworkService', 'params': {'address': '192.0.2.$n', 'username': 'root'}}" ;;
*release) rmdir "acquired/${2#+}" ;;
cancel-reservation*) rm "reserved/$2" ;;
esac
"""


def test_labgrid_reserves_the_requested_number_of_places_and_releases_them(tmp_path: Path) -> None:
    for each in ("reserved", "acquired"):
        (tmp_path / each).mkdir()
    (tmp_path / "labgrid-client").write_text(LABGRID)
    (tmp_path / "labgrid-client").chmod(0o755)
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LAB": str(tmp_path), "FLEET_DIR": str(tmp_path)}
    known |= {"TAGS": "board=x86", "NODES": "2"}
    hosts = {f"board-{n}": {"ansible_host": f"192.0.2.{n}", "ansible_user": "root"} for n in range(2)}
    for _ in range(2):
        assert json.loads(recipe("labgrid", "allocate", known)) == {"all": {"hosts": hosts}}
    assert sorted(each.name for each in (tmp_path / "acquired").iterdir()) == ["T0", "T1"]
    for _ in range(2):
        recipe("labgrid", "release", known)
    assert [*(tmp_path / "acquired").iterdir(), *(tmp_path / "reserved").iterdir()] == []
