"""Signals that end the watching, as something that can be waited for together with the news."""

from __future__ import annotations

import os
import signal
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """`with Ending() as ending:`; `ending.signal` is the name of the signal that came, else ""."""

    def __init__(self) -> None:
        self.signal = ""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Ending:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        for number in _ENDING:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake)
        os.close(self._in)
        os.close(self._out)

    def fileno(self) -> int:
        return self._out

    def _take(self, number: int, _frame: object) -> None:
        self.signal = signal.Signals(number).name
