"""The public API: the examples of docs/api.md run, every name exists, and importing the package loads nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import quiet
from tests import CHECKOUT, hosts

PAGE = (CHECKOUT / "docs" / "api.md").read_text().partition("\n## cbench\n")[0]
EXAMPLES = re.findall(r"^### (.+?)$|^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    title, found = "", []
    for heading, code in EXAMPLES:
        title = heading or title
        if code:
            found.append((title, code))
    return found


def python(*arguments: str, cwd: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(("title", "code"), examples())
def test_an_example_runs(title: str, code: str, tmp_path: Path) -> None:
    folder = tmp_path / "myhost"
    folder.mkdir()
    (archive,) = [path for path in hosts.ARCHIVES if path.name == "smt.tar.gz"]
    hosts.unpack(archive, folder)
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, f"{title}: {done.stderr}"


def test_every_name_of_quiet_exists_is_typed_and_is_documented() -> None:
    for name in quiet.__all__:
        assert getattr(quiet, name) is not None
    (block,) = [node for node in ast.parse(Path(quiet.__file__).read_text()).body if isinstance(node, ast.If)]
    imported = {a.asname for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assigned = {ast.unparse(node.targets[0]) for node in block.body if isinstance(node, ast.Assign)}
    assert {name for name in imported | assigned if name and name[0] != "_"} == set(quiet.__all__)
    table = PAGE.partition("### All names")[2].partition("## cbench")[0]
    listed = [
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1:2][0] if "|" in row else "")
    ]
    assert sorted(listed) == sorted(quiet.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'quiet' has no attribute 'nothing'"):
        quiet.nothing  # noqa: B018
    assert "applied" in dir(quiet)


def test_importing_quiet_loads_none_of_its_modules() -> None:
    code = "import sys, quiet; print(*[name for name in sys.modules if name.startswith('quiet.') or name == 'typing'])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []
