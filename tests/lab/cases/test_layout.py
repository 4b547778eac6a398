"""The lab's directories import what README.md lets them, and README.md lists every machine. Boots nothing."""

from __future__ import annotations

import ast
import re

import pytest

from tests import CHECKOUT
from tests.lab.harness.machines import MACHINES

LAB = CHECKOUT / "tests/lab"
README = (LAB / "README.md").read_text()


@pytest.mark.parametrize(
    ("folder", "others"), [("harness", ("guest", "cases", "thesis", "demo")), ("guest", ("harness", "cases", "thesis"))]
)
def test_harness_and_guest_programs_do_not_import_each_other_or_the_tests(folder: str, others: tuple[str, ...]) -> None:
    forbidden = tuple(f"tests.lab.{other}" for other in others)
    for path in sorted((LAB / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            assert not [name for name in names if name.startswith(forbidden)], path


def test_the_readme_lists_every_machine() -> None:
    rows = [line.split("|")[1] for line in README.splitlines() if line.startswith("| `")]
    assert set(MACHINES) <= {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_example_in_the_readme_is_python_that_imports_what_exists() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    head = example[: example.index("@functools")]
    exec(compile(head, "README.md", "exec"), {})
    compile(example, "README.md", "exec")
