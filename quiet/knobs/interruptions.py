"""Define knobs for activities that stop or interrupt every CPU: console output, code patching, RCU and drivers.

Sources: admin-guide/sysctl/kernel.rst (printk), fb/fbcon.rst; staging/static-keys.rst, net/core/dev.c
(netstamp_needed_key, net_dev_late_init), x86 text_poke_bp; admin-guide/kernel-parameters.txt (rcupdate.*);
hwmon/dell-smm-hwmon.rst, driver-api/ipmi.rst, admin-guide/thermal/intel_powerclamp.rst.
"""

from __future__ import annotations

from quiet.host.hold import TIMESTAMPS
from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, Skip, at_least, one_file
from quiet.targets import value_types

_PRINTK = "/proc/sys/kernel/printk"
_BLINK = "/sys/class/graphics/fbcon/cursor_blink"
_LEVEL = 1  # only KERN_EMERG is more severe
_KERNEL = "/sys/kernel/"
_TASKS_IPI = "/sys/module/rcupdate/parameters/rcu_task_ipi_delay"
_PARAMETERS = "admin-guide/kernel-parameters.txt"
_LATE = 5000  # jiffies: 5 to 50 seconds, depending on HZ
# the module and its effect
_SUGGESTIONS = {
    "dell_smm_hwmon": "each read of the fan speeds enters the firmware (SMM), which stops every CPU for that time",
    "iTCO_wdt": "pings the chipset's watchdog, whose expiry is a firmware interrupt (SMI)",
    "sp5100_tco": "pings the chipset's watchdog",
    "ipmi_si": "without an interrupt its thread kipmi polls the management controller; see kipmid_max_busy_us",
    "intel_powerclamp": "can force every CPU to be idle for a share of the time",
    "acpi_pad": "forces CPUs to be idle when the firmware asks for it",
}


def _loglevel(context: RuleContext) -> RuleResult:
    current = context.text(_PRINTK)
    # one file with four numbers: only the first is ours, but a write sets all four
    levels = (current or "").split()
    if current is None or len(levels) != 4 or not levels[0].isdecimal():
        yield Skip(f"file:{_PRINTK}", NOT_HERE)
        return
    level = str(_LEVEL) if context.choice == "quiet" else context.choice
    if context.choice != "quiet" or int(levels[0]) > _LEVEL:
        yield DesiredValue(f"file:{_PRINTK}", "\t".join([level, *levels[1:]]), current=current)


def _blink(context: RuleContext) -> RuleResult:
    if context.text(_BLINK) in (None, "-1"):  # -1: the driver exists, but no screen uses it
        yield Skip(f"file:{_BLINK}", "no console on a framebuffer")
    else:
        yield DesiredValue(f"file:{_BLINK}", "0")


def _timestamps(context: RuleContext) -> RuleResult:
    if context.text("/proc/sys/net/core/somaxconn") is None:
        yield Skip(f"held:{TIMESTAMPS}", "this kernel has no network")
    elif context.facts.nohz_full and context.facts.release >= (6, 9):
        yield Skip(f"held:{TIMESTAMPS}", "with nohz_full= the kernel itself keeps time stamps on since Linux 6.9")
    else:
        yield DesiredValue(f"held:{TIMESTAMPS}", "1", creates=True)


def _suggest(context: RuleContext) -> RuleResult:
    for name, reason in _SUGGESTIONS.items():
        # a built-in driver has no state, and cannot be unloaded
        if context.facts.reader.exists(f"/sys/module/{name}/initstate"):
            yield Skip(f"module:{name}", f"{reason}; `modprobe -r {name}` would stop it; quiet never unloads a module")


KNOBS = (
    Knob(
        name="console.loglevel",
        noticed="the console shows emergencies only; dmesg has every message",
        title="kernel messages on the console",
        why="to print a message on a serial console, a CPU sends it character by character for milliseconds",
        doc="admin-guide/sysctl/kernel.rst (printk), core-api/printk-basics.rst",
        rule=_loglevel,
        kind=value_types.NUMBERS,
        numeric=True,
        targets=f"file:{_PRINTK}, its first number",
        risk="until the restore the console shows only emergencies; dmesg and the journal still have every message",
    ),
    Knob(
        name="console.blink",
        title="the blinking cursor of a framebuffer console",
        why="a work item draws it five times a second, on a workqueue that no CPU mask affects",
        doc="fb/fbcon.rst; drivers/video/fbdev/core/fbcon.c (cursor_blink)",
        rule=_blink,
        kind=value_types.NUMBER,
        targets=f"file:{_BLINK}",
        drifts=True,  # the value shows whether the next blink is due; switching consoles changes it
    ),
    Knob(
        name="static_keys.timestamps",
        noticed="every received packet gets a time stamp",
        title="packet time stamps always on",
        why="when the first socket requests time stamps, as NTP clients do, the kernel patches code and stops all CPUs",
        doc="staging/static-keys.rst, networking/timestamping.rst",
        rule=_timestamps,
        kernels="on hosts with nohz_full= until 6.8 (since 6.9 the kernel itself keeps time stamps on)",
        refusals={95: "a recorded tree has no sockets"},
        path="SO_TIMESTAMPING of a socket",
        targets=f"held:{TIMESTAMPS}, a socket of a small process that lives as long as the profile",
        risk="every packet that arrives gets a time stamp, even without a request",
    ),
    Knob(
        name="rcu.expedited",
        title="expedited RCU grace periods for all requests",
        why="an expedited grace period interrupts every CPU that is in the kernel or busy",
        doc=f"{_PARAMETERS} (rcupdate.rcu_expedited)",
        **one_file(f"{_KERNEL}rcu_expedited", "0"),
    ),
    Knob(
        name="rcu.normal",
        noticed="removing network devices, cgroups and modules takes longer",
        title="no expedited RCU grace periods at all",
        why="with 1, a request for an expedited grace period waits for a normal one, which interrupts "
        "only CPUs that delay it",
        doc=f"{_PARAMETERS} (rcupdate.rcu_normal)",
        **one_file(f"{_KERNEL}rcu_normal", "1"),
        risk="network devices, cgroups and modules take longer to remove until the restore",
    ),
    Knob(
        name="rcu.tasks_ipi",
        title="jiffies before RCU Tasks Trace interrupts a running task",
        why="unloading a BPF program interrupts every CPU whose task has not scheduled within this time",
        doc=f"{_PARAMETERS} (rcupdate.rcu_task_ipi_delay)",
        **at_least(_TASKS_IPI, _LATE, "this kernel does not interrupt tasks for RCU Tasks Trace (none since 7.0)"),
        kernels="until 6.19",
        risk="detaching BPF programs may take that long while a CPU never leaves user space",
    ),
    Knob(
        name="modules",
        title="kernel modules known to interrupt CPUs",
        why="some drivers take time from every CPU, and no mask or setting stops them",
        doc="hwmon/dell-smm-hwmon.rst, driver-api/ipmi.rst, admin-guide/thermal/intel_powerclamp.rst, modprobe(8)",
        rule=_suggest,
        choices=("suggest", "leave"),
        targets="none: these modules are reported as left alone if they are loaded, and stay loaded",
        path="/sys/module",
    ),
)
