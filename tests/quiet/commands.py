"""Run the command `quiet` inside the tests: its exit code and its output."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from quiet.cli import start


class Done(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout; fails when there is anything else."""
        return json.loads(self.out)


class Quiet:
    """Calls of `quiet` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *args: object) -> Done:
        self.capsys.readouterr()
        self.monkeypatch.setattr("sys.argv", ["quiet", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            start.main()
        out, err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in err
        return Done(ended.value.code, out, err)
