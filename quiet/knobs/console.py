"""The console: messages that are printed while everything waits, and a cursor that blinks.

Sources: admin-guide/sysctl/kernel.rst (printk), fb/fbcon.rst.
"""

from __future__ import annotations

from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, Skip
from quiet.targets import value_types

_PRINTK = "/proc/sys/kernel/printk"
_BLINK = "/sys/class/graphics/fbcon/cursor_blink"
_LEVEL = 1  # only KERN_EMERG is more severe


def _loglevel(scene: RuleContext) -> RuleResult:
    current = scene.text(_PRINTK)
    # four numbers in one file, of which only the first is ours: a write sets all four
    levels = (current or "").split()
    if current is None or len(levels) != 4 or not levels[0].isdecimal():
        yield Skip(f"file:{_PRINTK}", NOT_HERE)
        return
    level = str(_LEVEL) if scene.choice == "quiet" else scene.choice
    if scene.choice != "quiet" or int(levels[0]) > _LEVEL:
        yield DesiredValue(f"file:{_PRINTK}", "\t".join([level, *levels[1:]]), current=current)


def _blink(scene: RuleContext) -> RuleResult:
    if scene.text(_BLINK) in (None, "-1"):  # -1: the driver is there, but no screen uses it
        yield Skip(f"file:{_BLINK}", "no console on a framebuffer")
    else:
        yield DesiredValue(f"file:{_BLINK}", "0")


KNOBS = (
    Knob(
        name="console.loglevel",
        title="kernel messages on the console",
        why="a message to a serial console is sent character by character, for milliseconds, by whichever CPU has it",
        doc="admin-guide/sysctl/kernel.rst (printk), core-api/printk-basics.rst",
        rule=_loglevel,
        kind=value_types.NUMBERS,
        numeric=True,
        targets=f"file:{_PRINTK}, its first number",
        risk="only emergencies are on the console meanwhile; dmesg and the journal have all messages as ever",
    ),
    Knob(
        name="console.blink",
        title="the blinking cursor of a framebuffer console",
        why="five times a second a work item draws it, on a workqueue that no mask moves",
        doc="fb/fbcon.rst; drivers/video/fbdev/core/fbcon.c (cursor_blink)",
        rule=_blink,
        kind=value_types.NUMBER,
        targets=f"file:{_BLINK}",
        drifts=True,  # shows whether the next blink is due, which the console changes when it is switched
    ),
)
