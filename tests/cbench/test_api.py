"""The public API: documented examples run, names are lazy, results show themselves with every value escaped."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cbench
from quiet import table_html
from tests import CHECKOUT

DOCUMENT = CHECKOUT / "docs" / "api.md"
PAGE = DOCUMENT.read_text().partition("\n## cbench\n")[2]


@pytest.mark.slow
def test_the_documented_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)


def test_every_name_exists_and_is_documented() -> None:
    for name in cbench.__all__:
        assert getattr(cbench, name) is not None
        assert re.search(rf"`{name}[`(s]", PAGE), name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        cbench.nothing  # noqa: B018
    assert set(cbench.__all__) == set(dir(cbench))


def test_the_import_loads_nothing() -> None:
    code = "import sys, __future__; before = set(sys.modules); import cbench; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['cbench']"


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "from cbench.measure import layout; ", "import cbench.compare.result; "])
def test_the_packages_can_be_called_whichever_import_came_first(before: str) -> None:
    code = f"{before}import cbench\ntry: cbench.measure('hush')\nexcept cbench.UsageError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("unknown workload 'hush'")


def test_values_are_escaped_in_a_notebook() -> None:
    shown = table_html("<a>", ["<b>"], [["<c>", None, 1234]], ["<d> & more"])
    assert "<c>" not in shown
    assert all(
        text in shown for text in ("&lt;a&gt;", "&lt;b&gt;", "&lt;c&gt;", "<td>-</td>", "1,234", "&lt;d&gt; &amp;")
    )
