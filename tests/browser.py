"""Debian's Chromium without a window, by the DevTools protocol over a pair of pipes: no further library is needed.

https://chromedevtools.github.io/devtools-protocol/; messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)
PATIENCE_S = 300.0


def program() -> str | None:
    """The browser; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A browser with one page; a context manager. `events`: everything that it reported about the page."""

    def __init__(self, folder: Path) -> None:
        """`folder`: for its profile and its own messages."""
        path = program()
        assert path is not None
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._bytes = b""
        ours_out, theirs_in = _above(os.pipe())
        theirs_out, ours_in = _above(os.pipe())
        script = f'exec "$@" 3<&{theirs_out} 4>&{theirs_in}'
        command = ["bash", "-c", script, "bash", path, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        with (folder / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, pass_fds=(theirs_in, theirs_out), start_new_session=True
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = ours_in, ours_out
        self._session = ""
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer; AssertionError where the browser refuses it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._in, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda each: each.get("id") == self._number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def open(self, path: Path, width: int) -> None:
        """Show a file in a window of this width, as a phone does below 600 px, and wait until it is there."""
        self.events.clear()
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone)
        self.call("Page.navigate", url=path.absolute().as_uri())
        if not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self._until(lambda each: each.get("method") == "Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What an expression in JavaScript is in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as a PNG."""
        height = self.value("document.documentElement.scrollHeight")
        width = self.value("window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(made["data"])

    def printed(self) -> bytes:
        """The page as a PDF, as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def requested(self) -> list[str]:
        """The addresses that were requested since open()."""
        return [each["params"]["request"]["url"] for each in self._of("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """What the console would show."""
        kinds = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(each["params"]) for kind in kinds for each in self._of(kind)]

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each.get("method") == method]

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_S
        while True:
            while b"\0" in self._bytes:
                text, _, self._bytes = self._bytes.partition(b"\0")
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    return dict(message)
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self._out, 1 << 20) if ready else b""
            assert part, "the browser ended" if ready else f"the browser said nothing for {PATIENCE_S:g} s"
            self._bytes += part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)


def _above(pipe: tuple[int, int]) -> tuple[int, int]:
    """The same pipe with numbers that cannot be mistaken for 3 and 4."""
    made = []
    for end in pipe:
        made.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20))
        os.close(end)
    return made[0], made[1]
