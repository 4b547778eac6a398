"""The ACPI table that gives a guest frequency scaling: written for N processors, compiled when needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

TEMPLATE = Path(__file__).with_name("cpufreq.asl")


def source(cpus: int) -> str:
    part = TEMPLATE.read_text()
    parts = [part.replace("@HEX@", f"{cpu:03X}").replace("@N@", str(cpu)) for cpu in range(cpus)]
    return (
        'DefinitionBlock ("", "SSDT", 2, "QUIET", "CPUFREQ", 1)\n{\n    External (\\_SB.CPUS, DeviceObj)\n'
        + "\n".join(parts)
        + "}\n"
    )


def compile_table(cpus: int, folder: Path) -> Path:
    """The table as QEMU takes it (-acpitable file=...)."""
    if not shutil.which("iasl"):
        raise FileNotFoundError("iasl (Debian package acpica-tools) is missing")
    (folder / "cpufreq.asl").write_text(source(cpus))
    command = ["iasl", "-p", "cpufreq", "cpufreq.asl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise ValueError(f"iasl refused the table: {done.stdout}{done.stderr}")
    return folder / "cpufreq.aml"
