"""List the commands to compare, in groups that each run in a directory of their own."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.interfaces.inputs import names
from tests.interfaces.usage import USAGE

LEAVES = {
    "quiet": (
        *("", "status", "plan", "apply", "verify", "noise", "restore", "install-service", "remove-service", "run"),
        *("profiles", "explain", "record", "watch", "kernel", "kernel check"),
        *("boot", "boot plan", "boot apply", "boot remove", "boot once"),
    ),
    "cbench": (
        *("", "list", "run", "export", "compare", "interfere", "step", "sweep", "sweep memory"),
        *("order", "order init", "order plan", "order run", "order resume", "order status", "order analyze"),
        "order report",
        *("screen", "screen init", "screen plan", "screen run", "screen resume", "screen status"),
        *("screen analyze", "screen report", "screen validate"),
    ),
}
# These change the host unless they work on a tree.
CHANGES_HOST = ("apply", "restore", "run", "install-service", "remove-service", "watch", "boot")
CPUFREQ = Path("/sys/devices/system/cpu/cpufreq/policy0")

LIFE = """
quiet plan --root tree {profile}
quiet apply --root tree {profile} --json
quiet status --root tree
quiet status --root tree --json
quiet apply --root tree {profile}
quiet verify --root tree --duration 0
quiet verify --root tree --json
quiet plan --root tree {profile} --json
sh -c 'echo 1 > tree/sys/kernel/mm/transparent_hugepage/khugepaged/defrag'
quiet verify --root tree --duration 0
quiet verify --root tree --duration 0 --json
quiet watch --root tree --duration 0.5
quiet watch --root tree --duration 0.5 --json
quiet watch --root tree --duration 0.5 --repair
sh -c 'echo 2 > tree/sys/kernel/mm/transparent_hugepage/khugepaged/defrag'
quiet restore --root tree --json
quiet restore --root tree
quiet restore --root tree --force
quiet restore --root tree --json
diff -r {original} tree
quiet apply --root tree {profile}
sh -c 'echo 2 > tree/sys/kernel/mm/transparent_hugepage/khugepaged/defrag'
quiet restore --root tree --keep
quiet restore --root tree
quiet status --root tree --json
diff -r {original} tree
"""

BOOT = """
quiet boot plan --root tree
quiet boot plan --root tree --json
quiet boot apply --root tree
quiet boot apply --root tree --json
quiet boot apply --root tree --cpus 3
quiet boot remove --root tree --json
quiet boot remove --root tree
diff -r {original} tree
"""

ORDER_TABLES = """
cbench order analyze {table}
cbench order analyze {table} --json
cbench order analyze {table} --json --every-rule
cbench order analyze {table} --as-published
cbench order analyze {table} --as-published --json
cbench order analyze {table} --alpha 0.01 --delta 5
cbench order report {table} -o page.html
cbench order report {table} -o page.html --json --as-published
"""

SCREEN_TABLES = """
cbench screen analyze {table} --subsamples 50
cbench screen analyze {table} --subsamples 50 --json
cbench screen analyze {table} --subsamples 0 --alpha 0.01 --ci-level 99 --seed 3
cbench screen report {table} --subsamples 50 -o page.html
cbench screen report {table} --subsamples 0 -o page.html --json
"""

EXACT_STUDY = """
cbench order plan files/exact-study.toml --host a
cbench order plan files/exact-study.toml --host a --json
cbench order run files/exact-study.toml -o exact.db
cbench order status exact.db
cbench order status exact.db --json
cbench order analyze exact.db
cbench order analyze exact.db --json
cbench order report exact.db -o exact.html
cbench export exact.db --format csv -o exact.csv
cbench order resume exact.db
"""

INTERRUPTED_STUDY = """
cbench order run files/interrupted-study.toml -o interrupted.db
cbench order status interrupted.db
cbench order status interrupted.db --json
cbench order analyze interrupted.db
cbench order run files/interrupted-study.toml -o interrupted.db
cbench order resume interrupted.db
cbench order status interrupted.db --json
cbench order analyze interrupted.db --json
"""

EXACT_SCREEN = """
cbench screen plan files/exact-screen.toml
cbench screen plan files/exact-screen.toml --json
cbench screen run files/exact-screen.toml -o exact.db
cbench screen status exact.db
cbench screen status exact.db --json
cbench screen analyze exact.db --subsamples 50
cbench screen analyze exact.db --subsamples 50 --json
cbench screen analyze exact.db --abridgment 'without y=2' --subsamples 0
cbench screen analyze exact.db --only 'x=low y=0|1' --subsamples 0
cbench screen analyze exact.db --minus y=0 --subsamples 0 --json
cbench screen report exact.db --subsamples 50 -o exact.html
cbench export exact.db --format csv -o exact.csv
cbench screen resume exact.db
"""

INTERRUPTED_SCREEN = """
cbench screen run files/interrupted-screen.toml -o interrupted.db
cbench screen status interrupted.db
cbench screen status interrupted.db --json
cbench screen analyze interrupted.db
cbench screen resume interrupted.db
cbench screen status interrupted.db --json
"""

STORES = """
cbench compare stores/a.db stores/b.db
cbench compare stores/a.db stores/b.db --json
cbench compare stores/a.db stores/a.db
cbench compare stores/a.db:hash stores/b.db:sieve --json
cbench compare stores/processes-a.db stores/processes-b.db
cbench compare stores/processes-a.db stores/processes-b.db --json
cbench compare stores/processes-a.db stores/processes-b.db --threshold 50% --level 90 --headline min
cbench compare stores/processes-a.db stores/processes-b.db --headline floor --clean-only --json
cbench compare stores/processes-a.db stores/processes-b.db --headline mean --json
cbench compare files/a.json files/b.json
cbench compare files/a.json files/b.json --json
cbench compare files/processes-a.json stores/processes-b.db --json
cbench export stores/a.db --format csv
cbench export stores/a.db --format csv -o a.csv
cbench export stores/a.db --format csv -o a.csv --json
cbench export stores/a.db --format csv --clean-only -o clean.csv
cbench export stores/a.db --format parquet -o a.parquet
cbench export stores/a.db --format parquet -o a.parquet --json
cbench export stores/a.db --format pyperf
cbench export stores/processes-a.db --format pyperf -o processes.json
cbench export stores/study.db --format csv
cbench export stores/study.db --format parquet -o study.parquet
cbench export stores/study.db --format pyperf -o study.json
cbench export stores/screen.db --format csv
cbench export stores/screen.db --format parquet -o screen.parquet
cbench export stores/screen.db --format pyperf -o screen.json
cbench order status stores/study.db
cbench order status stores/study.db --json
cbench screen status stores/screen.db
cbench screen status stores/screen.db --json
cbench screen validate --no-run -o stores/validate.db
cbench screen validate --no-run -o stores/validate.db --json
cbench screen validate --no-run -o stores/validate.db --workload perfect --instrument wall
"""

LIVE = {
    "run": """
cbench list
cbench list --json
cbench run hash --quick --trials 50 --json
cbench run hash --quick --trials 50 --no-trace
cbench run hash sieve --quick --trials 30 --cpu 0,1 --json -o run.db
cbench run hash --quick --trials 20 --processes 3 --vary all --json -o processes.db
cbench run hash --quick --trials 20 --until-clean 5 --subtract-overhead --json
cbench run screens/planted/planted.c:planted --param n=1000 --trials 20 --json
cbench export run.db --format pyperf
""",
    "sweep": """
cbench sweep memory --sizes 4K,64K --accesses 1e3,1e4 --trials 5 --json
cbench sweep memory --sizes 4K,64K --accesses 1e3 --trials 5 -o sweep.svg
cbench sweep memory --sizes 4K,64K --accesses 1e3 --trials 5 -o sweep.png
""",
    "interfere": """
cbench interfere hash --load hash --trials 10 --rounds 2 --quick --json
cbench interfere hash --load hash --trials 10 --rounds 2 --quick
""",
    "study": """
cbench order run studies/planted/two.toml -o study.db --json
cbench order status study.db --json
cbench order analyze study.db --json
cbench order report study.db -o study.html
cbench screen run screens/planted/two.toml -o screen.db --json
cbench screen status screen.db --json
cbench screen analyze screen.db --subsamples 20 --json
cbench screen report screen.db --subsamples 20 -o screen.html
""",
    "validate": """
cbench screen validate --quick --samples 3 --workload perfect --instrument wall -o validate.db --json
cbench screen validate --no-run -o validate.db
""",
    "host": """
quiet status
quiet status --json
quiet plan --json
quiet verify --duration 0 --json
quiet kernel check --json
quiet boot plan --json
quiet noise --cpus 0 --duration 0.5 --json
quiet noise --cpus 0 --duration 0.5 --no-trace --json
quiet noise --cpus 0 --duration 0.5 --no-trace
quiet noise --cpus 0 --duration 0.5 --no-trace --max-lost 0.0001% --timeline noise.html
""",
}


@dataclass(frozen=True)
class Group:
    """Command lines that run one after the other in one directory; of a live one only the shape is compared."""

    name: str
    lines: tuple[str, ...]
    live: bool = False

    def label(self, line: str) -> str:
        """How a command is listed and selected."""
        return f"{self.name}: {line}"


def groups(inputs: Path) -> list[Group]:
    """Everything to compare, for the inputs in this directory."""
    made = [
        Group("help", tuple(f"{tool} {leaf} --help".replace("  ", " ") for tool in LEAVES for leaf in LEAVES[tool])),
        _group("usage", USAGE),
        Group("knowledge", tuple(_knowledge())),
        *(Group(f"host {name}", tuple(_host(f"hosts/{name}"))) for name in names(inputs, "hosts")),
        Group("other hosts", tuple(line for name in names(inputs, "other") for line in _plans(f"other/{name}"))),
        Group("cases", tuple(_case(name) for name in names(inputs, "cases"))),
        _life("life synthetic", "hosts/synthetic", "--profile files/mine.toml"),
        *(
            _life(f"life {name}", f"hosts/{name}", profile)
            for name, profile in (("smt", ""), ("cpufreq", "--profile strict"), ("cgroup-v1", ""), ("host", ""))
        ),
        _service("hosts/host"),
        *(_boot(name) for name in names(inputs, "loaders")),
        Group("shipped", tuple(_shipped())),
        _group("stores", STORES),
        _group("exact study", EXACT_STUDY),
        _group("interrupted study", INTERRUPTED_STUDY),
        _group("exact screen", EXACT_SCREEN),
        _group("interrupted screen", INTERRUPTED_SCREEN),
    ]
    tables = ["stores/study.db", "files/orders-table.csv", "files/orders-table.parquet"]
    tables += [f"orders/{name}" for name in names(inputs, "orders") if "_all_" in name]
    made += [_group(f"order {table}", ORDER_TABLES.format(table=table)) for table in tables]
    tables = ["stores/screen.db", "files/screen-table.csv", "files/screen-table.parquet"]
    responses = (
        "",
        " --value elapsed --value memory",
        " --value elapsed --factor compiler --factor size --factor inert",
    )
    made += [
        _group(f"screen {table}", SCREEN_TABLES.format(table=table + options))
        for table, options in zip(tables, responses, strict=True)
    ]
    made += [_group(f"live {name}", lines, live=True) for name, lines in LIVE.items()]
    if not CPUFREQ.exists():  # there it would change a frequency
        made.append(_group("step", "cbench step hash --trials 20\ncbench step hash --trials 20 --json"))
    for group in made:
        for line in group.lines:
            _check_harmless(line)
    return made


def select(every: Iterable[Group], wanted: Callable[[str], bool]) -> list[Group]:
    """The groups with a wanted command, each up to the last one: a command may need what came before it."""
    chosen = []
    for group in every:
        last = max((at for at, line in enumerate(group.lines) if wanted(group.label(line))), default=-1)
        if last >= 0:
            chosen.append(Group(group.name, group.lines[: last + 1], group.live))
    return chosen


def _group(name: str, text: str, live: bool = False) -> Group:
    return Group(name, tuple(text.strip().splitlines()), live)


def _knowledge() -> Iterable[str]:
    for tail in ("", " --json"):
        yield f"quiet profiles{tail}"
        yield f"quiet explain{tail}"
        for knob in (
            "smt",
            "irq",
            "cpuset",
            "cpufreq.limits",
            "cpufreq.governor",
            "services",
            "slices",
            "resctrl",
            "net.rss",
        ):
            yield f"quiet explain {knob}{tail}"
    yield "cbench order init"
    yield "cbench order init other-study.toml"
    yield "cbench order init"
    yield "cbench screen init"
    yield "cbench screen init other-screen.toml"
    yield "cbench screen plan screen.toml"


def _plans(root: str) -> Iterable[str]:
    yield f"quiet status --root {root} --json"
    yield f"quiet plan --root {root}"
    yield f"quiet plan --root {root} --profile strict --json"


def _host(root: str) -> Iterable[str]:
    for line in ("status", "verify --duration 0", "boot plan", "kernel check"):
        yield f"quiet {line} --root {root}"
        yield f"quiet {line} --root {root} --json"
    yield f"quiet plan --root {root}"
    yield f"quiet plan --root {root} --json"
    yield f"quiet plan --root {root} --profile strict"
    yield f"quiet plan --root {root} --cpus 1 -p files/mine.toml --json"
    yield f"quiet verify --root {root} --duration 0 --profile strict --cpus 1 --json"
    yield f"quiet record recorded.tar.gz --root {root}"


def _case(name: str) -> str:
    return f"quiet plan --json --root cases/{name}/root --profile cases/{name}/profile.toml"


def _life(name: str, original: str, profile: str) -> Group:
    return _group(name, f"cp -a {original}/. tree\n" + LIFE.strip().format(original=original, profile=profile))


def _service(original: str) -> Group:
    lines = (
        f"cp -a {original}/. tree",
        "quiet install-service --root tree",
        "quiet install-service --root tree --trust-program",
        "quiet install-service --root tree --trust-program --json",
        "quiet install-service --root tree --trust-program --profile files/mine.toml --cpus 1",
        "quiet remove-service --root tree --json",
        "quiet remove-service --root tree",
        f"diff -r {original} tree",
    )
    return Group("service", lines)


def _boot(name: str) -> Group:
    original = f"loaders/{name}"
    return _group(f"boot {name}", f"cp -a {original}/. tree\n" + BOOT.strip().format(original=original))


def _shipped() -> Iterable[str]:
    for name in ("planted", "tn1855"):
        yield f"cbench screen plan screens/{name}/screen.toml"
        yield f"cbench screen plan screens/{name}/screen.toml --json"


def _check_harmless(line: str) -> None:
    """Raise ValueError for a command that could change this host."""
    words = shlex.split(line)
    if words[0] != "quiet" or "--help" in words or len(words) < 2 or words[1] not in CHANGES_HOST:
        return
    tree = "--root" in words and words[words.index("--root") + 1] not in ("/", "")
    if not tree and words[1:] != ["boot"] and words[1:3] != ["boot", "plan"]:
        raise ValueError(f"may change this host: {line}")
