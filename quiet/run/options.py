"""The options of `quiet run`: those that the helper gets, and those of the front alone."""

from __future__ import annotations

from typing import NamedTuple


class RunRequest(NamedTuple):
    """The request of a front to the helper. A new option is a field here; the protocol checks its type."""

    profile: str = "bench"
    cpus: str | None = None
    share: bool = False
    wait_s: float | None = None  # how long to queue; None: for ever
    linger_s: float = 0.0
    observe: bool = True
    trace: bool = False  # observe by kernel tracing; else by counts, which costs less
    threads: bool | None = None  # spread over the CPUs; None: where nothing pins the command
    pinned: str = ""  # the word of the command that pins what it starts
    mems: str | None = None  # "auto", "leave" or NUMA nodes; None: as the profile says
    command: str = ""  # to be shown to others, never executed


class FrontOptions(NamedTuple):
    """The front's own options. A limit of None: any number."""

    as_user: str | None = None
    report: str | None = None
    quiet_report: bool = False
    max_lost: str | None = None
    max_interrupts: str | None = None
    container: bool = False  # add the option that brings a container to the isolated CPUs
