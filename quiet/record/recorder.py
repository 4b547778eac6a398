"""Record a machine as a tree for --root: the files that quiet reads, and no others."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quiet.boot import plan as boot_plan
from quiet.boot.plan import BootRequest
from quiet.errors import QuietError, UsageError
from quiet.host.reader import ANSWERS, Reader
from quiet.kernel import check, config, fragments
from quiet.knobs.knob import RuleContext, Skip
from quiet.knobs.registry import KNOBS
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.record.redact import LEFT_OUT, Redaction
from quiet.settings import plan, status
from quiet.settings.profile import bundled, load
from quiet.targets import registry


class Recording(Reader):
    """A reader that records the files and answers that it returns."""

    def __init__(self, root: str = "/") -> None:
        super().__init__(root)
        self.files: dict[str, tuple[str, int]] = {}
        self.folders: set[str] = set()
        self.links: dict[str, str] = {}
        self.closed: set[str] = set()

    def text(self, path: str) -> str | None:
        """Like Reader.text; record the content and the file's mode."""
        content = super().text(path)
        with contextlib.suppress(OSError):  # the file has just disappeared, such as a file of an ended task
            mode = self.stat(path).st_mode & 0o777
            if content is not None:
                self.files[path] = (content, mode)
            elif not self.access(path, os.R_OK):
                self.closed.add(path)
        return content

    def names(self, path: str) -> list[str]:
        """Like Reader.names; record the names of the files, without their content."""
        names = super().names(path)
        for name in names:
            self._keep(f"{path.rstrip('/')}/{name}")
        return names

    def asked(self, name: str, ask: Callable[[], str | None]) -> str | None:
        """Like Reader.asked; record the answer as a file of the tree."""
        answer = super().asked(name, ask)
        if answer is not None:
            self.files[f"{ANSWERS}/{name}"] = (answer, 0o644)
        return answer

    def link(self, path: str) -> str | None:
        """Like Reader.link; record the link, with its target as a path within the tree, and the target itself."""
        target = super().link(path)
        if target is not None:
            whole = os.path.normpath(os.path.join(os.path.dirname(path), target))
            self.links[path] = whole
            self.exists(whole)
        return target

    def exists(self, path: str) -> bool:
        """Like Reader.exists; record a directory as such, a file in /sys or /proc with content, other files without."""
        exists = super().exists(path)
        # of a file on a disk, only the existence is recorded: a unit may contain private data
        if path.startswith(("/sys/", "/proc/")) and exists and path not in self.files and self._is_regular(path):
            self.text(path)
        if exists:
            self._keep(path)
        return exists

    def writable(self, path: str) -> bool:
        """Like Reader.writable; for root, also record files that can only be written."""
        self._keep(path)
        return super().writable(path)

    def seen(self, path: str) -> bool:
        """Whether a file or directory exists. Record its existence, not its content, even if this user may not read
        it.
        """
        exists = super().exists(path)
        if self.is_folder(path):
            self.folders.add(path)
        elif exists:
            self.files.setdefault(path, ("", 0o444))
        return exists

    def _is_regular(self, path: str) -> bool:
        try:
            return stat.S_ISREG(self.stat(path).st_mode)
        except OSError:
            return False

    def _keep(self, path: str) -> None:
        if self.is_folder(path):
            self.folders.add(path)
        elif path not in self.files and self.access(path, os.R_OK):
            with contextlib.suppress(OSError):
                self.files[path] = ("", self.stat(path).st_mode & 0o777)


class RecordReceipt(NamedTuple):
    """The archive, the number of files in it, the intentional omissions, and the files that this user may not read."""

    file: str
    files: int
    left_out: tuple[str, ...]
    unreadable: tuple[str, ...]


def record(reader: Recording, file: str, redacted: bool = True) -> RecordReceipt:
    """Write a gzip-compressed tar file of all data that quiet reads on this host for plans, status and kernel check.

    The same content yields the same bytes. `redacted`: omit the data listed in redact.LEFT_OUT. Raises UsageError if
    the file already exists or cannot be written; then no partial file remains.
    """
    if not file:
        raise UsageError("record: no file name; give the archive to write, such as myhost.tar.gz")
    facts = Facts(reader)
    status.status(facts, None)
    _ask_every_knob(facts)
    _ask_kernel(reader)
    for name in bundled():
        with contextlib.suppress(QuietError):  # the host may have no boot loader, or no CPU to isolate
            profile = load(name)
            boot_plan.make(reader, BootRequest(profile.name, profile.boot, profile.choose(facts)))
    try:
        mode = 0o666 if redacted else 0o600  # unredacted, it may contain files that only root may read
        with open(file, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as archive:
            count = _write(reader, archive, file, redacted)
    except FileExistsError:
        raise UsageError(f"{file}: already exists; give another name") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    return RecordReceipt(file, count, LEFT_OUT if redacted else (), tuple(sorted(reader.closed)))


def _write(reader: Recording, archive: io.BufferedWriter, file: str, redacted: bool) -> int:
    """Write the archive. Returns the number of its regular files."""
    folders = {*reader.folders, *reader.links}
    redaction = Redaction({path: text for path, (text, _) in reader.files.items()}, folders) if redacted else None
    count = 0
    try:
        with (
            gzip.GzipFile("", "wb", fileobj=archive, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
        ):
            for path in sorted(reader.folders - reader.files.keys() - reader.links.keys()):
                if "/../" not in path and (not redaction or redaction.keeps(path)):
                    _add(tar, redaction.path(path) if redaction else path, 0o755, None)
            for path, (text, mode) in sorted(reader.files.items()):
                if path in reader.links or "/../" in path or (redaction and not redaction.keeps(path)):
                    continue
                shown, content = (redaction.path(path), redaction.text(path, text)) if redaction else (path, text)
                _add(tar, shown, mode | 0o400, content.encode("utf-8", "surrogateescape") + b"\n")
                count += 1
            for path, whole in sorted(reader.links.items()):
                if not redaction or (redaction.keeps(path) and redaction.keeps(whole)):
                    shown, to = (redaction.path(path), redaction.path(whole)) if redaction else (path, whole)
                    _add(tar, shown, 0o777, None, os.path.relpath(to, os.path.dirname(shown)))
        archive.flush()
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(file)  # a partial archive would look complete
        raise
    return count


def _add(tar: tarfile.TarFile, path: str, mode: int, data: bytes | None, link: str = "") -> None:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.mode = mode
    if link:
        entry.type, entry.linkname = tarfile.SYMTYPE, link
    elif data is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data) if data is not None else None)


def _ask_every_knob(facts: Facts) -> None:
    """Run every rule with every choice, on the CPUs that the profiles would select and on all others too."""
    cpus = list(_choices(facts))
    for name in bundled():
        profile = load(name)
        with contextlib.suppress(QuietError):
            cpus.insert(0, profile.choose(facts))
            plan.make(facts.reader, profile, cpus[0], facts=facts)
    for knob in KNOBS:
        for choice in (*knob.choices, *(["1"] if knob.numeric else [])):
            for chosen in dict.fromkeys(cpus):
                context = RuleContext(facts, chosen, choice)
                for item in knob.rule(context):
                    if not isinstance(item, Skip):
                        registry.get(facts.reader, item.target)
                        registry.identity(facts.reader, item.target)
                        if item.target.startswith("workqueue:"):  # read from one file, written to another
                            facts.reader.text(registry.written_file(facts.reader, item.target))
                for target in knob.entangled(context):
                    if target.startswith("file:"):
                        facts.reader.text(target[5:])


def _ask_kernel(reader: Recording) -> None:
    """Record the kernel's configuration, as one uncompressed file, and the evidence of its options."""
    built = config.running(reader)
    if built.values:
        lines = (f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in built.values.items())
        reader.files[built.source] = ("\n".join(lines), 0o444)
    reader.asked(check.ASKED, lambda: "yes")
    for option in fragments.load((*fragments.NAMES, fragments.LAB)):
        for evidence in option.evidence:
            if evidence.word:
                reader.text(evidence.path)
            elif not reader.seen(evidence.path):
                reader.names(evidence.path.rpartition("/")[0])


def _choices(facts: Facts) -> Iterable[CpuPartition]:
    """Yield partitions that together isolate every online CPU.

    If there are several cores, one partition takes all but one thread of each core offline.
    """
    first = frozenset({min(facts.online)})
    rest = facts.online - first
    threads = frozenset().union(*(core - {min(core)} for core in facts.cores))
    yield CpuPartition(rest or first, first, frozenset(), "all but the first")
    if rest:
        yield CpuPartition(first, rest, frozenset(), "the first")
        yield CpuPartition(
            rest - threads or rest, first, threads - first if rest - threads else frozenset(), "one of each core"
        )
