"""Turn the result of a command into comparable lines: exact, or only their shape."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

# Text that varies between two runs of the same command, and its replacement.
MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?([+-]\d\d:\d\d|Z)?"), "<time>"),
    (re.compile(r"\b1\d{18}\b"), "<time>"),  # nanoseconds
    (re.compile(r'("(?:last_ended_s_ago|trial_s_mean|left_s)": ?)\d[\d.e-]*'), r"\1<seconds>"),
    (re.compile(r"\b[\d.,]+ (ms|s|min|h|d)(?= to go| ago)"), "<seconds>"),
    (re.compile(r"^\d\d:\d\d:\d\d ", re.M), "<time> "),  # quiet watch
    (re.compile(r'("(?:time|since)": ?)\d{10}(\.\d+)?'), r"\1<time>"),
    (re.compile(r"\bmade as \d+"), "made as <inode>"),  # an interrupt's identity in the journal
    (re.compile(r"[\d.]+ s of CPU time \([\d.]+ %\)"), "<CPU time>"),
    (re.compile(r'("(?:cpu_seconds|cpu_percent)": ?)[\d.e-]+'), r"\1<CPU time>"),
    (re.compile(r"/cbench-[a-z0-9_]{8}\b"), "/cbench-<random>"),
    (re.compile(r"-[0-9a-f]{20,}\.so\b"), "-<path>.so"),
)
NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( ?(ns|us|µs|ms|s|min|KiB|MiB|GiB|%))?(?![A-Za-z])")
DRAWN = re.compile(r"[\u2500-\u259f●○┄]+")
# Their keys are names of the host's interrupts and softirqs.
NAMED = ("interrupts", "softirqs", "causes_by_cpu")
BLOCKS = (
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "script",
        "body",
        "header",
        "footer",
        "main",
        "nav",
        "section",
        "article",
    ),
    *(
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "div",
        "figure",
        "figcaption",
        "details",
        "summary",
    ),
    *(
        "table",
        "caption",
        "colgroup",
        "col",
        "thead",
        "tbody",
        "tfoot",
        "tr",
        "th",
        "td",
        "hr",
        "br",
        "pre",
        "svg",
        "g",
    ),
    *("path", "rect", "line", "circle", "polyline", "polygon", "defs", "clippath", "use", "text"),
)
SCRATCH, TRANSIENT = ("home", "tmp"), ("-wal", "-shm", "-journal")

States = dict[str, tuple[int, int, int]]


def mask(text: str, folder: Path, checkout: Path) -> str:
    """Replace the paths of the working directory and the checkout, times and random names."""
    text = text.replace(str(folder), "<folder>").replace(str(checkout), "<checkout>")
    for pattern, name in MASKS:
        text = pattern.sub(name, text)
    return text


def readable(text: str) -> str:
    """JSON with one value per line; any other text unchanged."""
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False, sort_keys=True)
    except ValueError:
        return text


def shape(text: str) -> set[str]:
    """The key paths of a JSON text with their types; the lines of any other text without numbers and drawing."""
    try:
        return set(_paths(json.loads(text), ""))
    except ValueError:
        lines = (" ".join(DRAWN.sub(" ", NUMBER.sub("#", line)).split()) for line in text.splitlines())
        return {line for line in lines if line}


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{path}: object"
        for key, inner in value.items():
            name = "*" if path.endswith(NAMED) else re.sub(r"^\d[\d,-]*$", "#", key)
            yield from _paths(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}: list"
        for inner in value:
            yield from _paths(inner, f"{path}[]")
    else:
        yield f"{path}: {type(value).__name__}"


def states(folder: Path) -> States:
    """Every file of a directory, with the facts that show a write; inputs read in place and scratch files are left
    out.
    """
    known: States = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if root != str(folder) or name not in SCRATCH]
        for name in files:
            path = os.path.join(root, name)
            if not name.endswith(TRANSIENT) and os.path.isfile(path):
                status = os.stat(path)
                known[os.path.relpath(path, folder)] = (status.st_mtime_ns, status.st_size, status.st_mode)
    return known


def content(path: Path) -> str:
    """A written file as text: tables row by row, archives member by member, databases table by table."""
    mode = f"mode {path.stat().st_mode & 0o7777:o}\n"
    if path.suffix == ".db":
        return mode + _database(path)
    if path.suffix == ".parquet":
        from pyarrow import parquet  # type: ignore[import-untyped]

        table = parquet.read_table(path)
        return mode + "\n".join([*str(table.schema).splitlines(), *map(str, table.to_pylist())])
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as tar:
            return mode + "\n".join(sorted(_member(tar, member) for member in tar.getmembers()))
    data = path.read_bytes()
    try:
        return mode + data.decode()
    except UnicodeDecodeError:
        return mode + f"{path.suffix} {data[:4]!r} {hashlib.sha256(data).hexdigest() if path.suffix != '.png' else ''}"


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = tar.extractfile(member)
    digest = hashlib.sha256(file.read()).hexdigest()[:16] if file else ""
    return f"{member.name} {member.type!r} {member.mode:o} {member.linkname} {digest}"


def _database(path: Path) -> str:
    if path.read_bytes()[:6] != b"SQLite":
        return path.read_text(errors="replace")
    lines = []
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        lines += [f"user_version {store.execute('PRAGMA user_version').fetchone()[0]}"]
        for name, sql in store.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall():
            lines += (sql or name).splitlines()
            if (sql or "").startswith("CREATE TABLE"):
                lines.append(f"{name}: {store.execute(f'SELECT count(*) FROM {name}').fetchone()[0]} rows")
    store.close()
    return "\n".join(lines)


def page(text: str) -> str:
    """The tags, attributes and text of an HTML page, a block a line, without the whitespace between blocks."""
    reader = _Page()
    reader.feed(text)
    reader.close()
    return "\n".join([*reader.lines, reader.end()])


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.line = ""

    def end(self) -> str:
        line, self.line = " ".join(self.line.split()), ""
        return line

    def flush(self) -> None:
        if line := self.end():
            self.lines.append(line)

    def handle_decl(self, decl: str) -> None:
        self.line += f"<!{decl}>"
        self.flush()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        written = "".join(f' {name}="{" ".join((value or "").split())}"' for name, value in attrs)
        self._tag(tag, f"<{tag}{written}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._tag(tag, f"</{tag}>")

    def _tag(self, tag: str, text: str) -> None:
        if tag in BLOCKS:
            self.flush()
            self.lines.append(text)
        else:
            self.line += text

    def handle_data(self, data: str) -> None:
        self.line += data
