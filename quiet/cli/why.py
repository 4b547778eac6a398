"""Run `quiet why`: print the report on stderr, write JSON if requested, and return the command's exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence

from quiet.console import check_savable, emit_json, save, say


def why(command: Sequence[str], profile: str, report: str | None, no_trace: bool, as_json: bool) -> int:
    """Run a command and report its interruptions. Returns the command's exit code."""
    from quiet.cli import json_output, text
    from quiet.host.identity import with_rights_of
    from quiet.noise import command_report
    from quiet.settings.profile import load
    from quiet.why.why import why as observe

    if report is not None:
        with_rights_of(None, lambda: check_savable(report, "--report"))
    done = observe(command, load(profile), not no_trace)
    if report is not None:
        content = json.dumps(json_output.to_object(done), indent=1) + "\n"
        with_rights_of(None, lambda: save(report, content, "--report"))
    if as_json:
        emit_json(json_output.to_object(done))
    elif report is None:
        for line in (command_report.summary(done), command_report.cpus(done)):
            text.note(line)
        for line in (*command_report.lines(done), *command_report.prediction(done)):
            say(line)
    return done.exit_code
