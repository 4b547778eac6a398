"""Reset by dropping the kernel's caches."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from cbench.study.records import StoredFacts
from cbench.study.resets.reset import Reset, ResetContext, ResetError
from quiet import Reader, meminfo

DROP = "/proc/sys/vm/drop_caches"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachesReset(Reset):
    """Write back and drop the page cache, dentries and inodes (Documentation/admin-guide/sysctl/vm.rst).

    The kernel's own count, drop_pagecache in /proc/vmstat, confirms the reset.
    """

    kind: ClassVar[str] = "drop-caches"

    def obstacle(self, environment: Mapping[str, str], reader: Reader) -> str:
        if not reader.exists(DROP):
            return f"this kernel has no {DROP}"
        return "" if reader.access(DROP, os.W_OK) else f"{DROP} is not writable: dropping caches needs root"

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        reader = context.reader
        before, cached = _dropped(reader), meminfo(reader, "Cached")
        os.sync()
        try:
            with open(reader.open(DROP, os.O_WRONLY), "w") as file:
                file.write("3\n")
        except OSError as error:
            raise ResetError(f"{DROP}: {error.strerror}: dropping caches needs root") from None
        after = _dropped(reader)
        if before is not None and after == before:
            raise ResetError(
                f"{DROP} accepted the write, but the kernel dropped nothing (drop_pagecache in /proc/vmstat)"
            )
        return {"drops": after, "cached_kb_before": cached, "cached_kb_after": meminfo(reader, "Cached")}


def _dropped(reader: Reader) -> int | None:
    found = re.search(r"^drop_pagecache (\d+)$", reader.text("/proc/vmstat") or "", re.MULTILINE)
    return int(found[1]) if found else None
