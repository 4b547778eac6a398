"""The kernel's trace pages as they come from trace_pipe_raw.

Source: include/linux/ring_buffer.h (enum ring_buffer_type), kernel/trace/ring_buffer.c (rb_event_length,
RB_MISSED_EVENTS), and events/header_page, which every kernel shows. Raw pages and not the text of `trace`, because
that gives microseconds for every clock but the time stamp counter, and takes the kernel long to write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from struct import Struct

_HEADER = Struct("=QQ")  # time stamp, commit; 64-bit kernels
_WORD = Struct("=I")
_MISSED = 1 << 31
_FLAGS = 3 << 30
_LITTLE = sys.byteorder == "little"
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_TOP_BITS = 0xF8 << 56


def used(page: bytes) -> int:
    """How many bytes of a page hold anything."""
    return _HEADER.size + int(_HEADER.unpack_from(page)[1] & ~_FLAGS & 0xFFFFFFFF)


def missed(page: bytes) -> bool:
    """Whether the kernel says that events before this page were lost."""
    return bool(_HEADER.unpack_from(page)[1] & _MISSED)


def records(page: bytes) -> Iterator[tuple[int, int, int]]:
    """(time stamp, offset, length) of each event's data in a page."""
    stamp, commit = _HEADER.unpack_from(page)
    base, at = stamp & _TOP_BITS, _HEADER.size
    end = at + (commit & ~_FLAGS & 0xFFFFFFFF)
    while at + 4 <= end:
        (word,) = _WORD.unpack_from(page, at)
        kind, delta = (word & 31, word >> 5) if _LITTLE else (word >> 27, word & 0x7FFFFFF)
        if kind < _PADDING:
            if kind:
                start, length = at + 4, kind * 4
            else:
                start, length = at + 8, _WORD.unpack_from(page, at + 4)[0] - 4
            stamp += delta
            yield stamp, start, length
            at = start + length
        elif kind == _PADDING:
            if not delta:
                return  # the rest of the page is empty
            at += 4 + _WORD.unpack_from(page, at + 4)[0]
        else:
            (high,) = _WORD.unpack_from(page, at + 4)
            delta += high << 27
            stamp = base | delta if kind == _TIME_STAMP else stamp + delta
            at += 8
