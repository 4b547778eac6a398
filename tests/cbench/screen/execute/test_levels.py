"""Batches around a reboot, as far as nothing boots: what ends the runner and gives the next one another boot's id.

With real boots: tests/lab/cases/test_screen_boots.py.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from cbench.screen.data.load_store import read
from cbench.screen.execute import host_levels
from cbench.study import auto_resume
from cbench.study.resets import reboot
from quiet.host.host import Host
from tests.cbench.screen.running import experiment, factor, screen, written
from tests.trees import machine, plant

LEAVE = """set -e
echo "$CBENCH_LEVEL_SMT $CBENCH_KERNEL" >>asked
echo "root=/dev/vda quiet $CBENCH_KERNEL" >root/proc/cmdline
echo boot$(wc -l <asked) >boot
kill -9 $PPID
"""
SMT = factor("smt", {"on": "kernel = []", "off": "kernel = ['nosmt']"}, "hard = true")
ENV = factor("e", {"0": "environment = { V = '10' }", "1": "environment = { V = '20' }"})
MORE = "[reset]\nkind = 'reboot'\ncommand = '. ./leave'\n"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an experiment; its machine's command line and boot id are files there."""
    root = plant(tmp_path / "root", machine(cpus=2))
    (tmp_path / "boot").write_text("boot0\n")
    (tmp_path / "leave").write_text(LEAVE)
    monkeypatch.setattr(reboot, "boot_id", lambda: (tmp_path / "boot").read_text().strip())
    monkeypatch.setattr(auto_resume, "obstacle", lambda: "it is a test")
    monkeypatch.setattr(host_levels, "Host", lambda: Host(str(root)))
    head = "iterations = 2\nbatches = 2\nsequence = ['off', 'on', 'on', 'off']"
    written(tmp_path, experiment(SMT, ENV, command="echo $V; cat boot >>boots; echo 5", head=head, more=MORE))
    return tmp_path


@pytest.mark.slow
def test_each_batch_has_a_separate_boot_with_its_words_and_all_its_iterations(host: Path) -> None:
    done = screen("run", "e.toml", folder=host)
    assert done.returncode == -signal.SIGKILL
    assert "after each reboot, run: cbench screen resume e.db (it is a test)" in done.stderr
    for _ in range(3):
        assert screen("resume", "e.db", folder=host).returncode == -signal.SIGKILL
    done = screen("resume", "e.db", folder=host)
    assert done.returncode == 0, done.stderr
    assert (host / "asked").read_text().splitlines() == ["off nosmt", "on ", "on ", "off nosmt"]
    assert (host / "boots").read_text().split() == [f"boot{number}" for number in (1, 2, 3, 4) for _ in range(4)]
    found = read(host / "e.db")
    assert [each.confirmed["smt"] for each in found.facts] == [
        "nosmt",
        "none of the parameters",
        "none of the parameters",
        "nosmt",
    ]
    assert [each.boot_ids for each in found.facts] == [("boot1",), ("boot2",), ("boot3",), ("boot4",)]
    assert found.warnings == ()


def test_a_boot_without_the_words_ends_it_with_a_clear_line_and_the_data_kept(host: Path) -> None:
    (host / "leave").write_text(LEAVE.replace("quiet $CBENCH_KERNEL", "quiet"))
    assert screen("run", "e.toml", folder=host).returncode == -signal.SIGKILL
    done = screen("resume", "e.db", folder=host)
    assert done.returncode == 3
    assert "smt=off cannot be confirmed: the kernel was booted without nosmt; finished trials are kept" in done.stderr
    (host / "root/proc/cmdline").write_text("nosmt\n")
    assert screen("resume", "e.db", folder=host).returncode == -signal.SIGKILL  # goes on, up to the next batch
    assert len(read(host / "e.db").trials) == 4
