"""Read and check an experiment's file, screen.toml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cbench.screen.config.checks import check_screen
from cbench.screen.config.factors import factors_of, word
from cbench.screen.config.model import (
    CONSTRAINTS,
    DESIGNS,
    FULL,
    UNOBTAINABLE,
    Abridgment,
    Constraint,
    Controlled,
    Response,
    Screen,
    ScreenFactor,
    ScreenWorkload,
    Where,
)
from cbench.study import config, model
from cbench.study.config import DAY_S, OURS
from cbench.study.resets import registry as resets
from cbench.study.toml_table import TomlTable

TABLES = ("screen", "factor", "workload", "response", "constraint", "abridgment", "controlled", "reset", "environment")
MOST_ITERATIONS, MOST_BATCHES = 1_000_000, 10_000


def load(path: Path) -> Screen:
    """The experiment that a file describes. Raises UsageError, with file, line and key, if the file is invalid."""
    return parse(config.text_of(path, "screen", "screen"), str(path), str(path.absolute().parent))


def parse(text: str, file: str, folder: str, check: bool = True) -> Screen:
    """Parse an experiment from the text of its file. `check`: require that the named workloads, directories, counters,
    knobs and profiles exist. Raises UsageError as load() does.
    """
    whole = config.whole_of(text, file)
    table = whole.table("screen")
    whole.only_tables(*TABLES)
    factors = factors_of(whole, check)
    workloads = _workloads(whole, table.number("timeout", 600.0, 0.1, 7 * DAY_S), folder if check else None)
    responses = _responses(whole, workloads, config.read_of(table))
    screen = Screen(
        name=table.label("name", Path(file).stem),
        seed=table.whole("seed", 1, -(2**63), 2**63 - 1),
        iterations=table.whole("iterations", None, 1, MOST_ITERATIONS),
        batches=table.whole("batches", 1, 1, MOST_BATCHES),
        sequence=table.texts("sequence"),
        alpha=table.number("alpha", 0.05, 1e-9, 0.5),
        confidence=table.number("confidence", 0.95, 0.5, 1 - 1e-9),
        design=table.text("design", FULL, DESIGNS),
        runs=table.whole("runs", None, 2, 10_000) if table.has("runs") else None,
        generators=table.texts("generators"),
        factors=factors,
        workloads=workloads,
        responses=responses,
        constraints=tuple(_constraint(each, factors, responses) for each in whole.tables("constraint")),
        abridgments=_abridgments(whole, factors),
        controlled=_controlled(whole),
        reset=resets.parse(whole.table("reset")),
        build=table.text("build", ""),
        counter=config.counter_of(table, check),
        profile=config.profile_of(table, check),
        cpus=table.text("cpus", ""),
        setup=table.texts("setup"),
        teardown=table.texts("teardown"),
        environment=whole.variables("environment", OURS if check else None, check),
        folder=folder,
    )
    table.end()
    whole.end()
    check_screen(screen, whole)
    return screen


def _workloads(whole: TomlTable, timeout: float, folder: str | None) -> tuple[ScreenWorkload, ...]:
    tables = whole.tables("workload")
    if not tables:
        raise whole.error("workload", "is missing: add at least one [[workload]], which every treatment runs")
    workloads: dict[str, ScreenWorkload] = {}
    for table in tables:
        name = word(table, "name") if table.has("name") or len(tables) > 1 else "workload"
        if name in workloads:
            raise table.error("name", f"{name!r} appears twice")
        command, workload = config.what_of(table, "write either a `command` or a `workload` of cbench")
        screen_workload = ScreenWorkload(
            name=name,
            command=command,
            workload=workload,
            params=table.pairs("params", int),
            timeout_s=table.number("timeout", timeout, 0.1, 7 * DAY_S),
            directory=table.text("directory", ""),
        )
        if screen_workload.params and command:
            raise table.error("params", "applies only to workloads of cbench")
        if screen_workload.directory and workload:
            raise table.error("directory", "applies only to commands")
        table.end()
        _look(table, screen_workload, folder)
        workloads[name] = screen_workload
    return tuple(workloads.values())


def _look(table: TomlTable, screen_workload: ScreenWorkload, folder: str | None) -> None:
    """Check that a workload's files exist; results of builds are checked after the build. Raises UsageError if one is
    missing.
    """
    if folder is None:
        return
    if screen_workload.directory and Path(folder).is_dir() and not Path(folder, screen_workload.directory).is_dir():
        raise table.error("directory", f"{Path(folder, screen_workload.directory)}: no such directory")
    if screen_workload.workload and not screen_workload.built:
        from cbench.study import workload

        test = model.Test(screen_workload.name, workload=screen_workload.workload, params=screen_workload.params)
        if wrong := workload.check(test, folder):
            raise table.error(*wrong)


def _responses(whole: TomlTable, workloads: tuple[ScreenWorkload, ...], default: str) -> tuple[Response, ...]:
    """The responses, each with the workloads that its instrument can read. Raises UsageError if the file has no
    response, if a response cannot be read from its workloads, or if a workload has no response.
    """
    tables = whole.tables("response")
    if not tables:
        raise whole.error("response", "is missing: add at least one [[response]] to measure")
    responses: dict[str, Response] = {}
    names = {each.name: each for each in workloads}
    for table in tables:
        wanted = table.texts("workloads")
        if unknown := [each for each in wanted if each not in names]:
            raise table.error("workloads", f"{unknown[0]!r}: must be one of {', '.join(names)}")
        meant = [names[each] for each in wanted] if wanted else list(workloads)
        ours = [bool(each.workload) for each in meant]
        value = table.given("read") == model.VALUE if table.has("read") else all(ours)
        fitting = [each for each, own in zip(meant, ours, strict=True) if own == value]
        metric = config.metric_of(table, value, False, default)
        if metric.name in responses:
            raise table.error("name", f"{metric.name!r} appears twice")
        if not fitting or (wanted and len(fitting) < len(meant)):
            why = 'commands; "value" is the number of a workload of cbench'
            if not value:
                why = 'workloads of cbench; write read = "value" for the number of a workload'
            raise table.error("read", f"cannot be read from {why}")
        responses[metric.name] = Response(metric.name, metric, tuple(each.name for each in fitting))
    for place, workload in enumerate(workloads):
        if not any(workload.name in each.workloads for each in responses.values()):
            raise whole.error_at(("workload", place), f"no [[response]] is read from {workload.name!r}")
    return tuple(responses.values())


def _controlled(whole: TomlTable) -> tuple[Controlled, ...]:
    variables: dict[str, Controlled] = {}
    for table in whole.tables("controlled"):
        variable = Controlled(table.label("name"), table.text("value", ""), table.text("command", ""))
        if bool(variable.value) == bool(variable.command):
            raise table.error("value", "write either `value`, or a `command` that prints the value")
        if variable.name in variables:
            raise table.error("name", f"{variable.name!r} appears twice")
        table.end()
        variables[variable.name] = variable
    return tuple(variables.values())


def _constraint(table: TomlTable, factors: Sequence[ScreenFactor], responses: Sequence[Response]) -> Constraint:
    kind = table.text("kind", None, CONSTRAINTS)
    where = filter_of(table, "where", table.text("where"), factors)
    named = table.texts("responses")
    if (kind == UNOBTAINABLE) != bool(named):
        why = (
            "is missing: list the unobtainable responses"
            if kind == UNOBTAINABLE
            else f"does not apply to kind = {kind!r}"
        )
        raise table.error("responses", why)
    names = [each.name for each in responses]
    if unknown := [each for each in named if each not in names]:
        raise table.error("responses", f"{unknown[0]!r}: must be one of {', '.join(names)}")
    reason = table.text("reason")
    if not reason.strip():
        raise table.error("reason", "is empty")
    table.end()
    return Constraint(kind, where, reason, named)


def _abridgments(whole: TomlTable, factors: Sequence[ScreenFactor]) -> tuple[Abridgment, ...]:
    abridgments: dict[str, Abridgment] = {}
    for table in whole.tables("abridgment"):
        name = table.label("name")
        if not name.strip() or name in abridgments:
            raise table.error("name", "is empty" if not name.strip() else f"{name!r} appears twice")
        only, minus = (
            tuple(filter_of(table, key, each, factors) for each in table.texts(key)) for key in ("only", "minus")
        )
        if not only and not minus:
            raise table.error(
                "minus", "is missing: write the treatments to remove, or use `only` for the treatments to keep"
            )
        table.end()
        abridgments[name] = Abridgment(name, only, minus)
    return tuple(abridgments.values())


def filter_of(table: TomlTable, key: str, text: str, factors: Sequence[ScreenFactor]) -> Where:
    """The filter that a text such as "fp=0 prf=1,2" describes. Raises UsageError if it is invalid."""
    known = {factor.name: factor for factor in factors}
    where: dict[str, tuple[str, ...]] = {}
    for part in text.split():
        name, equals, levels = part.partition("=")
        if not equals:
            raise table.error(key, f"{part!r}: write FACTOR=LEVEL, with commas between several levels")
        if name not in known:
            raise table.error(key, f"unknown factor {name!r}; the factors are {', '.join(known)}")
        if name in where:
            raise table.error(key, f"{name!r} appears twice; write FACTOR=LEVEL,LEVEL")
        wanted = known[name].names if levels == "*" else tuple(levels.split(","))
        if wrong := [each for each in wanted if each not in known[name].names]:
            raise table.error(key, f"{name} has no level {wrong[0]!r}; its levels are {', '.join(known[name].names)}")
        where[name] = wanted
    if not where:
        raise table.error(key, 'is empty: write FACTOR=LEVEL, such as "fp=0 prf=1,2"')
    return where
