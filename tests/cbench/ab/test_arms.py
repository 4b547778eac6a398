"""A' is another file with the same content, as long a path and the same words; or A itself, with the reason."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cbench.ab.arms import stage
from cbench.ab.options import AbOptions, Arm
from quiet import UsageError


def options(tmp_path: Path, *texts: str, shell: bool = False) -> AbOptions:
    return AbOptions(arms=tuple(Arm(text, text) for text in texts), folder=str(tmp_path), shell=shell)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("old", "new-and-longer"):
        shutil.copy("/bin/true", tmp_path / name)
    return tmp_path


def test_the_copy_is_another_file_with_the_same_content_and_words(programs: Path, tmp_path: Path) -> None:
    staged = stage(options(programs, "./old -x", "./new-and-longer"), tmp_path / "w", print)
    assert staged.not_copied.startswith("the program cannot be copied")  # the directory does not exist
    folder = tmp_path / "work"
    folder.mkdir()
    staged = stage(options(programs, "./old -x", "./new-and-longer"), folder, print)
    first, copy, other = staged.commands
    assert staged.not_copied == ""
    assert first.argv == copy.argv == ("./old", "-x")
    assert other.argv == ("./new-and-longer",)
    assert Path(first.path).read_bytes() == Path(copy.path).read_bytes()
    assert os.stat(first.path).st_ino != os.stat(copy.path).st_ino
    assert Path(copy.path).is_relative_to(folder)
    assert staged.digests[0] == staged.digests[1]


def test_all_paths_have_the_same_length(programs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a-rather-long-name-for-a-folder"
    folder.mkdir()
    staged = stage(options(programs, "./old", "./new-and-longer", "true"), folder, print)
    assert len({len(os.fsencode(each.path)) for each in staged.commands}) == 1
    assert all(os.access(each.path, os.X_OK) for each in staged.commands)


def test_a_program_with_privileges_is_not_copied(programs: Path, tmp_path: Path) -> None:
    (programs / "old").chmod(0o4755)
    staged = stage(options(programs, "./old", "true"), tmp_path, print)
    assert staged.not_copied == "a copy would lose the privileges of the program"
    assert staged.commands[0].path == staged.commands[1].path


def test_a_shell_is_not_copied(tmp_path: Path) -> None:
    staged = stage(options(tmp_path, "true | cat", "true", shell=True), tmp_path, print)
    assert staged.not_copied == "it runs in a shell"
    assert staged.commands[1].argv == ("/bin/sh", "-c", "true | cat")


def test_a_missing_program_is_named_with_its_arm(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none: no such program; for shell built-ins"):
        stage(options(tmp_path, "none", "true"), tmp_path, print)
    named = AbOptions(arms=(Arm("fast", "./none"), Arm("b", "true")), folder=str(tmp_path))
    with pytest.raises(UsageError, match=r"^fast: \./none: no such program$"):
        stage(named, tmp_path, print)


def test_a_program_that_is_only_in_the_directory_of_the_arms_is_suggested_by_its_path(
    programs: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"^old: no such program in PATH; did you mean \./old\?$"):
        stage(options(programs, "old", "true"), tmp_path, print)


def test_the_path_variable_of_an_environment_file_is_searched(programs: Path, tmp_path: Path) -> None:
    arms = (Arm("a", "old", "", (("PATH", str(programs)),)), Arm("b", "true"))
    assert stage(AbOptions(arms=arms, folder="/"), tmp_path, print).commands[0].path.endswith("old")
