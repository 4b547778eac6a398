"""A process keeps away from CPUs that are to be quiet, and so does the kernel's work for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")


@pytest.mark.skipif("THP_enabled" not in STATUS.read_text(), reason="a kernel without transparent huge pages")
def test_a_process_without_huge_pages_has_none_collapsed() -> None:
    code = "from quiet.machine.affinity import forgo_huge_pages as f; f(); print(open('/proc/self/status').read())"
    status = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "THP_enabled:\t0" in status
    assert "THP_enabled:\t1" in STATUS.read_text()
