"""A real kernel's devices, in a network namespace that is made for the test and ends with it; nobody has to be root."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

ENTER = ("unshare", "--user", "--map-root-user", "--net")
MAKE = """
ip link add v0 numrxqueues 4 numtxqueues 4 type veth peer name v1 numrxqueues 4 numtxqueues 4 || exit 77
exec "$@"
"""
TRY = """
import json
from quiet.targets import ethtool

def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return [error.errno, error.strerror]

said = {"found": ethtool.channels("v0")}
ethtool.set_channels("v0", {"rx": 2, "tx": 3})
said["set"] = ethtool.channels("v0")
said["too many"] = refused(ethtool.set_channels, "v0", {"rx": 9, "tx": 3})
said["no device"] = refused(ethtool.set_channels, "v7", {"rx": 1})
said["rates"] = refused(ethtool.set_adaptive, "v0", {"rx": 1})
said["table"] = refused(ethtool.set_table, "v0", [0, 1])
print(json.dumps(said | {"after": ethtool.channels("v0")}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    if not shutil.which("ip") or subprocess.run([*ENTER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("not here: network namespaces: neither root, nor are user namespaces allowed (or no iproute2)")
    program = [*ENTER, "sh", "-c", MAKE, "sh", sys.executable, "-c", TRY]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"not here: virtual network devices: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_channels_are_set_and_read_back(said: dict[str, Any]) -> None:
    assert said["found"] == {"rx": 4, "tx": 4}
    assert said["set"] == said["after"] == {"rx": 2, "tx": 3}


def test_the_kernels_reason_for_a_refusal_is_reported(said: dict[str, Any]) -> None:
    assert said["too many"] == [22, "requested channel count exceeds maximum"]
    assert said["no device"][0] == 19
    assert "no device" in said["no device"][1]


def test_settings_that_a_driver_lacks_are_reported_as_unsupported(said: dict[str, Any]) -> None:
    assert said["rates"][0] == said["table"][0] == 95
