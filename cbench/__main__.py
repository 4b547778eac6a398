"""Start `cbench` or `python -m cbench`. Ctrl-C during imports ends the process with exit code 130, as in shells."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Import and run the command line."""
    gc.disable()  # startup creates no garbage, and collection would take a tenth of the startup time
    try:
        from cbench.cli import main as command
    except KeyboardInterrupt:
        sys.stderr.write("cbench: error: interrupted, nothing was kept\n")
        sys.exit(128 + signal.SIGINT)
    gc.enable()
    command()


if __name__ == "__main__":
    main()
