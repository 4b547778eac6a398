"""Whether the samples that an experiment counts are the same thing in all of its treatments."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.screen.config import treatments
from cbench.screen.config.model import NO_PROFILER, Response, Screen, Treatment
from cbench.study.instruments import perf_record
from cbench.study.instruments.instrument import SAMPLES
from cbench.study.instruments.perf_record import Sampling
from cbench.toml_table import TomlTable
from quiet.errors import UsageError


def check(screen: Screen, found: Sequence[Treatment], whole: TomlTable) -> None:
    """Raises UsageError where a level contradicts what a response asks for, or one treatment another."""
    if not any(each.metric.source == SAMPLES for each in screen.responses):
        return
    first: dict[str, tuple[Treatment, Sampling]] = {}
    for treatment in found:
        for workload in screen.workloads:
            counted = [
                each for each in treatments.obtainable(screen, treatment, workload) if each.metric.source == SAMPLES
            ]
            if not counted:
                continue
            try:
                how = treatments.sampled(screen, treatment, workload)
            except UsageError as error:
                raise whole.error("response", str(error)) from None
            for response in counted:
                place = ("response", screen.responses.index(response), "read")
                if wrong := _contradiction(response, how):
                    raise whole.error_at(place, f"{treatment.name} {wrong}")
                assert how is not None
                other, before = first.setdefault(response.name, (treatment, how))
                if _counts(before) != _counts(how):
                    raise whole.error_at(
                        place,
                        f"{other.name} samples {_counts(before)} and {treatment.name} {_counts(how)}: their numbers "
                        "cannot be compared",
                    )


def _contradiction(response: Response, how: Sampling | None) -> str:
    """What a treatment does that the response says otherwise; "" for nothing."""
    if how is None:
        return f'is not sampled (profiler = "{NO_PROFILER}"), which {response.name} asks for: leave its call graph out'
    said = perf_record.named(response.metric.detail)
    asked = perf_record.parse(response.metric.detail)
    event = "event" in said and asked.event != how.event
    rate = "rate" in said and (asked.hz, asked.period) != (how.hz, how.period)
    return f"samples {_counts(how)} and {response.name} asks for {_counts(asked)}" if event or rate else ""


def _counts(how: Sampling) -> str:
    """What a sample is: "cpu-clock at 1,000 Hz"."""
    return how.words.rpartition(", ")[0]
