"""Run `quiet plan`, `apply`, `restore`, `profiles` and `explain`: print results to stdout and return the exit code."""

from __future__ import annotations

import sys

from quiet.console import emit_json, one_line
from quiet.errors import UsageError, did_you_mean


def plan(
    profile: str = "bench", cpus: str | None = None, root: str = "/", as_json: bool = False, every: bool = False
) -> int:
    """Show the changes that apply would make; `every`: list all changes and skips. Writes nothing; needs no root."""
    from quiet import cpulist
    from quiet.host.reader import Reader
    from quiet.settings import journal
    from quiet.settings.profile import load
    from quiet.settings.verify import plan_now

    reader = Reader(root)
    chosen = load(profile)
    planned, state = plan_now(reader, chosen, cpus)
    if state is None and (other := journal.load(reader)):
        applied = f"{other.profile} on CPUs {cpulist.format(other.cpus.isolated)}"
        sys.stderr.write(
            one_line(f"quiet: note: {applied} is applied now; restore it before you apply this plan") + "\n"
        )
    if as_json:
        from quiet.cli import json_output

        emit_json(json_output.plan(planned, state is not None))
    elif every:
        from quiet.cli import text

        text.plan(planned, state is not None)
    else:
        from quiet.cli import text, text_summary

        text_summary.plan(planned, state is not None, text.apply_command(chosen.source, cpus))
    return 0


def apply(profile: str, cpus: str | None, root: str, as_json: bool, every: bool) -> int:
    """Apply a profile. Idempotent. Returns 1 if a setting could not be applied."""
    from quiet.cli import json_output, text, text_summary
    from quiet.host.host import Host
    from quiet.settings import apply as applying
    from quiet.settings.profile import load

    receipt = applying.apply(Host(root), load(profile), cpus)
    text.show(receipt, as_json, json_output.receipt, text.receipt if every else text_summary.receipt)
    return 1 if receipt.failures else 0


def restore(force: bool, keep: bool, root: str, as_json: bool) -> int:
    """Restore every setting to its original value. Returns 4 if a setting could not be restored."""
    from quiet.cli import json_output, text
    from quiet.host.host import Host
    from quiet.noise import prove
    from quiet.settings import restore as restoring

    if force and keep:
        raise UsageError("--force and --keep contradict each other; give one of them")
    host = Host(root)
    outcome = restoring.restore(host, force, keep)
    text.show(outcome, as_json, json_output.restore, text.restored)
    if left := prove.recover(host):
        text.note(left)
    return 4 if left or not outcome.complete else 0


def profiles(as_json: bool) -> int:
    """List the bundled profiles."""
    from quiet.cli import json_output, text
    from quiet.settings.profile import bundled, load

    loaded = [load(name) for name in bundled()]
    if as_json:
        emit_json({"profiles": [json_output.profile(item) for item in loaded]})
    else:
        text.columns([(item.name, item.summary) for item in loaded], "")
    return 0


def explain(name: str | None, as_json: bool) -> int:
    """Explain a knob or kernel parameter, with its reason and document; without a name, list the knobs."""
    from quiet.boot.parameters.registry import known
    from quiet.cli import json_output, text, text_boot
    from quiet.knobs.registry import BY_NAME, KNOBS
    from quiet.noise.remedies.table import stopped_by

    if name is None:
        if as_json:
            emit_json({"knobs": [json_output.knob(item) for item in KNOBS]})
        else:
            text.columns([(item.name, item.title) for item in KNOBS], "")
        return 0
    stops = list(dict.fromkeys(item.text for item in stopped_by(name)))
    knob, parameter = BY_NAME.get(name), known(name)
    if knob is None:
        stops = stops or [item.text for item in stopped_by(name.replace("-", "_"))]
        if parameter is None and not stops:
            close = did_you_mean(name, BY_NAME)
            raise UsageError(f"unknown knob '{name}'; `quiet explain` lists the knobs{close}")
        if as_json:
            emit_json(json_output.explained_parameter(name, stops, parameter))
        else:
            text_boot.explain(name, stops, parameter)
    elif as_json:
        emit_json(json_output.explained_knob(knob, stops, parameter))
    else:
        text.explain(knob, stops)
        if parameter:
            text_boot.explain(name, (), parameter)
    return 0
