"""Run the root helper of `quiet run`: wait for the turn, apply, move the command, and restore at the end.

If the front dies for any reason, its end of the socket closes; if the helper dies, a guard takes over.
"""

from __future__ import annotations

import os
import select

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import Incomplete, QuietError, Refused
from quiet.host import queue
from quiet.host.host import Host
from quiet.host.queue import Turn
from quiet.machine.affinity import forgo_huge_pages
from quiet.noise.observe import TICK_S
from quiet.run import linger, process, threads
from quiet.run.group import RunGroup
from quiet.run.guard import Guard
from quiet.run.linger import Lingering
from quiet.run.observation import RunObserver
from quiet.run.options import RunRequest
from quiet.run.profiles import permitted
from quiet.run.protocol import CommandDone, HelperChannel, Moved, Peer, RunEnded, RunFailure, RunReady, Start, Waiting
from quiet.settings import journal, use
from quiet.settings.apply import Receipt
from quiet.settings.profile import Profile
from quiet.settings.restore import Outcome

_REQUEST_S = 30  # time limit for a front to send its request
_APPLIED, _MOVED, _DONE, _LINGERS = b"a", b"m", b"d", b"l"  # the letters for the guard


class RunSession:
    """One run.

    `lingering`: the profile that another helper keeps applied; then this process is a fork of that helper.
    """

    def __init__(self, host: Host, channel: HelperChannel, caller: Peer, lingering: Lingering | None = None) -> None:
        self._host, self._channel, self._caller, self._lingering = host, channel, caller, lingering
        self._options = RunRequest()
        self._group = RunGroup(host, f"run-{os.getpid()}")
        self._turn: Turn | None = None
        self._guard: Guard | None = None
        self._ready: RunReady | None = None
        self._observer: RunObserver | None = None
        self._done: CommandDone | None = None
        self._users, self._ours = -1, False
        self._asked: Profile | None = None  # the requested profile, if the run uses a modified one
        self._profile: Profile | None = None  # the profile in the front's request

    def run(self) -> None:
        """Perform the whole run; report failures to the front."""
        try:
            options = self._channel.receive(RunRequest, within_s=_REQUEST_S)
            if not isinstance(options, RunRequest):
                return
            self._options = options
            profile = self._lingering.profile(options.profile) if self._lingering else None
            profile = self._profile = profile or permitted(self._host, options.profile, self._caller.uid)
            forgo_huge_pages()  # the command is not a child of this process, so it keeps huge pages
            self._group.remember(self._caller.pid)
            if self._wait():
                self._take_turn(profile)
        except QuietError as error:
            self._channel.send(RunFailure(str(error), error.exit_code))
        except OSError as error:
            self._channel.send(RunFailure(f"{error.filename or 'the helper'}: {error.strerror or error}", 3))
        finally:
            self._leave()

    def _leave(self, message: RunEnded | RunFailure | None = None) -> None:
        """Leave the queue, then send the result of the run."""
        if self._turn:
            self._turn.close()
            self._turn = None
        if message:
            self._channel.send(message)
        self._channel.close()

    def _wait(self) -> bool:
        """Wait for the turn. Returns False if the front disconnects. Raises Refused after the time limit."""
        queue.make_queue(self._host)
        if queue.holder_above(self._host, self._caller.pid):
            return True  # a run that has the CPUs has started this run
        options = self._options
        self._turn = Turn(self._host, self._caller.pid, options.command, options.share, self._caller.uid)

        def wait(line: str, seconds: float) -> bool:
            if line:
                self._channel.send(Waiting(line))
            return not _hung_up(self._channel, seconds)

        if self._turn.wait(wait, options.wait_s):
            return True
        if _hung_up(self._channel, 0):
            return False
        raise Refused(f"{queue.refusal(self._host)}; nothing was changed")

    def _take_turn(self, profile: Profile) -> None:
        """Apply, let the command run, restore, and report."""
        if not self._lingering:  # otherwise the lingering helper has already left its cgroups
            process.leave_cgroups(self._host)  # only now, because waiting helpers count toward their user's limits
        if self._lingering and not self._lingering.fits(self._host, self._options, profile):
            self._lingering = None  # then this run applies and restores by itself
        kept = self._lingering is not None
        if not kept:
            linger.end_others(self._host, profile, self._options.cpus)
        with use.in_use(self._host) as self._users:
            self._ours = not kept and journal.load(self._host) is None
            self._guard = Guard(self._take_over)
            failure: RunFailure | None = None
            try:
                self._command(self._apply(profile, kept))
            except QuietError as error:
                failure = RunFailure(str(error), error.exit_code)
            ended = self._finish()
            failure = failure and _with_restore(failure, ended)
            if ended.stays and not failure and not self._lingering and self._options.linger_s > 0:
                self._linger(ended)
                return
            self._guard.dismiss()
            if kept:  # the lingering helper waits for this process, and so for the guard
                use.leave(self._users)  # before the next run, which may make that helper restore, gets its turn
                self._leave(failure or ended)
            self._guard.wait()
        if not kept:
            self._leave(failure or ended)

    def _apply(self, profile: Profile, kept: bool) -> CpuSet:
        if kept and self._lingering:
            self._ready = self._lingering.ready
        else:
            chosen = threads.for_request(self._host, profile, self._options)
            receipt = use.apply_for_use(self._host, self._users, chosen.profile, self._options.cpus)
            self._ours, self._asked = True, profile if chosen.profile != profile else None
            self._ready = _ready(receipt, profile.knobs.get("aslr") == "command", chosen.note)
        self._note(_APPLIED)
        self._channel.send(self._ready)
        return cpulist.parse(self._ready.cpus)

    def _command(self, cpus: CpuSet) -> None:
        """Move the command, and wait until it has ended or the front has disconnected."""
        begin = self._channel.receive(Start, CommandDone)
        if not isinstance(begin, Start):
            self._done = begin if isinstance(begin, CommandDone) else None
            return
        self._group.add(begin.pid, self._caller.pid, self._caller.uid, cpus)
        if self._options.observe:
            assert self._profile
            applied = frozenset(name for name, choice in self._profile.knobs.items() if choice != "leave")
            self._observer = RunObserver(self._host, cpus, begin.pid, self._group.path, applied, self._options.trace)
        self._channel.send(Moved())  # send this first: the guard does not send it again
        self._note(_MOVED)
        self._until_done()
        self._note(_DONE)

    def _until_done(self) -> None:
        while not self._channel.closed and self._done is None:
            message = self._channel.receive(CommandDone, within_s=TICK_S if self._observer else None)
            self._done = message if isinstance(message, CommandDone) else None
            if self._observer and self._done is None:
                self._observer.tick()

    def _finish(self) -> RunEnded:
        """End the remaining processes if the front has disconnected, and restore unless the profile stays applied."""
        if self._observer and self._done:
            self._observer.stop(self._done)
        if self._done is None:
            self._group.kill()
            self._group.remove()
        else:
            self._group.release()
        ended = self._restore()
        return self._observer.report(ended, self._done) if self._observer and self._done else ended

    def _restore(self) -> RunEnded:
        if self._lingering:
            return RunEnded(True, True, 0, (), lingers_s=self._lingering.seconds)
        if self._options.linger_s > 0 and self._done and self._ready:
            return RunEnded(True, True, 0, (), lingers_s=linger.limited(self._options.linger_s))
        if not self._ours or journal.read(self._host) is None:
            return RunEnded(True, False, 0, ())
        try:
            outcome = use.end_use(self._host, self._users)
            record = journal.read(self._host) if outcome is None and self._asked else None
            if record is not None and self._asked and not record.passing:  # applied before this run
                use.apply_for_use(self._host, self._users, self._asked, None)
            return _ended(outcome)
        except QuietError as error:
            return RunEnded(False, False, 0, (str(error),))

    def _linger(self, ended: RunEnded) -> None:
        """Keep the profile applied for the next runs of this user, then restore."""
        assert self._ready
        assert self._guard
        assert self._profile
        lingering = Lingering(self._host, self._options, self._profile, self._ready, self._caller.uid)
        self._note(_LINGERS)
        listening = lingering.listen(self._host)
        if not listening:  # another helper of this user already listens
            ended = _ended(use.end_use(self._host, self._users))
        self._leave(ended)

        def session(channel: HelperChannel, peer: Peer) -> None:
            self._drop()
            RunSession(self._host, channel, peer, lingering).run()

        if listening:
            lingering.serve(self._host, session)
            use.end_use(self._host, self._users)
        self._guard.dismiss()
        self._guard.wait()

    def _drop(self) -> None:
        """In a fork: close everything by which other processes detect the end of this helper."""
        assert self._guard
        os.close(self._users)
        self._guard.drop()

    def _note(self, letter: bytes) -> None:
        assert self._guard
        self._guard.note(letter)

    def _take_over(self, letters: bytes) -> None:
        """In the guard, after the helper was killed: end the run in place of the helper."""
        self._ours = self._ours or _APPLIED in letters
        if _LINGERS in letters:
            linger.remove(self._host, self._caller.uid)
            self._options = self._options._replace(linger_s=0)
        elif _DONE in letters:
            self._done = CommandDone()
        elif _MOVED in letters:
            self._guard = Guard(self._take_over)
            self._note(letters)
            self._until_done()
            self._note(_DONE)
        ended = self._finish()
        if _MOVED not in letters:
            killed = RunFailure("the helper was killed before the command was started", Refused.exit_code)
            self._channel.send(_with_restore(killed, ended))
        else:
            if self._guard and _DONE not in letters and _LINGERS not in letters:
                self._guard.dismiss()
                self._guard.wait()
            self._channel.send(ended)
        self._leave()


def _ready(receipt: Receipt, fixed: bool, note: str) -> RunReady:
    notes = tuple(f"could not be applied: {each.target}: {each.reason}" for each in receipt.failures)
    notes = (note, *notes) if note else notes
    cpus = cpulist.format(receipt.cpus.isolated)
    return RunReady(receipt.profile, cpus, fixed, len(receipt.changes), len(receipt.skips), notes)


def _with_restore(failure: RunFailure, ended: RunEnded) -> RunFailure:
    """The failure, with the notes about an incomplete restore added."""
    if ended.complete:
        return failure
    return RunFailure("; ".join((failure.text, *ended.notes)), Incomplete.exit_code)


def _ended(outcome: Outcome | None) -> RunEnded:
    """The message for the front about a restore; `outcome` is None if nothing was restored (use.end_use)."""
    if outcome is None:
        return RunEnded(True, True, 0, ())
    notes = [f"the restore could not be logged: {outcome.log_error}"] if outcome.log_error else []
    notes += [f"not restored: {each.target}: {each.reason}" for each in outcome.conflicts + outcome.failures]
    notes += [f"the journal is damaged: {each.target}: {each.reason}" for each in outcome.damage]
    if not outcome.complete:
        notes.append("run `quiet restore`, which restores all readable values")
    return RunEnded(outcome.complete, False, outcome.restored, tuple(notes))


def _hung_up(channel: HelperChannel, seconds: float) -> bool:
    """Whether the front has disconnected, or disconnects within `seconds`."""
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP)
    return bool(poll.poll(seconds * 1000))
