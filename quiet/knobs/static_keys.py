"""Switches in the kernel's own code: flipping one rewrites instructions, which interrupts every CPU.

Source: staging/static-keys.rst; net/core/dev.c (netstamp_needed_key), x86 text_poke_bp.
"""

from __future__ import annotations

from quiet.host.hold import TIMESTAMPS
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip


def _timestamps(scene: RuleContext) -> RuleResult:
    if scene.text("/proc/sys/net/core/somaxconn") is None:
        yield Skip(f"held:{TIMESTAMPS}", "this kernel has no network")
    else:
        yield DesiredValue(f"held:{TIMESTAMPS}", "1", creates=True)


KNOBS = (
    Knob(
        name="static_keys.timestamps",
        title="time stamps of packets stay switched on",
        why="each time the first socket asks for time stamps, as NTP clients do, code is rewritten and every CPU stops",
        doc="staging/static-keys.rst, networking/timestamping.rst",
        rule=_timestamps,
        refusals={95: "a recorded tree has no sockets"},
        targets=f"held:{TIMESTAMPS}, a socket of a small process that lives as long as the profile",
        risk="every packet that arrives gets a time stamp, also where nobody asked",
    ),
)
