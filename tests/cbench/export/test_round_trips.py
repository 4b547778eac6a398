"""Our exports are read by their target programs, where these are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cbench.export.export import ExportOptions, export
from tests.cbench.formats.test_fixtures import DATA


def written(data: Path, kind: str, output: Path) -> Path:
    export(ExportOptions(str(data), kind, str(output)))
    return output


def ran(*words: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("otava") is None, reason="needs otava (pip install apache-otava)")
def test_otava_finds_the_change_in_a_history_that_we_write(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    document = json.loads((DATA / "google-1.8.3-repetitions.json").read_text())
    for day in range(28):
        document["context"]["date"] = f"2026-02-{day + 1:02}T10:00:00+00:00"
        for at, each in enumerate(document["benchmarks"]):
            slower = 1.1 if each["run_name"] == "sort" and day >= 14 else 1
            each["real_time"] = slower * (1000 + (day * 7 + at) % 5)
        (history / f"{day:02}.json").write_text(json.dumps(document))
    written(history, "otava", tmp_path / "history.csv")
    (tmp_path / "otava.yaml").write_text(
        "tests:\n  history:\n    type: csv\n    file: history.csv\n    time_column: time\n"
        "    metrics: [sum_range, sort]\n    csv_options: {delimiter: ',', quote_char: '\"'}\n"
    )
    command = ("otava", "analyze", "history", "--since", "2026-01-01")
    report = ran(*command, folder=tmp_path, OTAVA_CONFIG=str(tmp_path / "otava.yaml"))
    assert re.findall(r"[+-]\d+\.\d+%", report) in (["+10.0%"], ["+9.9%"], ["+10.1%"])


@pytest.mark.skipif(
    shutil.which("benchstat") is None and shutil.which("benchcmp") is None,
    reason="needs benchstat (golang.org/x/perf) or benchcmp (Debian's golang-golang-x-tools)",
)
def test_benchstat_or_benchcmp_reads_the_times_of_another_program(tmp_path: Path) -> None:
    document = json.loads((DATA / "hyperfine-2.0-parameters.json").read_text())
    old = written(DATA / "hyperfine-2.0-parameters.json", "benchfmt", tmp_path / "old.txt")
    for result in document["results"]:
        for each in result["measurements"]:
            each["time_wall_clock"]["value"] *= 2
    (tmp_path / "new.json").write_text(json.dumps(document))
    new = written(tmp_path / "new.json", "benchfmt", tmp_path / "new.txt")
    program = shutil.which("benchstat") or shutil.which("benchcmp")
    assert program
    report = ran(program, str(old), str(new), folder=tmp_path)
    assert "Sleep_0.001" in report
    assert "+100.00%" in report
