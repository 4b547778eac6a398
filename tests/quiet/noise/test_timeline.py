"""The picture: one file that needs nothing else, with every gap in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from quiet.noise import timeline
from quiet.noise.attribute import Cause
from quiet.noise.call_nesting import HRTIMER, IRQ, THREAD
from quiet.noise.measure import NoiseMeasurement
from tests.quiet.noise.making import KINDS, measured, on_cpu

TICK = Cause(HRTIMER, "tick_nohz_handler")


class Page(HTMLParser):
    """The scripts of a page, and its requests to other hosts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts, self.wanted, self.open = list[str](), list[str](), list[str]()
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wanted += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        self.inside = tag == "script"
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts.append(data)


def panels(made: NoiseMeasurement) -> list[Any]:
    page = Page(timeline.page(made))
    found = re.search(r"^const panels = (.*);$", "".join(page.scripts), re.MULTILINE)
    assert found
    return list(json.loads(found[1]))


def test_each_gap_is_a_mark_with_its_time_length_and_cause() -> None:
    (panel,) = panels(measured({1: on_cpu([(TICK, 4_000), (Cause(IRQ, "27 eth0"), 2_000), (TICK, 5_000)])}))
    assert panel["cpu"] == 1
    assert panel["ms"] == 1000
    begins = [0.001, 10.001, 20.001]
    assert [mark[0] for mark in panel["marks"]] == pytest.approx(begins)
    assert [mark[1] for mark in panel["marks"]] == [4_000, 2_000, 5_000]
    names = [panel["names"][mark[2]] for mark in panel["marks"]]
    assert names[0] == names[2] != names[1]
    assert "27 eth0" in names[1]
    assert len(panel["colours"]) == len(panel["names"]) == 2
    assert panel["left"] == 0


def test_each_cpu_has_a_panel() -> None:
    made = measured({3: on_cpu([(TICK, 4_000)], 3), 1: on_cpu([(TICK, 4_000)])})
    assert [panel["cpu"] for panel in panels(made)] == [1, 3]


def test_a_cpu_without_gaps_has_an_empty_panel() -> None:
    (panel,) = panels(measured({1: on_cpu([])}))
    assert panel["marks"] == []


def test_the_timeline_is_one_page_without_requests() -> None:
    text = timeline.page(measured())
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.open == []
    assert page.wanted == []
    assert "://" not in text
    assert "{{" not in text


@pytest.mark.parametrize("name", ["</script><b>", "<!--<script>", "a'\"\\b", "{{ source }}", "&amp;", "\N{SNOWMAN}"])
def test_a_tasks_name_cannot_break_the_page(name: str) -> None:
    made = measured({1: on_cpu([(Cause(THREAD, name, "7"), 4_000)])})
    (panel,) = panels(made)
    assert name in panel["names"][0]
    data = timeline.page(made).partition("const panels = ")[2].partition("\n")[0]
    assert "<" not in data


def test_of_too_many_gaps_the_longest_are_drawn_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST", 2)
    (panel,) = panels(measured({1: on_cpu([(TICK, 4_000), (TICK, 1_000), (TICK, 6_000), (TICK, 2_000)], more=7)}))
    assert [mark[1] for mark in panel["marks"]] == [4_000, 6_000]
    assert panel["left"] == 2 + 7


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_cause_has_a_color(kind: str) -> None:
    assert re.fullmatch("#[0-9a-f]{6}", timeline.COLOURS[kind])


def test_no_script_but_the_pages_own_is_allowed() -> None:
    text = timeline.page(measured())
    script = text.partition("<script>")[2].partition("</script>")[0]
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'" in text
