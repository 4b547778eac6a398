"""Provide the commands plan, apply, verify and restore as functions, and `quiet run` as the context manager `applied`.

`root` is "/", the directory of a recorded machine, or a Host (a Reader is enough to plan and verify). A profile is a
Profile, the name of a bundled profile, or a path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from quiet.cpulist import CpuSet
from quiet.errors import Incomplete, QuietError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.machine.affinity import join
from quiet.machine.cpu_selection import CpuPartition
from quiet.settings import journal, profile, use, verify
from quiet.settings.apply import Receipt, apply
from quiet.settings.plan import Plan
from quiet.settings.profile import Profile
from quiet.settings.restore import Outcome, restore

_PATIENCE_S = 60  # time to wait for another quiet process, in seconds


class AppliedHost(NamedTuple):
    """A host with a profile applied."""

    root: str
    cpus: CpuPartition
    receipt: Receipt

    @property
    def isolated(self) -> CpuSet:
        """The isolated CPUs."""
        return self.cpus.isolated

    def join(self, pid: int = 0) -> None:
        """Move a process (0: the caller) onto the isolated CPUs. Raises Refused if that is not possible."""
        join(self.isolated, pid)


def plan_profile(profile: Profile | str = "bench", *, cpus: str | None = None, root: Reader | str = "/") -> Plan:
    """Plan the changes of `quiet.apply`, and its skips with their reasons. Writes nothing; needs no root.

    `cpus`: the CPUs to isolate, by default the profile's. Raises UsageError for a wrong profile or CPU list, Refused if
    no CPU can be isolated or the journal is damaged.
    """
    return verify.plan_now(_reader(root), _loaded(profile), cpus)[0]


def apply_profile(
    profile: Profile | str = "bench", *, cpus: str | None = None, root: Host | str = "/", temporary: bool = False
) -> Receipt:
    """Apply a profile until `quiet.restore`. Idempotent.

    `cpus`: the CPUs to isolate, by default the profile's. `temporary`: the caller restores soon, so a `quiet run` that
    also uses the profile may restore in its place. Raises UsageError for a wrong profile or CPU list, Refused if
    another profile is applied or the process is not permitted to change the host, Incomplete if the apply stops
    halfway.
    """
    return apply(_host(root), _loaded(profile), cpus, temporary, _PATIENCE_S)


def verify_profile(profile: str | None = None, *, cpus: str | None = None, root: Reader | str = "/") -> Plan:
    """Plan the changes that would set a profile's values again (default: the applied profile, else "bench").

    A plan without changes means that all settings hold. Raises the same errors as `plan_profile`.
    """
    reader = _reader(root)
    return verify.plan_now(reader, verify.applied_profile(reader, profile), cpus)[0]


def restore_host(*, force: bool = False, keep: bool = False, root: Host | str = "/") -> Outcome:
    """Restore every setting to its value before apply.

    A value that another program changed after the apply stays unchanged and is reported as a conflict: `force` restores
    it too, `keep` accepts it. Raises Refused if the process is not permitted to change the host.
    """
    return restore(_host(root), force, keep, patience=_PATIENCE_S)


@contextlib.contextmanager
def applied(
    profile: Profile | str = "bench", *, cpus: str | None = None, root: Host | str = "/"
) -> Iterator[AppliedHost]:
    """Apply a profile inside the block and restore the host at its end.

    A profile that was applied before stays applied. Several processes may use the same profile: the last process
    restores. Raises Refused if the profile cannot be applied, Incomplete if a setting could not be restored and the
    block raised no error.
    """
    host = _host(root)
    with use.in_use(host) as users:
        ours = journal.load(host) is None
        try:
            receipt = use.apply_for_use(host, users, _loaded(profile), cpus)
            ours = True
            yield AppliedHost(host.root or "/", receipt.cpus, receipt)
        except BaseException as error:
            try:
                lines = _not_restored(use.end_use(host, users) if ours else None)
            except QuietError as another:
                lines = [str(another)]
            for line in lines:
                error.add_note(line)
            raise
        for line in _not_restored(use.end_use(host, users)):
            raise Incomplete(line)


def _not_restored(outcome: Outcome | None) -> list[str]:
    """A line for each setting that is left to restore."""
    left = outcome.left if outcome else ()
    return [f"not restored: {each.target}: {each.reason}; run `quiet restore`" for each in left]


def _loaded(given: Profile | str) -> Profile:
    return profile.load(given) if isinstance(given, str) else given


def _reader(root: Reader | str) -> Reader:
    return root if isinstance(root, Reader) else Reader(root)


def _host(root: Host | str) -> Host:
    return root if isinstance(root, Host) else Host(root)
