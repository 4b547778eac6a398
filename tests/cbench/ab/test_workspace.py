"""Directories for copies and builds: removed at the end, kept for what can be resumed, and cleaned up after a kill."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cbench.ab import workspace as _workspace
from cbench.ab.workspace import workspace
from quiet import QuietError, Refused


def folders(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.is_dir()]


@pytest.mark.parametrize("stored", [False, True])
def test_nothing_is_left_after_the_end(cache: Path, tmp_path: Path, stored: bool) -> None:
    with workspace(tmp_path / "s.db" if stored else None, resumed=False) as folder:
        (folder / "copy").mkdir()
        (folder / "copy" / "a").touch()
        assert folders(cache) == [folder]
    assert folders(cache) == []


def end_early(store: Path | None) -> None:
    with workspace(store, resumed=False) as folder:
        (folder / "build").touch()
        raise KeyboardInterrupt


def test_a_stored_measurement_finds_its_files_again_when_it_is_resumed(cache: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    store.touch()
    with pytest.raises(KeyboardInterrupt):
        end_early(store)
    with workspace(None, resumed=False):
        pass
    with workspace(store, resumed=True) as folder:
        assert (folder / "build").exists()
    with pytest.raises(KeyboardInterrupt):
        end_early(store)
    with workspace(store, resumed=False) as folder:
        assert not (folder / "build").exists()


def test_leftovers_of_an_interrupted_measurement_without_a_store_are_removed(cache: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        end_early(None)
    assert folders(cache) == []


def test_leftovers_of_a_kill_are_removed_by_the_next_measurement(cache: Path, tmp_path: Path) -> None:
    for name, owner in (("killed", ""), ("gone", str(tmp_path / "gone.db")), ("kept", str(tmp_path / "kept.db"))):
        (cache / name).mkdir(parents=True)
        (cache / name / "owner").write_text(owner)
    (tmp_path / "kept.db").touch()
    with workspace(None, resumed=False) as folder:
        assert set(folders(cache)) == {folder, cache / "kept"}


def test_the_folder_of_a_running_measurement_stays(cache: Path) -> None:
    with workspace(None, resumed=False) as first:
        with workspace(None, resumed=False) as second:
            assert set(folders(cache)) == {first, second}
        assert folders(cache) == [first]


def test_a_folder_that_its_measurement_is_just_removing_is_passed_over(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "ends").mkdir(parents=True)
    hold = _workspace._hold

    def ending(folder: Path) -> int | None:
        shutil.rmtree(cache / "ends", ignore_errors=True)
        return hold(folder)

    monkeypatch.setattr(_workspace, "_hold", ending)
    with workspace(None, resumed=False) as folder:
        assert folders(cache) == [folder]


def test_one_store_has_one_measurement_at_a_time(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    refused = pytest.raises(Refused, match="another process is measuring")
    with workspace(store, resumed=False), refused, workspace(store, resumed=False):
        pass


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(QuietError, match="set XDG_CACHE_HOME to another directory"), workspace(None, resumed=False):
        pass


def test_a_relative_cache_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert _workspace.root() == tmp_path / ".cache/cbench/ab"
