"""Writing dirty pages back: when the flushers wake, and when a program that writes is made to wait.

Source: admin-guide/sysctl/vm.rst. dirty_ratio and dirty_bytes are one setting in two units: writing one makes the
other 0, and 0 bytes cannot be written. So the twin is journalled too, and comes back when it was the one in use.
"""

from __future__ import annotations

from quiet.knobs.knob import Knob, at_least, one_file

_VM = "/proc/sys/vm/"
_DOC = "admin-guide/sysctl/vm.rst"

KNOBS = (
    Knob(
        name="writeback.interval",
        title="hundredths of a second between the flushers' wake-ups",
        why="each wake-up looks through all dirty files and may start writing to the disk",
        doc=f"{_DOC} (dirty_writeback_centisecs)",
        **at_least(f"{_VM}dirty_writeback_centisecs", 1500, never=0),
        risk="what was written in the last seconds before a crash is lost, that many more of them",
    ),
    Knob(
        name="writeback.expire",
        title="hundredths of a second until a dirty page must be written",
        why="a file that is rewritten during the work is written to the disk that much less often",
        doc=f"{_DOC} (dirty_expire_centisecs)",
        **at_least(f"{_VM}dirty_expire_centisecs", 6000),
        risk="what was written in the last seconds before a crash is lost, that many more of them",
    ),
    Knob(
        name="writeback.background",
        title="per cent of memory that may be dirty before the flushers start",
        why="above it the flushers write while the measured work does",
        doc=f"{_DOC} (dirty_background_ratio)",
        **at_least(f"{_VM}dirty_background_ratio", 10),
        entangled=lambda scene: (f"file:{_VM}dirty_background_bytes",),
        moves="its twin, dirty_background_bytes",
    ),
    Knob(
        name="writeback.limit",
        title="per cent of memory that may be dirty before a writing program is stopped",
        why="above it the program that writes sleeps until the disk has caught up",
        doc=f"{_DOC} (dirty_ratio)",
        **at_least(f"{_VM}dirty_ratio", 40),
        entangled=lambda scene: (f"file:{_VM}dirty_bytes",),
        moves="its twin, dirty_bytes",
    ),
    Knob(
        name="writeback.laptop_mode",
        title="laptop mode",
        why="with it, each read from the disk starts a timer after which everything dirty is written",
        doc=f"{_DOC} (laptop_mode), admin-guide/laptops/laptop-mode.rst",
        **one_file(f"{_VM}laptop_mode", "0"),
    ),
)
