"""Record the levels that commands set, in a file next to the store, before the commands run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from quiet import Refused


class PendingRestore(NamedTuple):
    """A level that is set, and the command that restores it ("" if it needs none)."""

    factor: str
    level: str
    restore: str

    @property
    def name(self) -> str:
        """The level as it appears in a treatment's name."""
        return f"{self.factor}={self.level}"


def place(data: Path) -> Path:
    """The file with a store's pending restores."""
    return data.with_name(f"{data.name}.set")


def read(file: Path) -> list[PendingRestore]:
    """Read the pending restores, in the order in which levels were set; empty if the file does not exist. Raises
    Refused if the file is damaged or cannot be read.
    """
    try:
        said = json.loads(file.read_text())
        return [PendingRestore(str(each["factor"]), str(each["level"]), str(each["restore"])) for each in said]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        why = f"damaged ({error}): restore the settings of its levels by hand, and remove the file"
        raise Refused(f"{file}: {why}") from None


def write(file: Path, every: Sequence[PendingRestore]) -> None:
    """Replace the file by one with these pending restores, whose content is on disk before it replaces the old one.
    Without pending restores, the file is removed.
    """
    if not every:
        file.unlink(missing_ok=True)
        return
    beside = file.with_name(f"{file.name}.new")
    with open(beside, "w") as target:
        target.write(json.dumps([each._asdict() for each in every]))
        target.flush()
        os.fsync(target.fileno())
    os.replace(beside, file)


def way_out(file: Path) -> str:
    """Advice if a level cannot be restored."""
    return (
        f"{file} lists the remaining settings: restore them by hand and remove the file, or fix the cause; then resume"
    )
