"""What the tests of `cbench compare` have in common."""

from __future__ import annotations

from typing import Any

import pytest

from cbench.compare.result import compare
from quiet.errors import QuietError


def fails(a: object, b: object, message: str, **changes: Any) -> None:
    with pytest.raises(QuietError) as caught:
        compare(str(a), str(b), **changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
