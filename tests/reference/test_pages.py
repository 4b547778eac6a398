"""The generated pages have what the code has now."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.reference import commands, toml_files


@pytest.mark.parametrize("page", [commands, toml_files])
def test_a_generated_page_is_up_to_date(page: ModuleType) -> None:
    assert page.FILE.read_text() == page.written(), f"run: python -m {page.__name__}"
