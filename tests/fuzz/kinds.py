"""The kinds of input: which file is damaged, and which commands read it then."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.damage import NASTY, damage
from tests.fuzz.seeds import Seeds

Command = tuple[str, ...]
EVERY_RATE = "github-action-benchmark-bigger"
LARGE = 1 << 24  # bytes; one was laid there before


@dataclass(frozen=True)
class Case:
    """Commands to run one after another in the case's directory; `kept` are files that they must not change."""

    commands: tuple[Command, ...]
    kept: tuple[Path, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    foreign: bool = False
    """Other programs write to stderr too."""


def profile(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    path = _damaged(draw, draw.choice(seeds.profiles), folder / "mine.toml")
    command = draw.choice((("plan",), ("verify", "--duration", "0"), ("boot", "plan")))
    return Case((("quiet", *command, "--root", str(seeds.tree), "--profile", str(path)),), (path,))


def study(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    path = _damaged(draw, seeds.studies[0], folder / "study.toml")
    return Case((("cbench", "order", "run", str(path), "-o", "out.db"),), (path,))


def gate(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    path = _damaged(draw, seeds.gate, folder / "gate.toml")
    return Case((("cbench", "gate", str(path), "--junit", "out.xml"),), (path,), foreign=True)


def screen(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    path = _damaged(draw, draw.choice(seeds.screens), folder / "screen.toml")
    return Case((("cbench", "screen", "plan", str(path)),), (path,))


def store(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    seed = draw.choice(seeds.stores)
    path = _damaged(draw, seed, folder / "damaged.db")
    name = str(path)
    commands: list[Command] = [("export", name, "--format", draw.choice(("csv", "pyperf")), "-o", "out")]
    if seed.name == "a.db":
        commands += [("compare", name, str(seeds.stores[0])), ("compare", str(seeds.stores[0]), name, "--json")]
    elif seed.name == "study.db":
        commands += [("order", verb, name) for verb in ("analyze", "status", "resume")]
        commands.append(("order", "report", name, "-o", "out.html"))
    elif seed.name == "ab.db":
        commands += [("ab", "--resume", name), ("compare", name), ("compare", name, name, "--json")]
    else:
        commands += [("screen", verb, name) for verb in ("analyze", "status")]
        commands.append(("screen", "report", name, "-o", "out.html"))
    command = draw.choice(commands)
    return Case((("cbench", *command),), (path,) if not {"resume", "--resume"} & {*command} else ())


def table(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    seed = draw.choice(seeds.tables)
    path = _damaged(draw, seed, folder / f"damaged{seed.suffix}")
    room, options = ("order", ()) if seed.stem == "orders" else ("screen", ("--value", "elapsed"))
    verb = draw.choice((("analyze",), ("analyze", "--json"), ("report", "-o", "out.html")))
    return Case((("cbench", room, verb[0], str(path), *verb[1:], *options),), (path,))


def pyperf(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    path = _damaged(draw, seeds.pyperf, folder / "damaged.json")
    pair = [str(path), str(seeds.pyperf)]
    draw.shuffle(pair)
    return Case((("cbench", "compare", *pair),), (path,))


def results(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    """A file of another benchmark program, read by every command that takes one."""
    seed = draw.choice(seeds.results)
    path = _damaged(draw, seed, folder / seed.name)
    kinds = (*("csv", "parquet", "pyperf", "hyperfine", "benchfmt", "bencher", "otava", "markdown"), EVERY_RATE)
    command = draw.choice(
        (
            *(("compare", str(path), str(seed)), ("compare", str(seed), str(path), "--json")),
            *(("export", str(path), "--format", draw.choice(kinds), "-o", "out") for _ in range(3)),
            *(("order", "analyze", str(path)), ("screen", "analyze", str(path))),
        )
    )
    return Case((("cbench", *command),), (path,))


def tree(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    root = folder / "tree"
    shutil.copytree(seeds.tree, root, symlinks=True)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    for _ in range(draw.choice((1, 1, 3))):
        _spoil(draw, draw.choice(files))
    command = draw.choice(
        (
            ("plan",),
            ("status",),
            ("verify", "--duration", "0"),
            ("boot", "plan"),
            ("boot", "status"),
            ("kernel", "check"),
            ("apply",),
            ("boot", "apply"),
            ("install-service",),
            ("record", "out.tgz"),
        )
    )
    first = ("quiet", *command, "--root", str(root))
    after = {"apply": ("restore",), "boot apply": ("boot", "remove"), "install-service": ("remove-service",)}
    more = after.get(" ".join(command))
    return Case((first, ("quiet", *more, "--root", str(root))) if more else (first,))


def journal(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    root = folder / "tree"
    shutil.copytree(seeds.applied, root, symlinks=True)
    path = root / "run/quiet/journal.jsonl"
    if draw.random() < 0.1:
        _spoil(draw, path)
    else:
        _damaged(draw, path, path)
    command = draw.choice(
        (("restore",), ("restore", "--force"), ("status",), ("plan",), ("apply",), ("verify", "--duration", "0"))
    )
    commands = [command] if command[0] == "restore" else [command, ("restore",)]
    return Case(tuple(("quiet", *each, "--root", str(root)) for each in commands))


OPTIONS = {
    ("quiet", "plan"): ("--profile", "--cpus", "--root"),
    ("quiet", "verify", "--duration", "0"): ("--profile", "--cpus", "--root", "--max-gap", "--max-lost"),
    ("quiet", "explain"): ("",),
    ("quiet", "boot", "plan"): ("--profile", "--loader", "--root"),
    ("quiet", "kernel", "check"): ("--config", "--root", ""),
    ("cbench", "run", "hash", "--quick", "--trials", "2", "--warmup", "0", "--no-trace"): (
        *("--param", "--cpu", "--timeout", "--warmup", "--counter", "--seed", "--stack", "--output", "--processes"),
    ),
    ("cbench", "compare"): ("", "--level", "--threshold", "--headline"),
    ("cbench", "ab", "--blocks", "1", "--arm", "a=true", "--arm", "b=true"): (
        *("--effect", "--budget", "--seed", "--timeout", "--cpu", "--output", "--arm", "--layouts", "--preset"),
    ),
    ("cbench", "layout", "--preset", "environment", "--run", "true", "--builds", "3", "--blocks", "5"): (
        *("--effect", "--budget", "--seed", "--timeout", "--cpu", "--builds", "--preset", "--objects"),
    ),
    ("cbench", "export", "a.db"): ("--format", "--output"),
    ("cbench", "order", "analyze", "orders.csv"): ("--alpha", "--delta", "--value"),
    ("cbench", "screen", "analyze", "treatments.csv", "--value", "elapsed"): (
        *("--alpha", "--ci-level", "--seed", "--only", "--minus", "--subsamples", "--factor", "--hard"),
    ),
}


def options(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    start = draw.choice(list(OPTIONS))
    words = [str(seeds.folder / word) if (seeds.folder / word).is_file() else word for word in start]
    for _ in range(draw.choice((1, 1, 2))):
        option = draw.choice(OPTIONS[start])
        value = draw.choice(
            (*NASTY, b"1", b"0.5", b"5%", b"2-3", b"n=1", b"auto", b"all", b"x=low", b"--json", b"1e18")
        )
        words += [word for word in (option, os.fsdecode(value.replace(b"\0", b""))) if word or not option]
    return Case((tuple(words),))


def user_code(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    path = draw.choice(seeds.user_code)
    if draw.random() < 0.3:
        path = _damaged(draw, path, folder / path.name)
    trials = ("--quick", "--trials", "3", "--warmup", "0", "--no-trace", "--timeout", "1")
    return Case(
        (("cbench", "run", f"{path}:run", "--param", f"n={draw.choice((0, 1, 1000))}", *trials),), (path,), foreign=True
    )


def terminal(draw: random.Random, folder: Path, seeds: Seeds) -> Case:
    environment = {
        "TERM": draw.choice(("", "dumb", "xterm-256color", "nosuch", "\x1b")),
        "COLUMNS": draw.choice(("0", "1", "10", "-5", "abc", "999999", "")),
        "LC_ALL": draw.choice(("C", "POSIX", "C.UTF-8", "nosuch", "")),
        "NO_COLOR": draw.choice(("", "1")),
        "HOME": draw.choice(("", "/nosuch", str(folder))),
        "TMPDIR": draw.choice(("/nosuch", str(folder), "")),
        "PYTHONIOENCODING": draw.choice(("", "ascii", "latin-1")),
    }
    command = draw.choice(
        (
            ("quiet", "plan", "--root", str(seeds.tree)),
            ("quiet", "status", "--root", str(seeds.tree)),
            ("quiet", "explain", "irq"),
            ("cbench", "list"),
            ("cbench", "compare", str(seeds.stores[0]), str(seeds.stores[0])),
            ("cbench", "order", "analyze", str(seeds.tables[0])),
            ("cbench", "screen", "analyze", str(seeds.tables[2]), "--value", "elapsed"),
        )
    )
    return Case((command,), environment=environment)


# with the share of all cases that each gets
KINDS: dict[Callable[[random.Random, Path, Seeds], Case], int] = {
    profile: 15,
    study: 5,
    gate: 5,
    screen: 10,
    store: 20,
    table: 10,
    pyperf: 10,
    results: 10,
    tree: 12,
    journal: 12,
    options: 10,
    user_code: 1,
    terminal: 3,
}


def _damaged(draw: random.Random, seed: Path, path: Path) -> Path:
    data = seed.read_bytes()
    while (new := damage(data, draw)) == data:
        pass
    path.write_bytes(new)
    return path


def _spoil(draw: random.Random, path: Path) -> None:
    """Damage a file of a tree, or lay something else in its place."""
    if not path.is_file() or path.is_symlink() or draw.random() < 0.6:
        if path.is_file() and not path.is_symlink() and path.stat().st_size < LARGE:
            path.write_bytes(damage(path.read_bytes(), draw))
        return
    path.unlink()
    kind = draw.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(draw.choice(("/dev/zero", "/etc/passwd", "../../../../../etc/passwd", path.name, "/nosuch")))
    elif kind == 3:
        with path.open("w") as file:
            file.truncate(1 << 40)
    elif kind == 4:
        path.write_bytes(b"")
        path.chmod(0)
