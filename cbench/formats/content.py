"""Provide a results file to the readers: its first bytes, its text, and its JSON, each loaded once."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from functools import cached_property
from pathlib import Path

from cbench.formats.json_value import JsonValue
from quiet import UsageError

HEAD = 1 << 16
TOML = re.compile(rb"\[\[?\s*[A-Za-z_][\w.-]*\s*\]\]?\s*(#.*)?$", re.MULTILINE)
"""Matches the header of a TOML table, such as [study]."""
GZIP = b"\x1f\x8b"
MOST = 1 << 29
"""The maximum size of a file in bytes, after decompression."""
MOST_JSON = 1 << 26
"""The maximum size of a JSON document in bytes if the file is compressed: a small file could fill the memory, because
Python's lists need up to 25 times as much.
"""


class Content:
    """The content of an ordinary file, or of a directory, which has neither bytes nor JSON. Its properties raise
    UsageError for an unreadable file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB, decompressed if the file is gzip-compressed."""
        return self._bytes(HEAD)

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return self._text(MOST, "the maximum after decompression")

    @cached_property
    def json(self) -> JsonValue | None:
        """The JSON document; None unless the text begins like an object or an array, and not like a TOML file."""
        begin = self.head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if begin[:1] not in (b"{", b"[") or TOML.match(begin):
            return None
        try:
            compressed = self._is_compressed
            text = self._text(MOST_JSON, "the maximum of compressed JSON; decompress it") if compressed else self.text
            return JsonValue(json.loads(text))
        except MemoryError:
            raise UsageError(f"{self.path}: too large for the free memory") from None
        except json.JSONDecodeError as error:
            place = f"line {error.lineno}, column {error.colno}"
            raise UsageError(f"{self.path}: damaged JSON: {place}: {error.msg}") from None
        except RecursionError:
            raise UsageError(f"{self.path}: damaged JSON: nested too deeply") from None
        except ValueError:
            raise UsageError(f"{self.path}: damaged JSON: an integer of more than 64 bits") from None

    @cached_property
    def _is_compressed(self) -> bool:
        with open(self.path, "rb") as file:
            return file.read(2) == GZIP

    def _text(self, most: int, limit: str) -> str:
        try:
            data = self._bytes(most + 1)
        except MemoryError:
            raise UsageError(f"{self.path}: too large for the free memory") from None
        if len(data) > most:
            raise UsageError(f"{self.path}: larger than {most >> 20} MiB, {limit}")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise UsageError(f"{self.path}: line {line}: not UTF-8 text") from None

    def _bytes(self, most: int) -> bytes:
        if self.directory:
            return b""
        try:
            with open(self.path, "rb") as file:
                compressed = file.read(2) == GZIP
                file.seek(0)
                if not compressed:
                    return file.read(most)
                with gzip.GzipFile(fileobj=file) as opened:
                    return opened.read(most)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise UsageError(f"{self.path}: damaged gzip file: {error}") from None
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror or error}") from None
