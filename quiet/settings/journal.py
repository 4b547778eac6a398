"""Read the journal: original and written values, which the writer records before it changes anything.

Write-ahead JSON lines in /run/quiet, each fsync'd, readable by every user. /run disappears at the reboot that also
resets the settings; for hosts where it persists, the journal contains the boot ID. Operations, in the order in which
they first appear:

    begin    format, boot_id, version, profile, source, cpus, time, passing (applied for one command)
    before   a target with its original value (None: absent), its knob, kind and identity
    intent   a value is about to be written
    done     the value was written, and this value was read back
    refused  the kernel rejected the value, with the reason
    settled  the values of all recorded targets after all writes
    stay     the settings that `quiet run` applied for its command stay applied
    restore  a restore has begun; these targets were changed by another program
    back     the restore has ended incompletely; these targets are restored

journal_lines.py computes the checksums, and journal_writer.py writes the lines. A damaged journal blocks every apply
while it exists. `restore` writes every original value that it can read, keeps the journal and a copy of it, and exits
with 4, until `restore --keep` accepts the current state of the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quiet.cpulist import CpuSet
from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.settings import journal_file
from quiet.settings.journal_file import FILE

if TYPE_CHECKING:
    from quiet.settings.applied_state import AppliedState

_READS = 3  # attempts to read a journal that seems damaged, because a process may be writing to it


class JournalDamaged(Refused):
    """The journal is damaged, so the applied settings are uncertain."""


def boot_id(reader: Reader) -> str:
    """The ID of this boot; "" if the kernel does not provide it."""
    return reader.text("/proc/sys/kernel/random/boot_id") or ""


def load(reader: Reader) -> AppliedState | None:
    """The state that is currently applied; None if nothing is applied, or if the host has rebooted since.

    Raises JournalDamaged, a subclass of Refused, if the state cannot be determined reliably.
    """
    state = read(reader)
    if state is not None and state.damage:
        raise JournalDamaged(
            f"{damaged(reader, state)}; run `quiet restore`, which restores everything that it still can"
        )
    return state


def damaged(reader: Reader, state: AppliedState) -> str:
    """Describe the damage of the journal in one line."""
    more = f" and {len(state.damage) - 1} more" if len(state.damage) > 1 else ""
    return f"the journal {reader.named(FILE)} is damaged: {state.damage[0]}{more}"


def read(reader: Reader) -> AppliedState | None:
    """Like `load`, but for a damaged journal return the readable part with the damage."""
    data = journal_file.content(reader)
    if data is None:
        return None
    from quiet.settings import applied_state  # slow to load, and not needed when nothing is applied

    for _ in range(_READS):
        state = applied_state.unknown(data) if isinstance(data, str) else applied_state.read(data)
        again = journal_file.content(reader) if state.damage else data
        if again is None:
            return None
        if again == data:
            break
        data = again
    return None if state.boot_id and state.boot_id != boot_id(reader) else state


def isolated_cpus(reader: Reader | None = None) -> CpuSet:
    """The isolated CPUs of the host: the applied profile's or, if no profile is applied, the CPUs isolated at boot.

    Raises Refused if the journal is damaged or cannot be read.
    """
    reader = reader or Reader()
    record = load(reader)
    return (record.cpus.isolated if record else frozenset()) or Facts(reader).boot_isolated
