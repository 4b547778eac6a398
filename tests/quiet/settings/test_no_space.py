"""Where there is no space for the journal, nothing is changed; where there is none any more, restore needs none."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.quiet.kernels import settings, tree
from tests.quiet.settings.test_laws import SHARED
from tests.trees import contents


@pytest.fixture(params=[SHARED, None], ids=["in memory", "on a disk"])
def root(request: pytest.FixtureRequest) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=request.param) as folder:
        yield tree(Path(folder, "machine"), settings())


def limited(blocks: int | None, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `quiet` with no file larger than so many blocks of 512 bytes: a full file system without root.

    Python 3.11 would keep compiled modules that were cut by the limit (-B: it writes none).
    """
    command = [sys.executable, "-B", "-m", "quiet", *map(str, arguments)]
    limit = f"ulimit -f {blocks}; " if blocks else ""
    return subprocess.run(
        ["sh", "-c", f'{limit}exec "$@"', "sh", *command], capture_output=True, text=True, check=False, cwd=CHECKOUT
    )


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 2, 4, 8])
def test_without_space_for_its_journal_an_apply_changes_nothing_or_names_the_restore_command(
    root: Path, blocks: int
) -> None:
    before = contents(root)
    done = limited(blocks, "apply", "--root", root)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    if done.returncode == 3:
        assert "nothing was changed" in done.stderr
        assert "KiB" in done.stderr
        assert contents(root) == before
        assert not (root / "run/quiet/journal.jsonl").exists()
    else:  # a file system that reserves more than may be written
        assert done.returncode == 4
        assert "`quiet restore`" in done.stderr
    assert limited(blocks, "restore", "--root", root).returncode == 0
    assert contents(root) == before


def test_an_apply_for_a_block_that_stops_midway_is_restored_at_once(root: Path) -> None:
    before = contents(root)
    code = f"import quiet\nwith quiet.applied('bench', root={str(root)!r}):\n    print('entered')\n"
    command = f'ulimit -f 4; exec {sys.executable} -B -c "$0"'
    done = subprocess.run(["sh", "-c", command, code], capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert done.stdout == ""
    assert "Refused: " in done.stderr.splitlines()[-1]
    assert contents(root) == before
    assert not (root / "run/quiet/journal.jsonl").exists()


@pytest.mark.slow
def test_a_restore_that_cannot_be_logged_restores_and_reports_it(root: Path) -> None:
    before = contents(root)
    assert limited(None, "apply", "--root", root).returncode in (0, 1)
    assert contents(root) != before
    done = limited(1, "restore", "--root", root)
    assert (done.returncode, contents(root)) == (0, before)
    assert "the restore could not be logged: File too large" in done.stderr


@pytest.mark.slow
def test_without_the_journals_space_a_second_apply_changes_nothing(root: Path) -> None:
    before = contents(root)
    limited(None, "apply", "--root", root)
    (root / "proc/sys/vm/stat_interval").write_text("7\n")
    applied = contents(root)
    done = limited(1, "apply", "--root", root)
    assert done.returncode in (3, 4)
    if done.returncode == 3:
        assert contents(root) == applied
    assert limited(1, "restore", "--force", "--root", root).returncode == 0
    assert contents(root) == before
