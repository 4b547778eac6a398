"""The plots are real files with the expected content, or one clear line."""

from __future__ import annotations

import json
import re
import struct
import sys
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cbench.machine.describe import HostFacts
from cbench.machine.tlb import TlbLevels
from cbench.model import Counter, Result, Session, Settling, Trial
from cbench.report import figures
from cbench.sweep import figure
from cbench.sweep.measure import SweepCell
from cbench.sweep.result import FailedCell, Mark, MeasuredCell, SweepResult, cell_result
from cbench.workloads.registry import find
from quiet.errors import QuietError, UsageError
from tests.cbench.running import cbench, error_line

pytestmark = pytest.mark.slow

SIZES = [1 << power for power in range(12, 27)]


CYCLES = Counter("cycles", "cycles", True, "", quantum=1)
SESSION = Session(CYCLES, (Trial(100, 7), Trial(100, 7)), Settling(), "all", "fixed", "huge", "", None)


def cell(size: int, accesses: int, **changes: Any) -> MeasuredCell | FailedCell:
    cost = 4.0 if size <= 1 << 15 else 12.0 if size <= 1 << 20 else 60.0
    values = {"median_per_access": cost * 1.1, "floor_per_access": cost, "range_pct": 3.0 + size.bit_length()}
    result = Result(find("memory"), {"n": accesses, "size": size}, 3, True, (SESSION,))
    measured = cell_result(SweepCell(size, accesses, result), virtual=False)
    assert isinstance(measured, MeasuredCell)
    return replace(measured, **{**values, **changes})


def made(cells: Sequence[MeasuredCell | FailedCell] = ()) -> SweepResult:
    """A sweep, as far as the plot looks at it."""
    marks = (
        Mark(1 << 15, "L1d 32 KiB", "cache"),
        Mark(1 << 18, "TLB1 4 KiB pages 256 KiB", "tlb"),
        Mark(1 << 30, "L4 1 GiB", "cache"),
    )
    host = HostFacts("A Processor <with> brackets & more", "x86_64", "6.12", False, None, "3", True)
    every = cells or [cell(size, n) for size in SIZES for n in (10_000, 100_000)]
    return SweepResult("memory", 3, CYCLES, host, 20, 1, (), (), TlbLevels(""), marks, (), tuple(every))


def texts(path: Path) -> str:
    """All text in an SVG; raises where it is none."""
    root = ET.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return "\n".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))


def test_an_svg_shows_the_lines_the_marks_in_range_and_the_units(tmp_path: Path) -> None:
    path = tmp_path / "sweep.svg"
    figure.sweep(made(), str(path))
    found = texts(path)
    for words in ("10,000 accesses", "100,000 accesses", "cycles per access", "range, % of the floor", "working set"):
        assert words in found
    assert "L1d 32 KiB" in found
    assert "TLB1 4 KiB pages 256 KiB" in found
    assert "L4 1 GiB" not in found  # beyond the largest working set
    assert "A Processor <with> brackets & more" in found


def test_a_png_is_a_whole_picture(tmp_path: Path) -> None:
    path = tmp_path / "sweep.png"
    figure.sweep(made(), str(path))
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 800
    assert height > 600
    assert data.endswith(b"IEND" + struct.pack(">I", zlib.crc32(b"IEND")))


def test_the_same_results_give_the_same_svg(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        figure.sweep(made(), str(tmp_path / name))
    one, two = ((tmp_path / name).read_text() for name in ("one.svg", "two.svg"))
    assert one == two


def test_cells_that_failed_or_did_not_vary_are_left_out_not_drawn_as_zero(tmp_path: Path) -> None:
    cells: list[MeasuredCell | FailedCell] = [
        cell(4096, 10),
        FailedCell(8192, 10, "no memory"),
        cell(16384, 10, range_pct=0.0),
    ]
    figure.sweep(made(cells=cells), str(tmp_path / "few.svg"))
    assert "10 accesses" in texts(tmp_path / "few.svg")


def test_a_single_cell_can_be_drawn(tmp_path: Path) -> None:
    figure.sweep(made(cells=[cell(4096, 10)]), str(tmp_path / "one.svg"))
    assert "4 KiB" in texts(tmp_path / "one.svg")


def test_a_plot_that_cannot_be_written_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(QuietError, match=r"-o .*folder\.svg: Is a directory"):
        figure.sweep(made(), str(tmp_path / "folder.svg"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


@pytest.mark.parametrize("name", ["plot", "plot.jpg", "plot.svg.gz", ""])
def test_other_formats_are_refused_before_the_measurement(name: str) -> None:
    with pytest.raises(UsageError, match=r"an \.svg or \.png file"):
        figures.check(name)


def test_without_matplotlib_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match=r"pip install 'quiet-cbench\[plots\]'"):
        figures.check(str(tmp_path / "plot.svg"))


def test_the_command_without_matplotlib_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text("raise ImportError('not there')\n")
    done = cbench("sweep", "memory", "-o", str(tmp_path / "a.svg"), env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2
    assert "plots need matplotlib" in error_line(done)


def test_commands_without_a_plot_load_no_matplotlib() -> None:
    import subprocess

    code = "import sys, cbench.sweep.run, cbench.cli; print('matplotlib' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_command_draws_what_it_measured(tmp_path: Path) -> None:
    path = tmp_path / "sweep.svg"
    options = ("--sizes", "16K,64K", "--accesses", "1000", "--trials", "3", "-o", str(path), "--json")
    done = cbench("sweep", "memory", *options)
    assert done.returncode == 0, done.stderr
    report, found = json.loads(done.stdout), texts(path)
    assert f"plot written to {path}" in done.stderr
    assert f"{report['counter']['unit']} per access" in found
    for mark in report["marks"]:
        if 16 << 10 <= mark["size"] <= 64 << 10:
            assert mark["name"] in found
    assert re.search(r"1,000 accesses", found)
