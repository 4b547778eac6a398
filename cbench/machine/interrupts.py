"""Names for the lines of /proc/interrupts; the counting is done in C (c/irq.c)."""

from __future__ import annotations

import re


def line_names(text: str) -> tuple[str, ...]:
    """One name for each line below the header: "LOC (Local timer interrupts)", "27 (virtio1-virtqueues)".

    What stands behind the counts is free text, split by runs of blanks; its last part is the device's name
    (numbered lines) or the description (lettered lines).
    """
    lines = text.splitlines()
    columns = len(lines[0].split()) if lines else 0
    return tuple(_name(line, columns) for line in lines[1:])


def _name(line: str, columns: int) -> str:
    label, _, rest = line.partition(":")
    words = rest.split(None, columns)
    last = re.split(r"\s{2,}", words[-1].strip())[-1] if len(words) > columns else ""
    return f"{label.strip()} ({last})" if last else label.strip()
