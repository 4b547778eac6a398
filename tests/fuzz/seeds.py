"""Whole input that is damaged afterwards: profiles, studies, tables, stores of small runs, a tree, a journal."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from tests import CHECKOUT
from tests.trees import CPU, machine, plant

STUDY = """\
[study]
name = "small"
repetitions = 2
seed = 7
[[test]]
name = "first"
command = "echo $((100 + CBENCH_RUN % 3))"
unit = "points"
[[test]]
name = "second"
command = "echo 200"
[[test.metric]]
name = "a"
better = "higher"
read = "regex:([0-9]+)"
"""
SCREEN = """\
[screen]
name = "small"
iterations = 2
seed = 7
[[factor]]
name = "x"
[[factor.level]]
name = "low"
environment = { X = "0" }
[[factor.level]]
name = "high"
environment = { X = "1" }
[[factor]]
name = "y"
[[factor.level]]
name = "0"
environment = { Y = "0" }
[[factor.level]]
name = "1"
environment = { Y = "1" }
[[workload]]
name = "work"
command = "echo $((1000 + X * 100 + Y))"
[[response]]
name = "points"
read = "last-float"
unit = "points"
"""
GATE = """\
old = "true"
new = "true"
threshold = "1%"
confirm = false
blocks = 1
timeout_s = 10
seed = 3
"""
USER_CODE = {
    "crash": "*(volatile int *)0 = 1;",
    "abort": "abort();",
    "exit": "exit(0);",
    "exit-code": "_exit(7);",
    "stop": "raise(SIGSTOP);",
    "kill": "raise(SIGKILL);",
    "endless": "for (;;) ;",
    "deep": "return run_deep(n);",
    "lines": 'for (int fd = 3; fd < 40; fd++) if (write(fd, "garbage\\n", 8)) {}',
    "events": 'for (int fd = 3; fd < 40; fd++) if (write(fd, "{\\"event\\":\\"done\\"}\\n", 17)) {}',
    "list": 'for (int fd = 3; fd < 40; fd++) if (write(fd, "[1]\\n", 4)) {}',
    "bytes": 'for (int fd = 3; fd < 40; fd++) if (write(fd, "\\xff\\x00\\x1b[2J", 6)) {}',
    "close": "for (int fd = 0; fd < 40; fd++) close(fd);",
    "fork": "if (fork() == 0) { setsid(); sleep(2); _exit(0); }",
    "output": 'for (int i = 0; i < 1000; i++) printf("\\033]0;title\\007");',
    "alarm": "alarm(1); pause();",
    "ignore": "signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); for (;;) pause();",
    "memory": "char *p = malloc(n * 1000000000ull); if (p) p[0] = 1;",
    "good": "",
}
HEAD = (
    "#include <signal.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    "static uint64_t run_deep(uint64_t n) { volatile char b[4096]; b[0] = (char)n; return run_deep(n + 1) + b[0]; }\n"
)


class Seeds:
    """Files below one directory, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.profiles = [*(CHECKOUT / "quiet/profiles").glob("*.toml")]
        self.studies = [self._write("study.toml", STUDY), *(CHECKOUT / "docs/studies").glob("*/*.toml")]
        self.screens = [self._write("screen.toml", SCREEN), *(CHECKOUT / "docs/screens").glob("*/*.toml")]
        self.gate = self._write("gate.toml", GATE)
        self.tables = [*self._orders(), *self._treatments()]
        self.stores = self._stores()
        self.pyperf = folder / "a.json"
        self._cbench("export", "a.db", "--format", "pyperf", "-o", "a.json")
        data = (CHECKOUT / "tests/cbench/formats/data").iterdir()
        self.results = sorted(path for path in data if path.is_file() and path.suffix != ".md")
        self.tree = plant(folder / "tree", self._machine())
        self.applied = folder / "applied"
        shutil.copytree(self.tree, self.applied)
        self._run("quiet", "apply", "--profile", "bench", "--root", str(self.applied))
        assert (self.applied / "run/quiet/journal.jsonl").exists()
        self.user_code = [
            self._write(f"{name}.c", f"{HEAD}uint64_t run(uint64_t n) {{ (void)run_deep; {body} return n; }}\n")
            for name, body in USER_CODE.items()
        ]

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def _machine(self) -> dict[str, str]:
        extra = {
            "proc/sys/vm/stat_interval": "1",
            "proc/sys/kernel/timer_migration": "1",
            "proc/sys/kernel/nmi_watchdog": "1",
            "sys/kernel/mm/ksm/run": "1",
            "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
            "sys/devices/virtual/workqueue/cpumask": "f",
            f"{CPU}/smt/control": "notsupported",
            "etc/systemd/system/multi-user.target.wants/": "",
            "boot/firmware/config.txt": "arm_64bit=1",
            "boot/firmware/cmdline.txt": "console=tty1 root=/dev/mmcblk0p2 rootwait",
        }
        return {**machine(4, irqs=6), **extra}

    def _orders(self) -> list[Path]:
        draw = random.Random(1)
        rows = ["test,order,run,position,value,metric"]
        for run in range(12):
            tests = list(range(3))
            draw.shuffle(tests) if run % 2 else None
            order = "random" if run % 2 else "fixed"
            rows += [
                f"t{test},{order},{run},{at},{100 + test + draw.gauss(0, 1):.4f},time" for at, test in enumerate(tests)
            ]
        return self._table("orders", rows)

    def _treatments(self) -> list[Path]:
        draw = random.Random(1)
        rows = ["compiler,size,iteration,batch,position,elapsed"]
        for iteration in range(6):
            cells = [(compiler, size) for compiler in ("gcc", "clang") for size in (0, 1, 2)]
            draw.shuffle(cells)
            rows += [f"{c},{s},{iteration},0,{at},{10 + s + draw.gauss(0, 0.1):.4f}" for at, (c, s) in enumerate(cells)]
        return self._table("treatments", rows)

    def _table(self, name: str, rows: list[str]) -> list[Path]:
        path = self._write(f"{name}.csv", "\n".join(rows) + "\n")
        from pyarrow import csv, parquet  # type: ignore[import-untyped]

        parquet.write_table(csv.read_csv(path), path.with_suffix(".parquet"))
        return [path, path.with_suffix(".parquet")]

    def _stores(self) -> list[Path]:
        run = ("run", "hash", "--quick", "--no-trace", "--trials", "20", "--processes", "2", "--param", "n=1000")
        self._cbench(*run, "-o", "a.db")
        self._cbench(*run, "-o", "b.db")
        self._cbench("order", "run", "study.toml", "-o", "study.db")
        self._cbench("screen", "run", "screen.toml", "-o", "screen.db")
        self._cbench("ab", "--blocks", "6", "-o", "ab.db", "--", "true", "true")
        return [self.folder / name for name in ("a.db", "study.db", "screen.db", "ab.db")]

    def _cbench(self, *arguments: str) -> None:
        self._run("cbench", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", program, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{program} {' '.join(arguments)}: {json.dumps(done.stderr[-2000:])}")
