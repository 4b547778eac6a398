"""A fleet by ssh: three servers on loopback addresses, each with processes, mounts and a boot_id of its own.

A node that "reboots" loses all its processes and has another boot_id; its sshd may be killed alone.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cbench.fleet.nodes import Controller, fleet, same_as_undisturbed, study
from tests.cbench.running import comes

PORT = 20022
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
INIT = """
mount --bind {boot_id} /proc/sys/kernel/random/boot_id
mkdir -p /run/sshd
while :; do {sshd} -D -e -f {config} 2>>{log} & echo $! >{pid}; wait $!; sleep 0.5; done
"""


def obstacle() -> str:
    if SSHD is None or not shutil.which("ssh"):
        return "sshd and ssh are not installed (tests/lab/harness/needs.sh fleet)"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False
    )
    return "namespaces of their own need root" if done.returncode else ""


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(obstacle()), reason=obstacle() or "-")]


class Node:
    """A server in namespaces of its own."""

    def __init__(self, folder: Path, number: int) -> None:
        self.name, self.address = f"n{number}", f"127.0.0.{number + 2}"
        self.folder = folder / self.name
        self.folder.mkdir()
        self.home = self.folder / "home"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "host"], check=True)
        (self.folder / "config").write_text(
            f"ListenAddress {self.address}\nPort {PORT}\nHostKey {self.folder}/host\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/key.pub\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
            "Subsystem sftp internal-sftp\nMaxStartups 100\n"
        )
        self.boot()

    def boot(self) -> None:
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        init = INIT.format(
            boot_id=self.folder / "boot_id",
            sshd=SSHD,
            config=self.folder / "config",
            log=self.folder / "log",
            pid=self.folder / "pid",
        )
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", init]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)

    def power_off(self) -> None:
        """All its processes end at once."""
        self._process.kill()
        self._process.wait()

    def kill_sshd(self) -> None:
        """The server and the connections that it has; another one starts half a second later."""
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = each.read_bytes()
            except OSError:
                continue
            if str(self.folder / "config").encode() in words and words.startswith(str(SSHD).encode()):
                os.kill(int(each.parent.name), signal.SIGKILL)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    every = [Node(tmp_path, number) for number in range(3)]
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ControlMaster=no -o ConnectTimeout=5"
    variables = {
        "ansible_user": "root",
        "ansible_port": PORT,
        "ansible_ssh_private_key_file": str(tmp_path / "key"),
        "ansible_ssh_common_args": options,
        "ansible_python_interpreter": sys.executable,
    }
    hosts = {each.name: {"ansible_host": each.address, "quiet_cbench_home": str(each.home)} for each in every}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}))
    try:
        yield every
    finally:
        for each in every:
            each.power_off()


def test_controllers_servers_and_nodes_die_and_every_trial_is_there_once(
    tmp_path: Path, nodes: list[Node], start: Callable[..., Controller]
) -> None:
    study(tmp_path, repetitions=60)
    words = ["run", "-i", "hosts.json", "s.toml", "-o", "out", "--poll", "2"]
    drawn = random.Random(3)
    controller = start(*words)
    assert comes(lambda: all((each.home / "study" / "data.db").exists() for each in nodes))
    nodes[0].power_off()
    nodes[1].kill_sshd()
    nodes[0].boot()
    for _ in range(4):
        time.sleep(drawn.uniform(0.5, 4))
        controller.cut_short()
        controller = start(*words)
    assert controller.wait(240) == 0
    for each in nodes:
        same_as_undisturbed(tmp_path, each.name, 240)
        assert not each.home.exists()
    status = json.loads(fleet(tmp_path, "status", "-o", "out", "--json").stdout)
    assert {node["state"] for node in status["nodes"].values()} == {"released"}
