"""What the measuring process and its parent say to each other: one JSON object a line.

Parent: a job, then "go" or "enough" after each chunk. Worker: ready, warm..., chunk..., done, or error. The worker
blocks after every message until the parent answers, so the two never run at once, not even on a single CPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cbench.model import PLAIN, Counter, Layout, Ready, Settling, Trial, TrialCause

Message = Mapping[str, Any]

GO, ENOUGH = b"go\n", b"enough\n"


@dataclass(frozen=True, slots=True)
class Job:
    """What the worker is to measure.

    `trials`: at most so many. `warmup` None: until settled. `rewarm`: n of the untimed call. `events` None: what
    suits the counter.
    """

    function: str
    library: str
    params: Mapping[str, int]
    rewarm: int
    cpu: int
    trials: int
    warmup: int | None
    counter: str
    events: tuple[str, ...] | None = None
    enters_kernel: bool | None = False
    own_faults: int = 0
    layout: Layout = PLAIN


def encode(kind: str, **content: object) -> bytes:
    return json.dumps({"event": kind, **content}, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    message: Message = json.loads(line)
    return message


def encode_job(job: Job) -> bytes:
    return encode("job", **asdict(job))


def decode_job(line: bytes) -> Job:
    content = dict(decode(line))
    del content["event"]
    content["events"] = None if content["events"] is None else tuple(content["events"])
    content["layout"] = Layout(**content["layout"])
    return Job(**content)


def pack_trial(trial: Trial) -> list[object]:
    return [
        trial.value,
        trial.output,
        [(cause.kind, cause.name, cause.count) for cause in trial.causes],
        trial.context_switches,
        trial.page_faults,
        dict(trial.interrupts),
        trial.migrated,
        trial.valid,
        trial.begin,
        trial.end,
        dict(trial.counts),
        trial.kernel,
    ]


def unpack_trial(packed: list[Any]) -> Trial:
    value, output, causes, *rest = packed
    return Trial(value, output, tuple(TrialCause(*cause) for cause in causes), *rest)


def unpack_counter(content: Mapping[str, Any]) -> Counter:
    return Counter(**{**content, "others": tuple(content["others"]), "baseline": tuple(content["baseline"])})


def unpack_ready(message: Message) -> Ready:
    content = {key: value for key, value in message.items() if key not in ("event", "counter")}
    return Ready(unpack_counter(message["counter"]), **content)


def unpack_settling(content: Mapping[str, Any]) -> Settling:
    return Settling(tuple(content["values"]), tuple(content["mispredictions"]), content["settled"])
