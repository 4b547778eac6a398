"""The page of a report in a real browser: it fits, is complete, makes no requests, and prints."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cbench.report import svg
from tests.browser import Browser
from tests.cbench.order.pages import NASTY, paged, study

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.xdist_group("browser")]

DESKTOP, PHONE = 1280, 390
LONG = [f"a test with a name of some length {number}/threads={number % 4}" for number in range(28)]
PAGES = {"few": study(["cmd_set", "cmd_get", "get_hits"], n=20), "many": study([*NASTY, *LONG], n=6)}
VERDICT = (0xB3, 0x26, 0x1E)
TEXTS = """[...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].map(text => {
    const b = text.getBoundingClientRect();
    const turned = /rotate\\((?!-?0[ ,)])/.test(text.getAttribute('transform') || '');
    return [text.textContent, turned, b.left - box.left, b.top - box.top, b.right - box.left, b.bottom - box.top,
            box.width, box.height];
  });
})"""
BOXES = """[...document.querySelectorAll('figure svg')].map(svg => {
  const b = svg.getBoundingClientRect(); return [b.left, b.top + scrollY, b.right, b.bottom + scrollY];
})"""


@pytest.fixture(scope="module")
def browser(chromium: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in PAGES}
    for name, path in made.items():
        path.write_text(paged(PAGES[name], name), encoding="utf-8")
    return made


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
    figures = browser.value(TEXTS)
    assert len(figures) == 8
    for texts in figures:
        assert texts
        for text, _, left, top, right, bottom, width, height in texts:
            assert left >= -1, text
            assert top >= -1, text
            assert right <= width + 1, text
            assert bottom <= height + 1, text
        level = [each for each in texts if not each[1] and each[0].strip()]
        pairs = [(a, b) for at, a in enumerate(level) for b in level[:at]]
        assert not [(a[0], b[0]) for a, b in pairs if common(a, b) > 0.2]


def common(a: Any, b: Any) -> float:
    """The share of the smaller one of two boxes that lies in the other one."""
    wide, high = min(a[4], b[4]) - max(a[2], b[2]), min(a[5], b[5]) - max(a[3], b[3])
    least = min((each[4] - each[2]) * (each[5] - each[3]) for each in (a, b))
    return max(wide, 0) * max(high, 0) / least if least else 0.0


def test_letters_are_large_enough_to_be_read_on_a_phone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["few"], PHONE)
    heights = [
        each[5] - each[3] for texts in browser.value(TEXTS) for each in texts if not each[1] and "\n" not in each[0]
    ]
    assert min(heights) >= 9


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_picture_shows_the_verdict_and_every_figure(browser: Browser, pages: dict[str, Path], width: int) -> None:
    browser.open(pages["few"], width)
    pixels = picture(browser)
    assert pixels.shape[1] == width
    assert count(pixels, VERDICT) > 100
    boxes = browser.value(BOXES)
    assert len(boxes) == 8
    for left, top, right, bottom in boxes:
        part = pixels[int(top) : int(bottom), max(int(left), 0) : min(int(right), width)]
        inked = (part < 250).any(axis=2).mean()
        assert 0.005 < inked < 0.9
    for color in (svg.FIXED, svg.RANDOM, svg.DARK):
        assert count(pixels, tuple(bytes.fromhex(color[1:]))) > 50


def picture(browser: Browser) -> NDArray[np.uint8]:
    """Rows, columns, red/green/blue."""
    from matplotlib import image

    return (image.imread(io.BytesIO(browser.picture()))[:, :, :3] * 255).round().astype(np.uint8)


def count(pixels: NDArray[np.uint8], color: tuple[int, ...]) -> int:
    return int((pixels == np.array(color, dtype=np.uint8)).all(axis=2).sum())


def test_an_empty_page_would_be_found(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    path.write_text('<!doctype html><script>console.log("x"); fetch("https://example.invalid/")</script>')
    browser.open(path, DESKTOP)
    assert not (picture(browser) < 250).any()
    assert any("example.invalid" in address for address in browser.requested())
    assert browser.complaints()


@each_page
def test_a_page_prints(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.open(pages[name], DESKTOP)
    pdf = browser.printed()
    assert pdf.startswith(b"%PDF-")
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 1 <= sheets <= 12
    sizes = {tuple(float(each) for each in found.split()) for found in re.findall(rb"/MediaBox\s*\[([^\]]+)\]", pdf)}
    assert {(round(size[2]), round(size[3])) for size in sizes} <= {(595, 842), (594, 841), (595, 841), (594, 842)}
