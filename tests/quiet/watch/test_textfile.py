"""The metrics file: as read by a strict parser of the exposition format.

The format: https://prometheus.io/docs/instrumenting/exposition_formats/, text-based, version 0.0.4.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quiet.errors import QuietError
from quiet.noise.attribute import Cause
from quiet.watch.interrupt_counts import Interruption
from quiet.watch.textfile import MOST_CAUSES, Textfile, WatchState

METRIC, LABEL = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*"), re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SAMPLE = re.compile(r"(?P<name>[^{ ]+)(?:\{(?P<labels>.*)\})? (?P<value>[0-9.e+-]+)")
PAIR = re.compile(r'([^=,]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parsed(text: str) -> tuple[dict[str, str], Samples]:
    """The type of each metric, and its samples; fails where the text is not of the format."""
    types: dict[str, str] = {}
    samples: Samples = {}
    helped = set()
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            _, word, name, rest = line.split(" ", 3)
            assert METRIC.fullmatch(name)
            assert rest
            if word == "HELP":
                assert name not in helped
                helped.add(name)
            else:
                assert word == "TYPE"
                assert name not in types, "one TYPE for a metric, before its samples"
                assert rest in ("counter", "gauge")
                types[name] = rest
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        labels, at = [], 0
        while at < len(match["labels"] or ""):
            pair = PAIR.match(match["labels"], at)
            assert pair, line
            assert LABEL.fullmatch(pair[1])
            labels.append((pair[1], re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], pair[2])))
            at = pair.end()
        key = (match["name"], tuple(labels))
        assert match["name"] in types, "its TYPE is before it"
        assert key not in samples, "a series is there once"
        samples[key] = float(match["value"])
    assert helped == set(types)
    assert all(name.endswith("_total") for name, kind in types.items() if kind == "counter")
    return types, samples


def interruptions(samples: Samples) -> dict[tuple[str, ...], float]:
    """By CPU, kind and cause."""
    return {
        tuple(value for _, value in labels): number
        for (name, labels), number in samples.items()
        if name == "quiet_interruptions_total"
    }


def test_counts_are_summed_by_cpu_and_cause(tmp_path: Path) -> None:
    file = Textfile(str(tmp_path / "quiet.prom"))
    nvme, switch = Cause("irq", "131 nvme0q7"), Cause("softirq", "RCU")
    file.add([Interruption(3, nvme, 4), Interruption(2, switch, 1)])
    file.add([Interruption(3, nvme, 2)])
    file.write(True, 1.25, WatchState("bench", 2))
    types, samples = parsed((tmp_path / "quiet.prom").read_text())
    assert interruptions(samples) == {("3", "irq", "IRQ 131 nvme0q7"): 6, ("2", "softirq", "softirq RCU"): 1}
    assert samples["quiet_watch_cpu_seconds_total", ()] == 1.25
    assert (samples["quiet_watching", ()], samples["quiet_applied", ()], samples["quiet_drifts", ()]) == (1, 1, 2)
    assert types["quiet_applied"] == "gauge"


def test_without_a_profile_there_is_no_state_metric(tmp_path: Path) -> None:
    Textfile(str(tmp_path / "quiet.prom")).write(False, 0.0, None)
    _, samples = parsed((tmp_path / "quiet.prom").read_text())
    assert samples == {("quiet_watch_cpu_seconds_total", ()): 0, ("quiet_watching", ()): 0}


def test_after_a_restore_nothing_is_applied(tmp_path: Path) -> None:
    Textfile(str(tmp_path / "quiet.prom")).write(True, 0.0, WatchState("", 0))
    assert parsed((tmp_path / "quiet.prom").read_text())[1]["quiet_applied", ()] == 0


@pytest.mark.parametrize("name", ['a"b', "back\\slash", "two\nlines", "comma,brace}", "ümlaut", ""])
def test_any_name_of_a_device_is_one_label(tmp_path: Path, name: str) -> None:
    file = Textfile(str(tmp_path / "quiet.prom"))
    file.add([Interruption(0, Cause("irq", f"7 {name}"), 1)])
    file.write(True, 0.0, None)
    ((_, _, cause),) = interruptions(parsed((tmp_path / "quiet.prom").read_text())[1])
    assert cause == f"IRQ 7 {name}".replace("\n", "?")


def test_the_number_of_series_is_bounded_and_no_count_is_lost(tmp_path: Path) -> None:
    file = Textfile(str(tmp_path / "quiet.prom"))
    for number in range(1000):
        file.add([Interruption(2, Cause("irq", f"{number} x"), 1), Interruption(3, Cause("irq", f"{number} x"), 1)])
    file.write(True, 0.0, None)
    counted = interruptions(parsed((tmp_path / "quiet.prom").read_text())[1])
    assert len(counted) <= 2 * (MOST_CAUSES + 1)
    assert sum(counted.values()) == 2000
    assert counted["2", "other", "other"] == 1000 - MOST_CAUSES


def test_the_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = Textfile(str(tmp_path / "quiet.prom"))
    file.write(True, 0.0, None)
    before = (tmp_path / "quiet.prom").stat().st_ino
    with open(tmp_path / "quiet.prom") as reader:
        file.write(False, 0.0, None)
        assert "quiet_watching 1" in reader.read()
    assert (tmp_path / "quiet.prom").stat().st_ino != before
    assert [path.name for path in tmp_path.iterdir()] == ["quiet.prom"]


def test_a_removed_folder_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(QuietError, match="--textfile"):
        Textfile(str(tmp_path / "gone/quiet.prom")).write(True, 0.0, None)
