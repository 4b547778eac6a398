"""What is told of a kernel's options: as JSON shapes, and as lines to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quiet.kernel.check import ELSEWHERE, MISSING, THERE, UNKNOWN, OptionState
from quiet.kernel.config import Config

_FEW = 4


def shape(answers: Sequence[OptionState], config: Config, version: str | None) -> dict[str, object]:
    """`quiet kernel check --json`."""
    return {
        "kernel": version,
        "source": config.source or None,
        "complete": complete(answers),
        "missing": len(_of(answers, MISSING)),
        "unknown": len(_of(answers, UNKNOWN)),
        "options": [
            {
                "fragment": answer.option.fragment,
                "option": answer.option.name,
                "state": answer.state,
                "wanted": answer.option.wanted,
                "found": answer.found,
                "seen": answer.by or None,
                "why": answer.option.why,
                "cost": answer.option.cost,
            }
            for answer in answers
        ],
    }


def short(answers: Sequence[OptionState], config: Config) -> dict[str, object]:
    """The part of `quiet status --json`."""
    return {
        "source": config.source or None,
        "there": len(_of(answers, THERE)),
        "missing": [answer.option.name for answer in _of(answers, MISSING)],
        "unknown": [answer.option.name for answer in _of(answers, UNKNOWN)],
    }


def complete(answers: Sequence[OptionState]) -> bool:
    """Whether every option is there, and known to be."""
    return not (_of(answers, MISSING) or _of(answers, UNKNOWN))


def line(answers: Sequence[OptionState], config: Config) -> str:
    """The line of `quiet status`."""
    missing, unknown = _of(answers, MISSING), _of(answers, UNKNOWN)
    wanted = len(answers) - len(_of(answers, ELSEWHERE))
    parts = [f"{len(_of(answers, THERE))} of {wanted} there"]
    if missing:
        names = ", ".join(_plain(answer) for answer in missing[:_FEW])
        parts.append(f"missing {names}" + (f" and {len(missing) - _FEW} more" if len(missing) > _FEW else ""))
    if unknown:
        parts.append(f"{len(unknown)} not to be seen without its configuration")
    return "; ".join(parts) + (" (`quiet kernel check`)" if missing or unknown else "")


def lines(answers: Sequence[OptionState], config: Config, version: str | None) -> Iterator[str]:
    """`quiet kernel check`: what is there by fragment, then what is missing and what that costs."""
    seen = config.source or "no configuration found: told by what the options bring"
    yield f"kernel **{version}**, {seen}" if version else f"kernel of {seen}"
    fragments = dict.fromkeys(answer.option.fragment for answer in answers)
    for name in fragments:
        own = [answer for answer in answers if answer.option.fragment == name and answer.state != ELSEWHERE]
        if own:
            yield f"  {name:<{max(map(len, fragments))}}  {len(_of(own, THERE))} of {len(own)}"
    missing, unknown = _of(answers, MISSING), _of(answers, UNKNOWN)
    if missing:
        yield ""
        yield f"**missing** ({len(missing)}):"
        for answer in missing:
            yield from _cost(answer)
    if unknown:
        yield ""
        yield f"**not known** ({len(unknown)}): {', '.join(_plain(answer) for answer in unknown)}"
        yield "  only the kernel's configuration would tell; give it with --config FILE"
    if not (missing or unknown):
        yield "**all there**"


def _cost(answer: OptionState) -> Iterator[str]:
    option = answer.option
    on = option.wanted == "n"
    yield f"  **{_plain(answer)}** ({option.fragment}{', should be off' if on else ''}): {option.why}"
    yield f"      {'with' if on else 'without'} it: {option.cost}"


def _plain(answer: OptionState) -> str:
    return answer.option.name.removeprefix("CONFIG_")


def _of(answers: Sequence[OptionState], state: str) -> list[OptionState]:
    return [answer for answer in answers if answer.state == state]
