"""The script that runs before the Debian package is removed: it restores first, and fails where that is incomplete."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

from tests import CHECKOUT

PRERM: str = runpy.run_path(str(CHECKOUT / "contrib/package/deb.py"))["PRERM"]
QUIET = """\
#!/bin/sh
echo "$*" >>"{log}"
[ "$1" != "{fails}" ] || {{ echo "not restored: file:/proc/x"; exit 4; }}
"""


def removed(folder: Path, fails: str = "", unit: str = "") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run it with a program that fails at one command; `unit`: of quiet.service. Also the commands that were called."""
    program, units, log = folder / "opt/bin/quiet", folder / "units", folder / "log"
    program.parent.mkdir(parents=True)
    program.write_text(QUIET.format(log=log, fails=fails))
    program.chmod(0o755)
    (folder / "opt/lib/python3/__pycache__").mkdir(parents=True)
    units.mkdir()
    if unit:
        (units / "quiet.service").write_text(unit)
    script = PRERM.replace("/opt/quiet", str(folder / "opt")).replace("/etc/systemd/system", str(units))
    done = subprocess.run(["sh", "-s", "remove"], input=script, capture_output=True, text=True, check=False)
    return done, log.read_text().splitlines()


def test_settings_are_restored_before_the_service_and_the_boot_parameters_go(tmp_path: Path) -> None:
    done, called = removed(tmp_path, unit=f"[Service]\nExecStart={tmp_path}/opt/bin/python3 -P -B -m quiet apply\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert called == ["lock --no-wait -- true", "restore", "remove-service", "boot remove"]
    assert not (tmp_path / "opt/lib/python3/__pycache__").exists()


@pytest.mark.parametrize("fails", ["lock", "restore", "boot"])
def test_where_a_step_fails_the_package_stays_and_the_message_has_the_reason(tmp_path: Path, fails: str) -> None:
    done, called = removed(tmp_path, fails)
    assert done.returncode == 1
    assert done.stderr.startswith("not restored: file:/proc/x\nquiet-cbench stays installed")
    assert called[-1].startswith(fails)
    assert (tmp_path / "opt/lib/python3/__pycache__").exists()


def test_a_foreign_service_of_that_name_is_kept(tmp_path: Path) -> None:
    _, called = removed(tmp_path, unit="[Service]\nExecStart=/usr/bin/other\n")
    assert called == ["lock --no-wait -- true", "restore", "boot remove"]
