"""docs/ci/quiet-job with the files of another directory: what a runner's user could do with its rule for sudo."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[3] / "docs/ci/quiet-job"
QUIET = """#!/bin/sh
echo "$1" >>"$(dirname "$0")/../calls"
[ "$1" != status ] || echo '{"applied": null}'
[ ! -e "$(dirname "$0")/../$1.code" ] || exit "$(cat "$(dirname "$0")/../$1.code")"
[ "$1" != apply ] || { [ ! -e "$(dirname "$0")/../reuse" ] || . "$(dirname "$0")/../reuse"; }
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The hook, whose paths lead into this directory, a cgroup of the isolated CPUs, and a `quiet` that does
    nothing.
    """
    text = HOOK.read_text().replace("/sys/fs/cgroup", f"{tmp_path}/cgroup").replace("/proc/", f"{tmp_path}/proc/")
    text = (
        text.replace("STATE=/run/", f"STATE={tmp_path}/")
        .replace("PATH=", f"PATH={tmp_path}/bin:")
        .replace("/etc/quiet", f"{tmp_path}/etc")
    )
    for name, content in (("hook", text), ("bin/quiet", QUIET)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)
    (tmp_path / "cgroup/quiet").mkdir(parents=True)
    return tmp_path


def process(root: Path, pid: int, cgroup: str) -> Path:
    folder = root / f"proc/{pid}"
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(f"0::{cgroup}\n")
    (folder / "stat").write_text("")
    return folder


def job(root: Path, *arguments: str, uid: int | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SUDO_UID": str(os.geteuid() if uid is None else uid)}
    command = [str(root / "hook"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)


def calls(root: Path) -> list[str]:
    return (root / "calls").read_text().split()


def test_a_job_goes_to_the_isolated_cpus_and_back(root: Path) -> None:
    process(root, 77, "/user")
    (root / "cgroup/user").mkdir()
    assert job(root, "start", "77").returncode == 0
    assert (root / "cgroup/quiet/job/cgroup.procs").read_text() == "77\n"
    (root / "proc/77/cgroup").write_text("0::/quiet/job\n")
    assert job(root, "end").returncode == 0
    assert (root / "cgroup/user/cgroup.procs").read_text() == "77\n"


def test_the_name_of_a_cgroup_leads_nowhere_else(root: Path) -> None:
    process(root, 77, r"/user\0057..\0057..\0057outside")
    for name in ("cgroup/user", "outside"):
        (root / name).mkdir()
    assert job(root, "start", "77").returncode == 0
    job(root, "end")
    assert list((root / "outside").iterdir()) == []


def test_a_process_of_another_user_is_not_moved(root: Path) -> None:
    process(root, 77, "/user")
    assert job(root, "start", "77", uid=os.geteuid() + 1).returncode == 3
    assert not (root / "calls").exists()


def test_a_number_that_another_process_has_by_the_time_of_the_move_is_not_moved(root: Path) -> None:
    process(root, 77, "/user")
    (root / "reuse").write_text(f"rm -r {root}/proc/77")  # one that is gone has no owner either
    assert job(root, "start", "77").returncode == 3
    assert not (root / "cgroup/quiet/job").exists()
    assert calls(root)[-1] == "restore"


def test_a_number_that_another_process_has_since_the_job_ended_is_not_moved(root: Path) -> None:
    files = process(root, 77, "/user")
    (root / "cgroup/user").mkdir()
    assert job(root, "start", "77").returncode == 0
    (files / "cgroup").write_text("0::/system.slice/sshd.service\n")
    assert job(root, "end").returncode == 0
    assert not (root / "cgroup/user/cgroup.procs").exists()


@pytest.mark.parametrize(("call", "program", "to"), [("start", "stat", "quiet/job"), ("end", "sed", "user")])
def test_a_process_that_gets_the_number_during_the_move_goes_to_the_cgroup_of_its_parent(
    root: Path, call: str, program: str, to: str
) -> None:
    process(root, 1, "/init.scope")
    for name in ("user", "init.scope"):
        (root / "cgroup" / name).mkdir()
    files = process(root, 77, "/user")
    if call == "end":
        assert job(root, "start", "77").returncode == 0
        (files / "cgroup").write_text("0::/quiet/job\n")
    (root / "bin" / program).write_text(
        f'#!/bin/sh\n{shutil.which(program)} "$@" || exit\n[ "$PWD" = {files} ] || exit 0\n'
        f"rm -r {files} && mkdir {files} && echo 0::/{to} >{files}/cgroup && echo '77 (a) b) S 1 77' >{files}/stat\n"
    )
    (root / "bin" / program).chmod(0o755)
    assert job(root, call, "77").returncode == (3 if call == "start" else 0)
    assert (root / "cgroup" / to / "cgroup.procs").read_text() == "77\n"
    assert (root / "cgroup/init.scope/cgroup.procs").read_text() == "77\n"


@pytest.mark.parametrize("before", [None, 0o644])
def test_no_other_user_can_open_and_thereby_hold_the_lock(root: Path, before: int | None) -> None:
    if before:
        (root / "quiet-job.lock").touch(before)
    assert job(root, "start").returncode == 0
    assert (root / "quiet-job.lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("words", [("end",), ("wait", "77")])
def test_the_end_of_a_job_waits_for_the_lock_as_long_as_it_takes(root: Path, words: tuple[str, ...]) -> None:
    (root / "hook").write_text((root / "hook").read_text().replace("flock -w 600", "flock -w 0.02"))
    files = process(root, 77, "/user")
    assert job(root, "start", "77").returncode == 0
    shutil.rmtree(files)
    with open(root / "quiet-job.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert job(root, "start").returncode == 3
        with subprocess.Popen([str(root / "hook"), *words], stderr=subprocess.PIPE, text=True) as ending:
            assert ending.stderr is not None
            assert any("still waiting to restore the host" in line for line in ending.stderr)
            fcntl.flock(lock, fcntl.LOCK_UN)
    assert ending.returncode == 0
    assert calls(root)[-1] == "restore"


@pytest.mark.parametrize(
    ("fails", "code"),
    [({"apply": 3}, 3), ({"verify": 1}, 1), ({"apply": 3, "restore": 4}, 4), ({"verify": 1, "restore": 4}, 4)],
)
def test_a_job_that_is_refused_has_the_host_restored_or_says_that_it_is_not(
    root: Path, fails: dict[str, int], code: int
) -> None:
    for name, status in fails.items():
        (root / f"{name}.code").write_text(str(status))
    done = job(root, "start")
    assert done.returncode == code
    assert ("not restored completely" in done.stderr) == (code == 4)
    assert calls(root)[-1] == "restore"


def test_one_setting_that_is_refused_refuses_no_job(root: Path) -> None:
    (root / "apply.code").write_text("1")
    assert job(root, "start").returncode == 0
    assert calls(root)[-1] == "verify"


def test_a_missing_process_is_wrong_usage(root: Path) -> None:
    done = job(root, "during")
    assert done.returncode == 2
    assert "PID is missing; usage: quiet-job during PID" in done.stderr


def test_an_incomplete_restore_at_the_end_of_a_job_is_its_exit_code_and_is_tried_again(root: Path) -> None:
    assert job(root, "start").returncode == 0
    (root / "restore.code").write_text("4")
    assert job(root, "end").returncode == 4
    assert job(root, "start").returncode == 4
    (root / "restore.code").unlink()
    assert job(root, "start").returncode == 0


def test_a_shell_that_is_gone_at_once_still_has_the_host_restored(root: Path) -> None:
    files = process(root, 77, "/user")
    assert job(root, "start", "77").returncode == 0
    shutil.rmtree(files)
    assert job(root, "wait", "77").returncode == 0
    end = time.monotonic() + 60
    while calls(root)[-1] != "restore":
        assert time.monotonic() < end
        time.sleep(0.01)


def test_while_a_job_runs_another_one_is_refused_and_its_end_restores_nothing(root: Path) -> None:
    for pid in (77, 78):
        process(root, pid, "/user")
    assert job(root, "start", "77").returncode == 0
    done = job(root, "start", "78")
    assert (done.returncode, "process 77 is still running" in done.stderr) == (3, True)
    assert job(root, "end", "78").returncode == 0
    assert "restore" not in calls(root)
    assert job(root, "end", "77").returncode == 0
    assert calls(root)[-1] == "restore"


def test_the_waiter_of_a_job_that_is_over_leaves_the_next_job_alone(root: Path) -> None:
    first = process(root, 77, "/user")
    process(root, 78, "/user")
    assert job(root, "start", "77").returncode == 0
    shutil.rmtree(first)
    assert job(root, "start", "78").returncode == 0  # which restores what 77 has left
    before = calls(root)
    assert job(root, "wait", "77").returncode == 0
    assert calls(root) == before


@pytest.mark.slow
def test_a_job_that_starts_while_another_one_ends_waits_for_it(root: Path) -> None:
    first = process(root, 77, "/user")
    process(root, 78, "/user")
    assert job(root, "start", "77").returncode == 0
    (root / "bin/quiet").write_text(
        QUIET + f"[ $1 != restore ] || {{ touch {root}/restoring; sleep 1; echo restored >>{root}/calls; }}\n"
    )
    shutil.rmtree(first)
    with subprocess.Popen([str(root / "hook"), "wait", "77"]) as waiter:
        end = time.monotonic() + 60
        while not (root / "restoring").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert job(root, "start", "78").returncode == 0
    assert waiter.returncode == 0
    assert calls(root)[3:] == ["restore", "restored", "status", "apply", "verify"]


@pytest.mark.parametrize(
    ("shared", "code"),
    [("OK", 1), ("YES", 1), ("USER", 1), ("NO", 0), ("TOPO", 0), (None, 0)],  # None: before Slurm 23.02
)
def test_slurm_gets_no_quiet_node_for_a_job_that_may_share_it(root: Path, shared: str | None, code: int) -> None:
    text = (HOOK.parent / "slurm-prolog.sh").read_text().replace("/usr/local/sbin/quiet-job", str(root / "hook"))
    known = {"SLURM_JOB_ID": "7"} | ({} if shared is None else {"SLURM_JOB_OVERSUBSCRIBE": shared})
    done = subprocess.run(["/bin/sh", "-c", text], env=known, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    assert (root / "calls").exists() == (code == 0)
    shares = "slurm-prolog: job 7 may share this node with other jobs; set OverSubscribe=EXCLUSIVE for its partition"
    assert done.stderr.splitlines() == ([] if code == 0 else [shares])
