"""The page of a screen's report in a real browser: it fits, nothing is cut off, it makes no requests, it prints."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cbench.report.svg import FIXED
from cbench.screen.analysis.analysis import analyse
from cbench.screen.report import page
from cbench.screen.report.figures import RED
from tests.browser import Browser
from tests.cbench.order.test_page_browser import BOXES, DESKTOP, PHONE, TEXTS, VERDICT, common
from tests.cbench.screen import screens
from tests.cbench.screen.screens import BOTH, QUICK, screened, table
from tests.cbench.screen.stats import simulated

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.xdist_group("browser")]

NAMES = ("frame-pointers", "profiler", "address-space-layout")
PAGES = ("few", "note", "boots", "long names")
MOST_BYTES = 3_000_000  # twice what it has: the figures of many values are no larger than those of few


@pytest.fixture(scope="module")
def browser(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    rows = screens.planted(25)
    keys = dict(zip("abc", NAMES, strict=True))
    long = [
        {keys.get(key, key): f"level-{value}" if key in keys else value for key, value in row.items()} for row in rows
    ]
    note = simulated.technical_note(400)
    made = {
        "few": screened(table(folder / "few.csv", rows), chosen=BOTH),
        "note": (analyse(note, QUICK), note),
        "boots": screened(table(folder / "boots.csv", screens.boots())),
        "long names": screened(table(folder / "long.csv", long), chosen=BOTH),
    }
    paths = {}
    for name, (found, data) in made.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(page.page(found, data), encoding="utf-8")
    return paths


each_page = pytest.mark.parametrize("name", PAGES)


@each_page
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_page_fits_into_the_window_and_makes_no_requests(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.open(pages[name], width)
    assert browser.value("window.innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") <= width
    outside = [address for address in browser.requested() if not address.startswith("data:")]
    assert outside == [pages[name].as_uri()]
    assert browser.complaints() == []
    shown = browser.value("document.querySelector('.verdict p').getBoundingClientRect().top")
    assert 0 < shown < 400


@each_page
def test_no_text_of_a_figure_is_cut_off_or_overlaps_another(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.open(pages[name], DESKTOP)
    for texts in browser.value(TEXTS):
        assert texts
        for text, _, left, top, right, bottom, width, height in texts:
            assert left >= -1, text
            assert top >= -1, text
            assert right <= width + 1, text
            assert bottom <= height + 1, text
        level = [each for each in texts if not each[1] and each[0].strip()]
        pairs = [(a, b) for at, a in enumerate(level) for b in level[:at]]
        assert not [(a[0], b[0]) for a, b in pairs if common(a, b) > 0.2]


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_every_figure_is_drawn_in_its_colors(browser: Browser, pages: dict[str, Path], width: int) -> None:
    browser.open(pages["note"], width)
    pixels = picture(browser)
    boxes = browser.value(BOXES)
    assert len(boxes) == 1 + 4 * 8
    for left, top, right, bottom in boxes:
        part = pixels[int(top) : int(bottom), max(int(left), 0) : min(int(right), width)]
        assert 0.003 < (part < 250).any(axis=2).mean() < 0.9
    for color in (VERDICT, rgb(FIXED), rgb(RED)):
        assert (pixels == np.array(color, dtype=np.uint8)).all(axis=2).sum() > 50


def rgb(color: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(color[1:]))


def picture(browser: Browser) -> NDArray[np.uint8]:
    """Rows, columns, red/green/blue."""
    from matplotlib import image

    return (image.imread(io.BytesIO(browser.picture()))[:, :, :3] * 255).round().astype(np.uint8)


@each_page
def test_a_page_prints(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name], DESKTOP)
    pdf = browser.printed()
    assert pdf.startswith(b"%PDF-")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 30


@pytest.mark.long
def test_a_report_of_220000_values_opens_at_once(browser: Browser, tmp_path: Path) -> None:
    data: Any = simulated.technical_note(5000)
    path = tmp_path / "large.html"
    path.write_text(page.page(analyse(data, QUICK), data), encoding="utf-8")
    assert path.stat().st_size < MOST_BYTES
    begin = time.monotonic()
    browser.open(path, DESKTOP)
    assert browser.value("document.querySelectorAll('figure svg').length") == 1 + 4 * 8
    assert time.monotonic() - begin < 55  # two seconds where nothing else runs
