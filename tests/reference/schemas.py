"""docs/schemas/*.json: JSON Schemas of TOML files and of `--json`. `python -m tests.reference.schemas` writes them."""

from __future__ import annotations

import json
import re
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
from tests.reference.schema_tables import DEFINITIONS, Names, comments, record, recorded
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
    levels = re.findall(r"^#   (\w+) = .*? {2,}(.+)$", SCREEN, re.MULTILINE)
    texts = comments(SCREEN) | {("factor", "level", key): text for key, text in levels}
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
    on_nodes = of_fleet.schema(_rows("fleet.md", ("fleet",)), ("fleet",))
    named = {
        "study": ("A study of order dependence.", of_study.schema(comments(STUDY))),
        "screen": ("A screening experiment.", of_screen.schema(texts)),
        "gate": ("What `cbench gate` compares.", of_gate.schema(_rows("gate.md", ()))),
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


def _rows(page: str, path: Names) -> dict[Names, str]:
    """What the tables of a page say of keys."""
    rows = re.findall(r"^\| (`[^|]+`) \|(?:[^|]*\|)? ([^|]+) \|$", (CHECKOUT / "docs" / page).read_text(), re.MULTILINE)
    link = re.compile(r" \(\[.*?\]\(.*?\)\)|; \[.*?\]\(.*?\)")
    return {(*path, key): link.sub("", text) for keys, text in rows for key in re.findall(r"`(\w+)`", keys)}


def _profile() -> Schema:
    texts = comments(PROFILE.read_text())
    cpus = {key: TEXT | {"description": texts[("cpus", key)]} for key in ("isolated", "housekeeping")}
    cores = {"type": "integer", "minimum": 1, "description": texts[("cpus", "max_cores")]}
    lists = {"stop": LIST, "keep": LIST}
    properties = {
        "name": TEXT,
        "summary": TEXT,
        "cpus": table(cpus | {"max_cores": cores}, []),
        "knobs": table({each.name: _knob(each) for each in KNOBS}, []),
        "services": table(lists, []),
        "noise": table({key: {"type": ["string", "number"]} for key in budgets.KEYS}, []),
        "boot": table({"wanted": LIST}, []),
    }
    return table(properties, [])


def _knob(knob: Knob) -> Schema:
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
