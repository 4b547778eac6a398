"""Make the inputs that both checkouts read: recorded machines, tables, studies, and stores of small runs."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.interfaces.side import Side

TREES = ("hosts", "cases", "loaders", "other", "orders")  # read in place, never written
COPIED = ("files", "stores", "studies", "screens")  # every group of commands has its own copy

PROFILE = """\
name = "mine"
[cpus]
isolated = "3"
[knobs]
ksm = "quiet"
irq = "quiet"
"vm.stat_interval" = 60
"""
# Every number is a function of where the trial is, so that two runs store the same values.
STUDY = """\
[study]
name = "exact"
repetitions = 8
seed = 7
[[test]]
name = "first"
command = "echo $((100 + CBENCH_RUN % 3))"
unit = "points"
[[test]]
name = "second"
command = "echo $((200 + CBENCH_POSITION * 50 + CBENCH_RUN % 5))"
[[test]]
name = "third"
command = '{third}'
[[test.metric]]
name = "a"
better = "higher"
read = "regex:a=([0-9]+)"
[[test.metric]]
name = "b"
read = "json:b"
"""
THIRD = r'printf "a=%d\n{\"b\": %d}\n" $((7 + CBENCH_RUN % 2)) $((9 + CBENCH_RUN % 4))'
SCREEN = """\
[screen]
name = "exact"
iterations = 8
seed = 7
[[factor]]
name = "x"
[[factor.level]]
name = "low"
environment = {{ X = "0" }}
[[factor.level]]
name = "high"
environment = {{ X = "1" }}
[[factor]]
name = "y"
[[factor.level]]
name = "0"
environment = {{ Y = "0" }}
[[factor.level]]
name = "1"
environment = {{ Y = "1" }}
[[factor.level]]
name = "2"
environment = {{ Y = "2" }}
[[workload]]
name = "work"
command = '{command}'
[[response]]
name = "points"
read = "last-float"
unit = "points"
[[abridgment]]
name = "without y=2"
minus = ["y=2"]
"""
WORK = "echo $((1000 + X * 100 + Y * 10 + X * Y * 5 + (CBENCH_RUN * 7 + CBENCH_POSITION * 3) % 11))"
# The first execution interrupts cbench; the later ones print their number.
INTERRUPT = "test -e interrupted || { touch interrupted; kill -INT $PPID; sleep 20; }; "
BROKEN = {
    "no-tests.toml": '[study]\nname = "x"\nrepetitions = 2\n',
    "wrong-key.toml": '[study]\nname = "x"\nrepetitions = 2\nhue = "red"\n[[test]]\nname = "a"\ncommand = "echo 1"\n',
    "wrong-type.toml": '[study]\nname = "x"\nrepetitions = "two"\n[[test]]\nname = "a"\ncommand = "echo 1"\n',
    "wrong-workload.toml": '[study]\nrepetitions = 2\n[[test]]\nname = "a"\nworkload = "hash"\nparams = { m = 1 }\n',
    "not-toml.toml": "[study\nname = \n",
    "one-level.toml": '[screen]\niterations = 2\n[[factor]]\nname = "a"\n[[factor.level]]\nname = "0"\n',
    "wrong-knob.toml": 'name = "x"\n[knobs]\nbogus = "quiet"\n',
    "wrong-value.toml": 'name = "x"\n[knobs]\nksm = "loud"\n',
    "not-a-database.db": "this is not a database, it is a text\n" * 40,
    "empty.db": "",
    "empty.csv": "",
    "no-columns.csv": "a,b\n1,2\n",
    "no-number.csv": "test,order,value\na,fixed,fast\na,random,1\n",
    "one-order.csv": "test,order,value\na,fixed,1\na,fixed,2\n",
    "not-pyperf.json": '{"some": "thing"}\n',
}


def make(before: Side, folder: Path, data: Path) -> None:
    """Write everything below a new directory; stores come from runs of the checkout `before`."""
    final, folder = folder, folder.with_name(f"{folder.name}.new")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subprocess.run(
        [before.python, Path(__file__).with_name("machines.py"), folder],
        env=before.environment(folder) | {"PYTHONPATH": str(before.checkout)},
        check=True,
    )
    for archive in (
        *sorted((before.checkout / "tests/hosts").glob("*.tar.gz")),
        *sorted((data / "hosts").glob("*.tar.*")),
    ):
        kind = "other" if archive.is_relative_to(data) else "hosts"
        _unpack(archive, folder / kind / archive.name.partition(".tar.")[0])
    (folder / "orders").mkdir()
    for table in sorted((data / "orders").glob("*.csv")):
        shutil.copy(table, folder / "orders")
    for kind in ("studies", "screens"):
        shutil.copytree(before.checkout / "docs" / kind, folder / kind)
    _files(folder / "files")
    _stores(before, folder)
    folder.rename(final)


def names(folder: Path, kind: str) -> list[str]:
    """The entries of one kind of input; none when there is no such directory."""
    return sorted(path.name for path in (folder / kind).iterdir()) if (folder / kind).is_dir() else []


def lay_out(folder: Path, group: Path) -> None:
    """Give a group of commands its own directory with the inputs in it."""
    group.mkdir(parents=True)
    for kind in TREES:
        (group / kind).symlink_to(os.path.relpath(folder / kind, group))
    for kind in COPIED:
        shutil.copytree(folder / kind, group / kind)
    for kind in ("tmp", "home"):
        (group / kind).mkdir()


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="tar")
    inner = list(folder.iterdir())
    if len(inner) == 1 and (inner[0] / "sys").is_dir():  # other projects' archives have a directory around the tree
        for path in inner[0].iterdir():
            path.rename(folder / path.name)


def _files(folder: Path) -> None:
    for name, text in BROKEN.items():
        (folder / name).write_text(text)
    (folder / "mine.toml").write_text(PROFILE)
    (folder / "exact-study.toml").write_text(STUDY.format(third=THIRD))
    (folder / "exact-screen.toml").write_text(SCREEN.format(command=WORK))
    (folder / "interrupted-study.toml").write_text(STUDY.format(third=INTERRUPT + THIRD))
    (folder / "interrupted-screen.toml").write_text(SCREEN.format(command=INTERRUPT + WORK))
    draw = random.Random(1)
    rows = ["test,order,run,position,value,metric"]
    for run in range(40):
        order = "random" if run % 2 else "fixed"
        tests = list(range(4))
        if order == "random":
            draw.shuffle(tests)
        rows += [
            f"t{test},{order},{run},{at},{100 + test + (5 if test == 2 and at < 2 else 0) + draw.gauss(0, 1):.4f},time"
            for at, test in enumerate(tests)
        ]
    _table(folder / "orders-table", rows)
    rows = ["compiler,size,inert,iteration,batch,position,elapsed,memory"]
    for iteration in range(12):
        cells = [(c, s, i) for c in ("gcc", "clang") for s in (0, 1, 2) for i in ("no", "yes")]
        draw.shuffle(cells)
        for at, (compiler, size, inert) in enumerate(cells):
            elapsed = (
                10 + (compiler == "gcc") * 0.8 + size * 0.3 + (compiler == "gcc") * size * 0.2 + draw.gauss(0, 0.1)
            )
            rows.append(
                f"{compiler},{size},{inert},{iteration},0,{at},{elapsed:.4f},{500 + size * 10 + draw.randrange(5)}"
            )
    _table(folder / "screen-table", rows)


def _table(path: Path, rows: Iterable[str]) -> None:
    path.with_suffix(".csv").write_text("\n".join(rows) + "\n")
    from pyarrow import csv, parquet  # type: ignore[import-untyped]

    parquet.write_table(csv.read_csv(path.with_suffix(".csv")), path.with_suffix(".parquet"))


def _stores(before: Side, folder: Path) -> None:
    stores = folder / "stores"
    stores.mkdir()
    for kind, example, key in (("studies", "repetitions", "30"), ("screens", "iterations", "20")):
        path = folder / kind / "planted" / ("study.toml" if kind == "studies" else "screen.toml")
        for name, count in (("few", 8), ("two", 2)):
            text = path.read_text().replace(f"{example} = {key}", f"{example} = {count}")
            path.with_name(f"{name}.toml").write_text(text)
    quick = "--quick --no-trace --trials"
    for line in (
        f"cbench run hash sieve {quick} 60 -o stores/a.db",
        f"cbench run hash sieve {quick} 70 -o stores/b.db",
        f"cbench run hash {quick} 20 --processes 8 --vary all -o stores/processes-a.db",
        f"cbench run hash {quick} 20 --processes 8 --vary all --seed 2 -o stores/processes-b.db",
        "cbench order run studies/planted/few.toml -o stores/study.db",
        "cbench screen run screens/planted/few.toml -o stores/screen.db",
        "cbench screen validate --quick --samples 3 --workload perfect --instrument wall -o stores/validate.db",
        "cbench export stores/a.db --format pyperf -o files/a.json",
        "cbench export stores/b.db --format pyperf -o files/b.json",
        "cbench export stores/processes-a.db --format pyperf -o files/processes-a.json",
    ):
        (folder / "tmp").mkdir(exist_ok=True)
        before.run(line, folder, check=True)
