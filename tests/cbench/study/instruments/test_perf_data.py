"""Samples in a file of `perf record`: our own reader, on files made here and beside perf itself."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

from cbench.study.instruments.perf_data import NoSamples, Samples, count
from tests.cbench.study.instruments.perf import BUSY, NEEDS_PERF, file, record

SAMPLE, COMM, LOST, THROTTLE, LOST_SAMPLES, AUX, COMPRESSED = 9, 3, 2, 5, 13, 71, 81


@pytest.mark.parametrize("order", ["<", ">"])
def test_records_of_samples_are_counted_and_others_are_not(tmp_path: Path, order: str) -> None:
    records = [record(COMM, bytes(16), order), *[record(SAMPLE, bytes(24), order)] * 5, record(COMM, bytes(8), order)]
    assert count(file(tmp_path / "p", *records, order=order)) == Samples(5, 0, 0, (1, 0), False)


def test_lost_samples_and_pauses_of_the_kernel_are_reported(tmp_path: Path) -> None:
    lost = record(LOST, struct.pack("<QQ", 77, 3))
    pauses = record(THROTTLE, bytes(24))
    made = count(file(tmp_path / "p", record(SAMPLE), lost, lost, pauses, record(LOST_SAMPLES, struct.pack("<Q", 4))))
    assert made == Samples(1, 6, 1, (1, 0), False)  # both report the same loss


def test_data_after_a_trace_record_are_not_a_record(tmp_path: Path) -> None:
    trace = record(AUX, struct.pack("<QQQIIII", 20, 0, 0, 0, 0, 0, 0)) + record(SAMPLE) + bytes(12)
    assert count(file(tmp_path / "p", trace, record(SAMPLE))).samples == 1


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda path: path, "No such file or directory"),
        (lambda path: path.mkdir() or path, "Is a directory"),
        (lambda path: path.write_text("PERF") and path, "is not a file of `perf record`"),
        (lambda path: file(path, record(SAMPLE), header=16), "was written to a pipe, or by an unknown version of perf"),
        (
            lambda path: file(path, record(SAMPLE), size=0),
            "is incomplete: `perf record` ended before it finished the file",
        ),
        (lambda path: file(path, record(SAMPLE), size=99), "ends before its last record"),
        (lambda path: file(path, record(SAMPLE), bytes(8)), "damaged at byte 176"),
        (
            lambda path: file(path, record(COMPRESSED)),
            "is compressed, which cbench does not request: use a `perf` that does not add -z",
        ),
    ],
)
def test_a_file_that_cannot_be_counted_says_why(made: object, why: str, tmp_path: Path) -> None:
    path = made(tmp_path / "p")  # type: ignore[operator]
    with pytest.raises(NoSamples, match=f"^{re.escape(f'{path}: {why}')}$"):
        count(path)


@pytest.mark.slow
@NEEDS_PERF
@pytest.mark.parametrize("graph", [[], ["--call-graph=fp"], ["--call-graph=dwarf,1024"]])
def test_the_count_is_that_of_perf_itself(graph: list[str], tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    command = ["perf", "record", "-q", "-B", "-N", "-e", "cpu-clock", "-F", "1000", *graph, "-o", str(path), "--"]
    subprocess.run([*command, "/bin/sh", "-c", BUSY], check=True)
    found = count(path)
    said = subprocess.run(["perf", "report", "--stats", "-i", str(path)], capture_output=True, text=True, check=True)
    stats = re.search(r"SAMPLE events:\s+(\d+)", said.stdout)
    assert stats is not None
    script = subprocess.run(
        ["perf", "script", "-F", "tid,time", "-G", "-i", str(path)], capture_output=True, text=True, check=True
    )
    assert (found.samples, found.lost) == (int(stats[1]), 0)
    assert found.samples == len(script.stdout.split("\n")) - 1
    assert found.samples > 20
