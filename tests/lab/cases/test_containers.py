"""With systemd: containers and services in quiet.slice are on the isolated CPUs, and so are the jobs of runners."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.lab.harness import cache, debian
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.parametrize("machine", ["host-6.1"], indirect=True)]
TIMEOUT_S = 1800  # ten times the duration on an idle machine
PACKAGES = [
    *("podman", "crun", "conmon", "uidmap", "golang-github-containers-common", "golang-github-containers-image"),
    *("libgpgme11", "libassuan0", "libgpg-error0", "libseccomp2", "libyajl2", "libsubid4", "libdevmapper1.02.1"),
    *("libcap2", "libselinux1", "libudev1", "libpcre2-8-0", "libsystemd0", "libgcrypt20", "liblzma5", "libzstd1"),
    *(
        "liblz4-1",
        "libaudit1",
        "libcap-ng0",
        "libsemanage2",
        "libsepol2",
        "libbz2-1.0",
        "libglib2.0-0",
        "busybox-static",
    ),
]
ISOLATED, HOUSEKEEPING = "2-3", "0-1"


def _archive(made: Path) -> None:
    root = debian.programs("podman", PACKAGES)
    folders = [name for name in ("bin", "etc", "lib", "sbin", "usr") if (root / name).exists()]
    subprocess.run(
        ["tar", "-C", root, "--exclude=usr/share/doc", "--exclude=usr/share/man", "-cf", made / "podman.tar", *folders],
        check=True,
    )
    (busybox,) = [path for path in root.glob("**/bin/busybox") if path.is_file()][:1]
    (made / "busybox").write_bytes(busybox.read_bytes())
    (made / "busybox").chmod(0o755)


@once
def booted(machine: Machine) -> Result:
    try:
        made = cache.make(cache.cache_dir() / "containers" / cache.digest(PACKAGES), _archive)
    except PackageError as error:
        pytest.skip(f"no lab: {error}")
    return boot(machine, "bash tests/lab/guest/containers.sh", timeout=TIMEOUT_S, give=made.iterdir())


def said(machine: Machine, name: str) -> str:
    assert booted(machine).code == 0, booted(machine).output
    return booted(machine).files[name]


def cpus(machine: Machine, name: str) -> str:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", said(machine, name), re.MULTILINE)
    assert found, said(machine, name) + said(machine, f"{name}.err")
    return found[1]


def test_the_partition_is_a_slice_and_a_reload_of_systemd_leaves_it(machine: Machine) -> None:
    assert said(machine, "partition") == f"{ISOLATED}\nisolated\nactive\n", said(machine, "apply.err")
    assert said(machine, "reloaded") == said(machine, "partition")
    assert "exit code" not in said(machine, "verify")


def test_a_container_is_on_the_isolated_cpus_only_with_the_option(machine: Machine) -> None:
    assert cpus(machine, "outside") == HOUSEKEEPING
    assert cpus(machine, "inside") == ISOLATED


def test_a_service_in_the_slice_is_on_the_isolated_cpus(machine: Machine) -> None:
    assert cpus(machine, "service") == ISOLATED


def test_a_container_that_still_runs_is_named_and_not_ended(machine: Machine) -> None:
    assert "exit code 4" in said(machine, "refused")
    assert "libpod-" in said(machine, "refused") + said(machine, "refused.err")
    assert "exit code" not in said(machine, "restored")


def test_without_root_a_container_stays_with_the_command_that_starts_it(machine: Machine) -> None:
    assert cpus(machine, "rootless") == ISOLATED


@pytest.mark.parametrize("runner", ["github", "buildkite", "gitlab"])
def test_a_job_of_a_runner_is_on_the_isolated_cpus(machine: Machine, runner: str) -> None:
    assert cpus(machine, runner) == ISOLATED


def test_slurm_gets_a_quiet_node(machine: Machine) -> None:
    assert said(machine, "slurm.partition").splitlines()[:2] == [ISOLATED, "isolated"]


def test_a_host_that_is_not_quiet_refuses_the_job(machine: Machine) -> None:
    assert "Cpus_allowed_list" not in said(machine, "noisy")
    assert "the job is refused" in said(machine, "noisy.err")


@pytest.mark.parametrize(
    "after", ["left", "rootless.left", "github.left", "noisy.left", "buildkite.left", "gitlab.left", "slurm.left"]
)
def test_afterwards_the_host_is_as_before(machine: Machine, after: str) -> None:
    assert said(machine, after) == ""
