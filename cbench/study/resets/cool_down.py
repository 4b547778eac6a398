"""Reset by waiting until the host is cool enough, fast enough, or both."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from cbench.study.records import StoredFacts
from cbench.study.resets.reset import Reset, ResetContext, ResetError
from cbench.study.toml_table import TomlTable
from quiet import Reader

PAUSE_S = 0.2
ZONES, CHIPS, POLICIES = "/sys/class/thermal", "/sys/class/hwmon", "/sys/devices/system/cpu/cpufreq"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDownReset(Reset):
    """Waits until no sensor is hotter than `celsius` and no CPU is slower than `khz` (None: no limit)."""

    kind: ClassVar[str] = "cool-down"
    keys: ClassVar[tuple[str, ...]] = ("celsius", "khz")
    example: ClassVar[str] = """\
# celsius = 50            # kind cool-down: wait until no sensor is hotter than this, in degrees Celsius
# khz = 3000000           # kind cool-down: wait until no CPU is slower than this, in kHz
"""
    celsius: float | None = None
    khz: int | None = None

    @classmethod
    def parse(cls, table: TomlTable, timeout_s: float, settle_s: float) -> Self:
        celsius = table.number("celsius", None, 0, 150) if table.has("celsius") else None
        khz = table.whole("khz", None, 1, 10**8) if table.has("khz") else None
        if celsius is None and khz is None:
            raise table.error(
                "celsius", "is missing: write celsius, the temperature to wait for, or khz, the frequency to wait for"
            )
        return cls(celsius=celsius, khz=khz, timeout_s=timeout_s, settle_s=settle_s)

    def obstacle(self, environment: Mapping[str, str], reader: Reader) -> str:
        return self._missing(hottest_celsius(reader), slowest_khz(reader))

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        begun = time.monotonic()
        while True:
            hottest, slowest = hottest_celsius(context.reader), slowest_khz(context.reader)
            if missing := self._missing(hottest, slowest):
                raise ResetError(missing)
            cool = self.celsius is None or (hottest is not None and hottest <= self.celsius)
            fast = self.khz is None or (slowest is not None and slowest >= self.khz)
            if cool and fast:
                return {"celsius": hottest, "khz": slowest, "seconds": time.monotonic() - begun}
            if time.monotonic() - begun > self.timeout_s:
                missed = [] if cool else [f"{hottest:g} degrees Celsius (required: at most {self.celsius:g})"]
                missed += [] if fast else [f"{slowest:,} kHz (required: at least {self.khz:,})"]
                raise ResetError(f"still at {' and '.join(missed)} after {self.timeout_s:g} s")
            time.sleep(min(PAUSE_S, self.timeout_s))

    def _missing(self, hottest: float | None, slowest: int | None) -> str:
        """An error message if this host does not report a quantity that the reset requires; otherwise ""."""
        if self.celsius is not None and hottest is None:
            return f"this host reports no temperature ({ZONES}, {CHIPS})"
        if self.khz is not None and slowest is None:
            return f"this host reports no frequency ({POLICIES}: no cpufreq driver)"
        return ""


def hottest_celsius(reader: Reader) -> float | None:
    """The highest temperature of all sensors in degrees Celsius (Documentation/driver-api/thermal,
    hwmon/sysfs-interface.rst); None if there are no sensors.
    """
    paths = [f"{ZONES}/thermal_zone{number}/temp" for number in reader.numbered(ZONES, "thermal_zone")]
    for number in reader.numbered(CHIPS, "hwmon"):
        chip = f"{CHIPS}/hwmon{number}"
        paths += [
            f"{chip}/{name}" for name in reader.names(chip) if name.startswith("temp") and name.endswith("_input")
        ]
    return max((each / 1000 for each in _numbers(reader, paths)), default=None)


def slowest_khz(reader: Reader) -> int | None:
    """The lowest current frequency of all CPUs in kHz, as the cpufreq driver reports it; None if there is no driver."""
    return min(
        _numbers(reader, [f"{POLICIES}/policy{n}/scaling_cur_freq" for n in reader.numbered(POLICIES, "policy")]),
        default=None,
    )


def _numbers(reader: Reader, paths: list[str]) -> list[int]:
    numbers = []
    for path in paths:
        with contextlib.suppress(ValueError):
            numbers.append(int(reader.text(path) or ""))
    return numbers
