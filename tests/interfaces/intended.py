"""The intended differences: commands whose interface changes on purpose, each with the reason."""

from __future__ import annotations

_STEP = "`cbench step` is gone: it reproduced one figure of the thesis, which `make thesis` draws"
_RULES = (
    "`--every-rule`, `--correction`, `--intervals`, `--ci-level`, `--case`, `--failures` and `--null` are gone: "
    "`--as-published` has the definitions of OrderSage's tool together, and no document needs them one by one"
)
_SAME = "an option is gone: another one does the same, or no document needs it (CHANGELOG.md names both)"
_SUITES = (
    "`cbench compare` has a line a test, JSON by test, and exit codes 1 (regression) and 2 (nothing can be judged); "
    "`--threshold` replaces `--margin`"
)

# The beginning of a label as `--list` prints it ("group: command line") and why that command may differ.
INTENDED: dict[str, str] = {
    "help: cbench --help": _STEP,
    "help: cbench step": _STEP,
    "usage: cbench step": _STEP,
    "step: ": _STEP,
    "help: cbench order analyze --help": _RULES,
    "help: cbench order report --help": _RULES,
    "usage: cbench order analyze stores/study.db --every-rule": _RULES,
    "usage: cbench order analyze stores/study.db --ci-level": _RULES,
    "help: cbench screen analyze --help": _SAME,
    "help: cbench screen report --help": _SAME,
    "help: cbench screen validate --help": _SAME,
    "help: cbench interfere --help": _SAME,
    "help: cbench sweep memory --help": _SAME,
    "help: cbench compare --help": _SUITES,
    "stores: cbench compare": _SUITES,
    "usage: cbench compare": _SUITES,
}
# As above, for the end of a label.
INTENDED_ENDS: dict[str, str] = {"--json --every-rule": _RULES, "usage: cbench": _STEP}


def reason(label: str) -> str | None:
    """Why a command may differ; None when it may not."""
    starts = (why for start, why in INTENDED.items() if label.startswith(start))
    ends = (why for end, why in INTENDED_ENDS.items() if label.endswith(end))
    return next(starts, None) or next(ends, None)
