"""Resets of what the kernel holds: caches, and heat and frequency. What they read lies under a root."""

from __future__ import annotations

import contextlib
import os
import time

from cbench.study.model import Reset
from cbench.study.must import Facts, ResetError
from quiet.host.reader import Reader

DROP = "/proc/sys/vm/drop_caches"
PAUSE_S = 0.2
ZONES, CHIPS, POLICIES = "/sys/class/thermal", "/sys/class/hwmon", "/sys/devices/system/cpu/cpufreq"


class ByCaches:
    """Page cache, dentries and inodes are written back and dropped (Documentation/admin-guide/sysctl/vm.rst).

    That it was done is seen in the kernel's own count of it, drop_pagecache of /proc/vmstat.
    """

    reboots = False

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader or Reader()

    def reset(self, run: int) -> Facts:
        before, cached = self._dropped(), self._cached()
        os.sync()
        try:
            with open(self._reader.root + DROP, "w") as file:
                file.write("3\n")
        except OSError as error:
            raise ResetError(f"{DROP}: {error.strerror}: dropping caches needs root") from None
        after = self._dropped()
        if before is not None and after == before:
            raise ResetError(f"{DROP} took the order, but the kernel has dropped nothing (drop_pagecache in vmstat)")
        return {"drops": after, "cached_kb_before": cached, "cached_kb_after": self._cached()}

    def _dropped(self) -> int | None:
        return _field(self._reader.text("/proc/vmstat"), "drop_pagecache")

    def _cached(self) -> int | None:
        return _field(self._reader.text("/proc/meminfo"), "Cached:")


class ByCooling:
    """Wait until the host is as cool, or as fast, as wanted."""

    reboots = False

    def __init__(self, reset: Reset, reader: Reader | None = None) -> None:
        self._reset, self._reader = reset, reader or Reader()

    def reset(self, run: int) -> Facts:
        wanted, begun = self._reset, time.monotonic()
        while True:
            hottest, slowest = hottest_celsius(self._reader), slowest_khz(self._reader)
            if missing := _missing(wanted, hottest, slowest):
                raise ResetError(missing)
            cool = wanted.celsius is None or (hottest is not None and hottest <= wanted.celsius)
            fast = wanted.khz is None or (slowest is not None and slowest >= wanted.khz)
            if cool and fast:
                return {"celsius": hottest, "khz": slowest, "seconds": time.monotonic() - begun}
            if time.monotonic() - begun > wanted.timeout_s:
                missed = [] if cool else [f"{hottest:g} degrees Celsius, {wanted.celsius:g} are wanted"]
                missed += [] if fast else [f"{slowest:,} kHz, {wanted.khz:,} are wanted"]
                raise ResetError(f"after {wanted.timeout_s:g} s still {' and '.join(missed)}")
            time.sleep(min(PAUSE_S, wanted.timeout_s))


def no_drops(_wanted: Reset, reader: Reader) -> str:
    """Why caches cannot be dropped here; nothing where they may be."""
    path = reader.root + DROP
    if not os.path.exists(path):
        return f"this kernel has no {DROP}"
    return "" if os.access(path, os.W_OK) else f"{DROP} is not writable: dropping caches needs root"


def no_sensor(wanted: Reset, reader: Reader) -> str:
    """Which of the things to wait for this host never tells; nothing where it tells all of them."""
    return _missing(wanted, hottest_celsius(reader), slowest_khz(reader))


def _missing(wanted: Reset, hottest: float | None, slowest: int | None) -> str:
    if wanted.celsius is not None and hottest is None:
        return f"this host tells no temperature ({ZONES}, {CHIPS})"
    if wanted.khz is not None and slowest is None:
        return f"this host tells no frequency ({POLICIES}: no cpufreq driver)"
    return ""


def hottest_celsius(reader: Reader) -> float | None:
    """Of all sensors (Documentation/driver-api/thermal, hwmon/sysfs-interface.rst: millidegrees); None without any."""
    paths = [f"{ZONES}/thermal_zone{number}/temp" for number in reader.numbered(ZONES, "thermal_zone")]
    for number in reader.numbered(CHIPS, "hwmon"):
        chip = f"{CHIPS}/hwmon{number}"
        paths += [
            f"{chip}/{name}" for name in reader.names(chip) if name.startswith("temp") and name.endswith("_input")
        ]
    return max((each / 1000 for each in _numbers(reader, paths)), default=None)


def slowest_khz(reader: Reader) -> int | None:
    """Of all CPUs, as the cpufreq driver tells it; None without one."""
    return min(
        _numbers(reader, [f"{POLICIES}/policy{n}/scaling_cur_freq" for n in reader.numbered(POLICIES, "policy")]),
        default=None,
    )


def _numbers(reader: Reader, paths: list[str]) -> list[int]:
    found = []
    for path in paths:
        with contextlib.suppress(ValueError):
            found.append(int(reader.text(path) or ""))
    return found


def _field(text: str | None, name: str) -> int | None:
    for line in (text or "").splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    return None
