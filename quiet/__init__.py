"""quiet: make a Linux host quiet, verify it, and restore every setting to its original value.

The names in `__all__` are the public API (docs/api.md). Each is imported at its first use; `import quiet` alone loads
no other module of the package.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # same name as in typing, which takes longer to load than this whole module
if TYPE_CHECKING:
    from quiet import console as _console
    from quiet import cpulist as _cpulist
    from quiet.cli.panel_group import PanelGroup as PanelGroup
    from quiet.console import check_savable as check_savable
    from quiet.console import emit as emit
    from quiet.console import emit_json as emit_json
    from quiet.console import enter as enter
    from quiet.console import one_line as one_line
    from quiet.console import printable as printable
    from quiet.console import raised_at as raised_at
    from quiet.console import save as save
    from quiet.console import say as say
    from quiet.console import table_html as table_html
    from quiet.cpulist import CpuSet as CpuSet
    from quiet.errors import Incomplete as Incomplete
    from quiet.errors import QuietError as QuietError
    from quiet.errors import Refused as Refused
    from quiet.errors import UsageError as UsageError
    from quiet.errors import did_you_mean as did_you_mean
    from quiet.host.host import Host as Host
    from quiet.host.proc import STEAL as STEAL
    from quiet.host.proc import cpu_ticks as cpu_ticks
    from quiet.host.proc import meminfo as meminfo
    from quiet.host.reader import Reader as Reader
    from quiet.kernel import config as _config
    from quiet.knobs import registry as _knobs
    from quiet.knobs.cpufreq import cpufreq_state as cpufreq_state
    from quiet.machine import cpu_selection as _cpu_selection
    from quiet.machine import facts as _facts
    from quiet.machine import virtualization as _virtualization
    from quiet.machine.affinity import join as join
    from quiet.machine.affinity import place as place
    from quiet.machine.affinity import reachable as reachable
    from quiet.machine.cpu_selection import CpuPartition as CpuPartition
    from quiet.machine.facts import Facts as Facts
    from quiet.machine.trusted_program import who_can_change as who_can_change
    from quiet.machine.virtualization import hypervisor as hypervisor
    from quiet.noise import call_nesting as _call_nesting
    from quiet.noise import clock as _clock
    from quiet.noise.budgets import parse_seconds as parse_seconds
    from quiet.noise.chains import chains_agree as chains_agree
    from quiet.noise.chains import unshared_ratio as unshared_ratio
    from quiet.noise.clock import Clock as Clock
    from quiet.noise.clock import moment as moment
    from quiet.noise.core_frequency import CHAIN_BODY as CHAIN_BODY
    from quiet.noise.core_frequency import CoreFrequency as CoreFrequency
    from quiet.noise.core_frequency import chain_facts as chain_facts
    from quiet.noise.core_frequency import core_frequency as core_frequency
    from quiet.noise.follow import Follower as Follower
    from quiet.noise.follow import Seen as Seen
    from quiet.record import redact_command_line as _redact_command_line
    from quiet.run.turn import isolated_turn as isolated_turn
    from quiet.settings import api as _api
    from quiet.settings import journal as _journal
    from quiet.settings import profile as _profile
    from quiet.settings.api import AppliedHost as AppliedHost
    from quiet.settings.api import applied as applied
    from quiet.settings.applied_state import AppliedState as AppliedState
    from quiet.settings.applied_state import TargetState as TargetState
    from quiet.settings.apply import Receipt as Receipt
    from quiet.settings.hold import HeldSettings as HeldSettings
    from quiet.settings.hold import begin_hold as begin_hold
    from quiet.settings.hold import end_hold as end_hold
    from quiet.settings.hold import hold_settings as hold_settings
    from quiet.settings.hold import overwritten as overwritten
    from quiet.settings.journal import isolated_cpus as isolated_cpus
    from quiet.settings.plan import Change as Change
    from quiet.settings.plan import Plan as Plan
    from quiet.settings.plan import Skipped as Skipped
    from quiet.settings.profile import Profile as Profile
    from quiet.settings.restore import Outcome as Outcome

    KNOBS = _knobs.BY_NAME
    exit_code_of = _console.ended
    format_cpus = _cpulist.format
    parse_cpus = _cpulist.parse
    parse_cpu_mask = _cpulist.parse_mask
    kernel_config = _config.running
    redacted_command_line = _redact_command_line.parameters
    parse_requested_cpus = _cpu_selection.parse_requested
    CPU_FOLDER = _facts.CPU
    virtualization = _virtualization.virtual
    CAUSE_FAULT = _call_nesting.FAULT
    CAUSE_THREAD = _call_nesting.THREAD
    CAUSE_WORK = _call_nesting.WORK
    ticks = _clock.now
    apply = _api.apply_profile
    plan = _api.plan_profile
    restore = _api.restore_host
    verify = _api.verify_profile
    applied_state = _journal.load
    bundled_profiles = _profile.bundled
    load_profile = _profile.load

_HOMES = {
    "cli.panel_group": "PanelGroup",
    "console": "check_savable emit emit_json ended=exit_code_of enter one_line printable raised_at save say table_html",
    "cpulist": "CpuSet format=format_cpus parse=parse_cpus parse_mask=parse_cpu_mask",
    "errors": "Incomplete QuietError Refused UsageError did_you_mean",
    "host.host": "Host",
    "host.proc": "STEAL cpu_ticks meminfo",
    "host.reader": "Reader",
    "kernel.config": "running=kernel_config",
    "knobs.cpufreq": "cpufreq_state",
    "knobs.registry": "BY_NAME=KNOBS",
    "machine.affinity": "join place reachable",
    "machine.cpu_selection": "CpuPartition parse_requested=parse_requested_cpus",
    "machine.facts": "CPU=CPU_FOLDER Facts",
    "machine.trusted_program": "who_can_change",
    "machine.virtualization": "hypervisor virtual=virtualization",
    "noise.budgets": "parse_seconds",
    "noise.call_nesting": "FAULT=CAUSE_FAULT THREAD=CAUSE_THREAD WORK=CAUSE_WORK",
    "noise.chains": "chains_agree unshared_ratio",
    "noise.clock": "Clock moment now=ticks",
    "noise.core_frequency": "CHAIN_BODY CoreFrequency chain_facts core_frequency",
    "noise.follow": "Follower Seen",
    "record.redact_command_line": "parameters=redacted_command_line",
    "run.turn": "isolated_turn",
    "settings.api": "AppliedHost applied apply_profile=apply plan_profile=plan restore_host=restore "
    "verify_profile=verify",
    "settings.applied_state": "AppliedState TargetState",
    "settings.apply": "Receipt",
    "settings.hold": "HeldSettings begin_hold end_hold hold_settings overwritten",
    "settings.journal": "isolated_cpus load=applied_state",
    "settings.plan": "Change Plan Skipped",
    "settings.profile": "Profile bundled=bundled_profiles load=load_profile",
    "settings.restore": "Outcome",
}
# the public name follows "=" if it differs from the name in the module
_NAMES = {
    name.rpartition("=")[2]: (f"quiet.{module}", name.partition("=")[0])
    for module, names in _HOMES.items()
    for name in names.split()
}
__all__ = [*_NAMES]  # noqa: PLE0604 - they are strings


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module 'quiet' has no attribute '{name}'")
    import importlib

    module, attribute = _NAMES[name]
    value: object = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
