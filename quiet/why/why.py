"""Run and observe a command, and predict the interruptions that `quiet run` would prevent. Changes no setting."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Sequence

from quiet.errors import QuietError
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.noise import command_report
from quiet.noise.command_report import CommandReport, Remaining
from quiet.noise.command_tasks import CommandTasks
from quiet.noise.observe import TICK_S, Observer
from quiet.settings.profile import Profile
from quiet.settings.verify import plan_now
from quiet.why.prediction import Prediction
from quiet.why.run_command import Command


def why(command: Sequence[str], profile: Profile, trace: bool = True) -> CommandReport:
    """Run a command and report its interruptions.

    Raises UsageError if there is no such command, and NotExecutedError if the kernel does not execute it.
    """
    host = Host()
    with Command(command) as running:
        observer = Observer(host, Facts(host).online, CommandTasks(host, running.pid), trace=trace)
        try:
            observer.start()
            _stay_out_of_the_way()
            running.go()
            running.wait(TICK_S, observer.tick)
            observer.stop()
            usage = running.usage()
            limits: tuple[str, ...] = ()
            prediction: Prediction | None = None
            try:
                facts = Facts(host)  # read again, because CPUs may have been hotplugged
                plan, state = plan_now(host, profile, None, facts)
                prediction = Prediction(facts, profile, plan, state is not None)
                seen = observer.result(plan.cpus.isolated, prediction.absent, prediction.in_place)
            except QuietError as error:
                limits = (f"no prediction for `quiet run`: {error}",)
                seen = observer.result()
        finally:
            observer.close()
    remaining: Remaining | None = prediction.of(seen) if prediction else None
    return command_report.make(usage, seen, remaining, limits=limits)


def _stay_out_of_the_way() -> None:
    """Reduce the interruptions that this process causes.

    A SCHED_BATCH task does not preempt normal tasks when it wakes up, and after gc.freeze() the garbage collector skips
    the existing objects.
    """
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    gc.freeze()
