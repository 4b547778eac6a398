"""Boot plans and applies for a profile, as the command line requests them."""

from __future__ import annotations

from quiet.boot import apply as applying
from quiet.boot import plan
from quiet.boot.apply import BootReceipt
from quiet.boot.plan import BootPlan, BootRequest
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.settings.profile import Profile


def request(reader: Reader, profile: Profile, cpus: str | None = None) -> BootRequest:
    return BootRequest(profile.name, profile.boot, profile.choose(Facts(reader), cpus))


def make(reader: Reader, profile: Profile, cpus: str | None = None, loader: str | None = None) -> BootPlan:
    return plan.make(reader, request(reader, profile, cpus), loader)


def apply(host: Host, profile: Profile, cpus: str | None = None, loader: str | None = None) -> BootReceipt:
    return applying.apply(host, request(host, profile, cpus), loader)
