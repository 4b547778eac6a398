"""Start `cbench` or `python -m cbench`. Ctrl-C during imports ends the process by the signal, as in other programs."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """The entry point."""
    gc.disable()  # startup creates no garbage, and collecting takes a tenth of the time
    try:
        from cbench.cli import main as command
    except KeyboardInterrupt:
        sys.stderr.write("cbench: error: interrupted, nothing was kept\n")
        sys.exit(128 + signal.SIGINT)
    gc.enable()
    command()


if __name__ == "__main__":
    main()
