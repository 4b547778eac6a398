"""An experiment as the study that runs it: the same runner, store, reset and `quiet run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cbench.screen.config import treatments
from cbench.screen.config.model import BUILT, Screen, Treatment
from cbench.screen.execute.builds import Builds
from cbench.study.model import Study
from cbench.study.orders import ALL_RANDOM


def study_of(screen: Screen, found: tuple[Treatment, ...], builds: Builds | None = None) -> Study:
    """`builds`: whose folders the workloads that are built are in, once they are made."""
    tests = treatments.study_tests(screen, found)
    if builds is not None:
        owners = [found[each.treatment] for each in treatments.tests(screen, found)]
        tests = tuple(
            replace(test, workload=test.workload.replace(BUILT, str(made.folder)))
            if (made := builds.of(owner)) is not None
            else test
            for test, owner in zip(tests, owners, strict=True)
        )
    return Study(
        name=screen.name,
        tests=tests,
        repetitions=screen.iterations,
        design=ALL_RANDOM,
        seed=screen.seed,
        alpha=screen.alpha,
        reset=screen.reset,
        failures="trial",
        counter=screen.counter,
        profile=screen.profile,
        cpus=screen.cpus if screen.profile else "",
        setup=screen.setup,
        teardown=screen.teardown,
        environment=screen.environment,
        folder=screen.folder,
    )


def file_of(data: Path) -> str:
    """How a stored experiment's file is called in messages."""
    return f"{data} (its experiment)"
