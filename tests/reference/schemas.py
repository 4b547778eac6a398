"""docs/schemas/*.json: JSON Schemas of TOML files and of `--json`. `python -m tests.reference.schemas` writes them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from cbench.ab.result import AbResult
from cbench.compare.result import CompareResult
from cbench.doctor.result import DoctorResult
from cbench.external.result import CommandsResult
from cbench.fleet import config as fleet
from cbench.fleet.state import FleetState
from cbench.gate import config as gate
from cbench.gate.result import GateResult
from cbench.jobs.table import Jobs
from cbench.measure.result import RunResult
from cbench.order.result import OrderResult
from cbench.screen.analysis.result import ScreenResult
from cbench.screen.config import file as screen
from cbench.screen.config.example import EXAMPLE as SCREEN
from cbench.study import config as study
from cbench.study.example import EXAMPLE as STUDY
from quiet.boot.status import BootStatus
from quiet.host.queue import Ticket
from quiet.kernel.check import KernelSummary
from quiet.knobs.knob import Knob
from quiet.knobs.registry import KNOBS
from quiet.machine.cpu_selection import CpuPartition
from quiet.noise import budgets
from quiet.noise.command_report import CommandReport
from quiet.noise.report import NoiseReport
from quiet.service.service import Installed
from quiet.settings.plan import Change, Skipped
from quiet.settings.status import HostStatus
from tests import CHECKOUT
from tests.reference import schema_examples as examples
from tests.reference.key_tables import KeyRow, Names, plain, rows
from tests.reference.schema_tables import DEFINITIONS, record, recorded
from tests.reference.schema_types import ResultSchemas, Schema, table

FOLDER = CHECKOUT / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
PROFILE = CHECKOUT / "quiet" / "profiles" / "bench.toml"
WIDTH = 120
TEXT: Schema = {"type": "string"}
LIST: Schema = {"type": "array", "items": TEXT}
OF_CBENCH: dict[str, tuple[type, ...]] = {
    "run": (RunResult, CommandsResult),
    "ab": (AbResult,),
    "compare": (CompareResult,),
    "doctor": (DoctorResult,),
    "gate": (GateResult,),
    "order analyze": (OrderResult,),
    "screen analyze": (ScreenResult,),
    "status": (Jobs,),
    "fleet status": (FleetState,),
}


def files() -> dict[str, Schema]:
    """The schemas of TOML files, by file name."""
    of_study = record(_unchecked(study.parse), [STUDY, examples.STUDY, examples.SUITE, examples.OTHER_SUITE])
    of_screen = record(_unchecked(screen.parse), [SCREEN, examples.SCREEN, examples.FRACTION])
    with tempfile.TemporaryDirectory() as folder, recorded() as of_gate:
        path = Path(folder, "gate.toml")
        path.write_text(examples.GATE)
        gate.load(path)
    with tempfile.TemporaryDirectory() as folder, recorded() as of_fleet:
        path = Path(folder, "fleet.toml")
        path.write_text('[fleet]\ncommand = "cbench run hash"\n')
        fleet.load(path)
    on_nodes = of_fleet.schema(_texts("fleet"), ("fleet",))
    named = {
        "study": ("A study of order dependence.", of_study.schema(_texts("study"))),
        "screen": ("A screening experiment.", of_screen.schema(_texts("screen"))),
        "gate": ("What `cbench gate` compares.", of_gate.schema(_texts("gate"))),
        "fleet": ("What `cbench fleet` measures on each node, without a study.", table({"fleet": on_nodes})),
        "profile": ("A profile of quiet.", _profile()),
    }
    for name in ("study", "screen"):
        named[name][1]["properties"]["fleet"] = on_nodes
    return {
        f"{name}.toml": {"description": text}
        | schema
        | ({"$defs": DEFINITIONS} if "#/$defs" in json.dumps(schema) else {})
        for name, (text, schema) in named.items()
    }


def _unchecked(parse: Callable[..., object]) -> Callable[[str, str, str], object]:
    return lambda text, file, folder: parse(text, file, folder, check=False)


def described(name: str) -> dict[Names, KeyRow]:
    """The descriptions of the keys of a kind of file in the pages."""
    if name == "screen":
        of_study = rows("study-file.md")
        return rows("screen-file.md") | {path: row for path, row in of_study.items() if path[0] == "reset"}
    return rows({"study": "study-file.md", "gate": "gate.md", "fleet": "fleet.md"}[name])


def _texts(name: str) -> dict[Names, str]:
    texts = {path: plain(row.meaning) for path, row in described(name).items()}
    return {("environment",): "environment variables for all commands"} | texts


def _profile() -> Schema:
    def text(meaning: str, schema: Schema = TEXT) -> Schema:
        return {"description": meaning} | schema

    limit = {"type": ["string", "number"]}
    properties = {
        "name": text("what messages call the profile; default: the file's name"),
        "summary": text("one line for `quiet profiles`"),
        "cpus": table(
            {
                "isolated": text('"auto", or a list such as "2-3,8"', TEXT | {"default": "auto"}),
                "housekeeping": text(
                    '"auto" for all others, or a list: where tasks and interrupts go that leave the isolated CPUs',
                    TEXT | {"default": "auto"},
                ),
                "max_cores": text(
                    'the most physical cores that "auto" isolates; it never isolates more than half',
                    {"type": "integer", "minimum": 1, "default": 4},
                ),
            },
            [],
        ),
        "knobs": table({each.name: of_knob(each) for each in KNOBS}, []),
        "services": table(
            {
                "stop": text("more units to stop with the knob `services`", LIST),
                "keep": text("units that the knob `services` leaves running", LIST),
            },
            [],
        ),
        "noise": table(
            {
                "max_lost": text('not quiet above this share of the time, such as "0.1%"', limit),
                "max_gap": text('not quiet with a longer gap, such as "200us"', limit),
                "max_interrupts": text("not quiet with more interrupts per second", limit),
            },
            [],
        ),
        "boot": table({"wanted": text("kernel parameters that `quiet boot apply` adds", LIST)}, []),
    }
    assert {*budgets.KEYS} == {*properties["noise"]["properties"]}
    return table(properties, [])


def of_knob(knob: Knob) -> Schema:
    """The values that a profile may give a knob."""
    ways: list[Schema] = [{"enum": list(knob.choices)}]
    if knob.numeric:
        ways.append({"type": "integer", "minimum": 1})
        if knob.units is not Knob._field_defaults["units"]:
            ways.append({"type": "string", "pattern": "^[0-9]"})
    if knob.lists:
        ways.append({"type": "string", "pattern": "^[0-9,-]+$"})
    return {"description": knob.title} | (ways[0] if len(ways) == 1 else {"anyOf": ways})


def outputs() -> dict[str, Schema]:
    """The schemas of `--json`, by command."""
    schemas = {f"quiet {command}": schema for command, schema in _of_quiet().items()}
    for command, kinds in OF_CBENCH.items():
        results = ResultSchemas(tuples=True)
        ways = [results.of(kind) for kind in kinds]
        schemas[f"cbench {command}"] = (ways[0] if len(ways) == 1 else {"anyOf": ways}) | {"$defs": results.definitions}
    return schemas


def _of_quiet() -> dict[str, Schema]:
    """As quiet/cli/json_output.py puts the results together."""
    made: dict[str, Schema] = {}
    for command, kind in {"noise": NoiseReport, "why": CommandReport}.items():
        results = ResultSchemas(tuples=False)
        made[command] = results.of(kind) | {"$defs": results.definitions}
    results = ResultSchemas(tuples=False)
    flag = {"type": "boolean"}
    planned = {"profile": TEXT, "cpus": results.of(CpuPartition)}
    labels = {"label": {"type": ["string", "null"]}}
    change = {key: each for key, each in results.properties(Change).items() if key != "kind"}
    changes = {"type": "array", "items": table(change | labels)}
    skips = {"type": "array", "items": table(results.properties(Skipped) | labels)}
    boot = table({"missing": LIST})
    made["plan"] = table({**planned, "changes": changes, "skips": skips, "boot": boot, "applied": flag}) | {
        "$defs": dict(results.definitions)
    }
    noise = results.of(NoiseReport | None)
    made["verify"] = table(
        {"quiet": flag, "applied": flag, **planned, "drift": changes, "skips": skips, "noise": noise}
    ) | {"$defs": results.definitions}
    results = ResultSchemas(tuples=False)
    queue = table(results.some(Ticket, "pid", "uid", "command", "share", "since", "running"))
    service = table(results.some(Installed, "unit", "profile", "cpus", "at_boot"))
    status = results.properties(HostStatus) | {
        "service": {"anyOf": [service, {"type": "null"}]},
        "boot": results.of(BootStatus | None),
        "kernel_options": results.of(KernelSummary),
        "queue": {"type": "array", "items": queue},
    }
    made["status"] = table(status) | {"$defs": results.definitions}
    return made


def written() -> dict[str, str]:
    """The files as the code has them now, by name."""
    schemas = {name.removesuffix(".toml"): (name, schema) for name, schema in files().items()}
    schemas |= {name.replace(" ", "-"): (f"{name} --json", schema) for name, schema in outputs().items()}
    return {
        f"{name}.json": _lines({"$schema": DIALECT, "title": title} | schema) + "\n"
        for name, (title, schema) in sorted(schemas.items())
    }


def _lines(value: object, indent: str = "", name: str = "") -> str:
    """JSON in which what fits into a line is on one. `name`: the key before it."""
    line = name + json.dumps(value)
    more = indent + " "
    if len(indent) + len(line) < WIDTH or not isinstance(value, dict | list):
        return indent + line
    if isinstance(value, list):
        rows, brackets = [_lines(each, more) for each in value], "[]"
    else:
        rows, brackets = [_lines(item, more, f"{json.dumps(key)}: ") for key, item in value.items()], "{}"
    return f"{indent}{name}{brackets[0]}\n" + ",\n".join(rows) + f"\n{indent}{brackets[1]}"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text)
