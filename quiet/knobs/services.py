"""Define knobs for background services: systemd units that may be stopped temporarily, and units that never may.

Sources: systemctl(1), systemd.unit(5), and the manual of each unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from quiet.errors import UsageError
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip
from quiet.targets import systemd, value_types

ALL_UNITS = "unit:*"


class Service(NamedTuple):
    """Units that belong together; a unit that starts another comes first. Names are separated by spaces.

    `jobs`: units that they start, which may finish; `held`: the names of the processes to freeze, unless programs wait
    for them (tuned on every host, the others only on hosts without systemd).
    """

    units: str
    why: str
    jobs: str = ""
    held: str = ""


# Jobs of packages, firmware, scrubbers and indexers: no user waits for them, and they start again after the restore.
QUIET = (
    Service(
        "apt-daily.timer apt-daily-upgrade.timer",
        "looks for packages, downloads and installs them at any time of the day",
        "apt-daily.service apt-daily-upgrade.service",
    ),
    Service(
        "dnf-makecache.timer dnf5-makecache.timer dnf-automatic.timer dnf-automatic-install.timer "
        "dnf-automatic-download.timer dnf5-automatic.timer reflector.timer paccache.timer pkgfile-update.timer "
        "archlinux-keyring-wkd-sync.timer nix-gc.timer",
        "refreshes package lists, or installs packages",
        "dnf-makecache.service dnf5-makecache.service dnf-automatic.service dnf-automatic-install.service "
        "dnf-automatic-download.service dnf5-automatic.service nix-gc.service paccache.service",
    ),
    Service(
        "packagekit.service packagekit-offline-update.service",
        "serves desktops over D-Bus, and reads all package lists",
    ),
    Service(
        "snapd.snap-repair.timer snapd.socket snapd.service snapd.seeded.service",
        "refreshes snaps four times a day, and on request",
    ),
    Service(
        "fwupd-refresh.timer fwupd.service",
        "looks for firmware updates; access to devices may cause system management interrupts",
        "fwupd-refresh.service",
    ),
    Service(
        "man-db.timer mlocate.timer plocate-updatedb.timer updatedb.timer mlocate-updatedb.timer",
        "scans all files",
        "man-db.service mlocate.service plocate-updatedb.service updatedb.service mlocate-updatedb.service",
    ),
    Service(
        "fstrim.timer e2scrub_all.timer xfs_scrub_all.timer mdcheck_start.timer mdcheck_continue.timer "
        "raid-check.timer btrfs-scrub.timer btrfs-balance.timer btrfs-defrag.timer btrfs-trim.timer",
        "reads, checks or trims whole file systems and disks",
        "fstrim.service e2scrub_all.service xfs_scrub_all.service mdcheck_start.service mdcheck_continue.service "
        "raid-check.service btrfs-scrub.service btrfs-balance.service btrfs-defrag.service btrfs-trim.service",
    ),
    Service(
        "transactional-update.timer bootc-fetch-apply-updates.timer rpm-ostreed-automatic.timer zincati.service",
        "fetches a new version of the whole system, and may reboot into it",
        "transactional-update.service bootc-fetch-apply-updates.service rpm-ostreed-automatic.service",
    ),
    Service(
        "snapper-timeline.timer snapper-cleanup.timer",
        "takes and removes snapshots of file systems",
        "snapper-timeline.service snapper-cleanup.service",
    ),
    Service("esm-cache.service apt-news.service", "fetches package news whenever apt is used"),
)
# Services that users would miss: their own scheduled jobs, printing, Bluetooth, reports and monitoring.
ALL = (
    Service(
        "anacron.timer anacron.service cron.service crond.service cronie.service fcron.service bcron.service",
        "starts jobs of users and packages at the start of a minute",
        held="cron crond fcron anacron",
    ),
    Service("atd.service", "starts jobs when they are due", held="atd"),
    Service(
        "logrotate.timer systemd-tmpfiles-clean.timer dpkg-db-backup.timer shadow.timer unbound-anchor.timer",
        "rotates logs, removes old files and refreshes backups once a day",
        "logrotate.service systemd-tmpfiles-clean.service dpkg-db-backup.service",
    ),
    Service(
        "motd-news.timer update-notifier-download.timer update-notifier-motd.timer ua-timer.timer "
        "apport-autoreport.timer apport-autoreport.path whoopsie.path insights-client.timer",
        "fetches news or sends reports",
        "motd-news.service update-notifier-download.service update-notifier-motd.service ua-timer.service",
    ),
    Service("smartd.service smartmontools.service", "checks the health of every disk each half hour", held="smartd"),
    Service(
        "sysstat-collect.timer sysstat-summary.timer sysstat-rotate.timer",
        "collects statistics of the whole host every ten minutes",
    ),
    Service("ksmtuned.service", "switches the merging of equal pages on again", held="ksmtuned"),
    Service(
        "cups.path cups.socket cups.service cups-browsed.service",
        "looks for printers; printing does not work until the restore",
    ),
    Service(
        "avahi-daemon.socket avahi-daemon.service",
        "answers every name query on the network; names in .local do not resolve until the restore",
    ),
    Service("ModemManager.service", "polls modems; a mobile connection ends"),
    Service("bluetooth.service", "polls radios; a Bluetooth keyboard or mouse does not work until the restore"),
    Service("geoclue.service iio-sensor-proxy.service colord.service", "serves desktops over D-Bus"),
    Service(
        "netdata.service telegraf.service collectd.service zabbix-agent.service zabbix-agent2.service "
        "prometheus-node-exporter.service node_exporter.service munin-node.service pmcd.service pmlogger.service "
        "pmie.service datadog-agent.service",
        "collects statistics of the whole host every few seconds; monitoring of this host has a gap until the restore",
        held="netdata telegraf collectd munin-node node_exporter",
    ),
    Service(
        "rasdaemon.service",
        "keeps kernel trace events enabled; hardware errors are not recorded until the restore",
        held="rasdaemon",
    ),
    Service(
        "walinuxagent.service waagent.service google-guest-agent.service google-guest-agent-manager.service "
        "google-osconfig-agent.service",
        "polls the cloud's servers every few seconds; the cloud's console does not reach this host until the restore",
    ),
)
# Services that are critical or do work for users: the reason, and the prefixes of their names.
NEVER = {
    "remote access depends on it": (
        "ssh dropbear getty serial-getty tailscaled wg-quick openvpn amazon-ssm-agent snap.amazon-ssm-agent"
    ),
    "everything else needs it": "dbus",
    "a part of systemd itself": "systemd-",
    "it contains the first process": "init.scope",
    "a login session": "user@ session- display-manager gdm sddm lightdm",
    "the network is lost without it": "network NetworkManager wpa_supplicant iwd connman dhc ifup",
    "other programs wait for its answers": "polkit",
    "the kernel's audit needs it, and it refuses to be stopped": "auditd",
    "it guards the network": (
        "nftables iptables ip6tables arptables ebtables netfilter-persistent firewalld ufw shorewall ferm pve-firewall "
        "SuSEfirewall2 opensnitch"
    ),
    "it guards this host": (
        "apparmor fail2ban crowdsec ossec wazuh falco sshguard suricata snort samhain aide tripwire osquery auditbeat "
        "clamav psad portsentry"
    ),
    "the clock drifts without it": "chron ntp openntpd ptp4l phc2sys timemaster",
    "it provides user names and logins": "sssd winbind nslcd nscd slapd named bind9 unbound. dnsmasq",
    "disks may be lost without it": "multipathd iscsi lvm2-",
    "files may be lost without it": "nfs- rpcbind",
    "it waits for the shutdown, treats a stop as the shutdown, and may then install packages": "unattended-upgrades",
    "it runs users' containers or virtual machines: stop these first, then stop the unit yourself": (
        "docker containerd podman crio kubelet libvirt virtqemud lxd"
    ),
}
_EXCEPT = ("systemd-tmpfiles-clean.timer",)
_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]+")  # systemd.unit(5)
_SUFFIXES = (".service", ".timer", ".socket", ".path")
HELD = "inactive masked"
REFUSALS = {
    16: "a unit that must not be stopped requires it, and would stop with it",
    2: "systemctl was not found",
}


def check_names(stop: tuple[str, ...], keep: tuple[str, ...]) -> None:
    """Check the units in a profile's services.stop and services.keep. Raises UsageError, which names the key."""
    for key, names in (("stop", stop), ("keep", keep)):
        for name in names:
            if not name.endswith(_SUFFIXES) or not _NAME.fullmatch(name):
                ends = ", ".join(_SUFFIXES)
                raise UsageError(
                    f"key 'services.{key}': {name!r} is not a unit name; a unit name ends with one of {ends}"
                )
    for name in stop:
        if reason := critical(name):
            raise UsageError(f"key 'services.stop': {name} is never stopped: {reason}; remove it from the list")
        if name in keep:
            raise UsageError(f"keys 'services.stop' and 'services.keep' both list {name}; remove it from one of them")


def critical(name: str) -> str:
    """Why a unit is never stopped; "" if it may be stopped."""
    reasons = (why for why, starts in NEVER.items() if name.startswith(tuple(starts.split())))
    return next(reasons, "") if name not in _EXCEPT else ""


def _services(context: RuleContext) -> RuleResult:
    table = QUIET + ALL if context.choice == "all" else QUIET
    keep = context.names.get("keep", ())
    if not systemd.booted(context.facts.reader):
        results: list[DesiredValue | Skip] = [
            Skip(f"unit:{name}", "no systemd") for name in context.names.get("stop", ())
        ]
        results += processes(context, [each for each in table if not set(each.units.split()) & set(keep)])
        yield from results or [Skip(ALL_UNITS, "no systemd, and none of the known background services runs")]
        return
    own = [Service(name, "the profile lists it (services.stop)") for name in context.names.get("stop", ())]
    results = list(hold(context, (*table, *own), keep))
    yield from results or [Skip(ALL_UNITS, "no known background service is running or could be started")]


def hold(context: RuleContext, table: Iterable[Service], keep: Iterable[str] = ()) -> RuleResult:
    """Stop and mask every unit of a table that is running or could be started, except the units in `keep`.

    Yields a skip for a unit that could not be started again, and for a job that is running.
    """
    reader = context.facts.reader
    folders = systemd.places(reader)
    keep = set(keep)
    for service in table:
        for unit in service.units.split():
            if unit in keep:
                continue
            current = systemd.state(reader, unit, folders)
            if current is None or _alias(context, unit, folders):
                continue
            words = current.split()
            if "active" in words and "masked" in words:
                yield Skip(f"unit:{unit}", "it runs although it is masked: once stopped, it could not be started again")
            elif "active" in words or not {"masked", "disabled"} & set(words):
                yield DesiredValue(f"unit:{unit}", HELD, service.why, current=current)
        for job in service.jobs.split():
            if job not in keep and systemd.runs(reader, job):
                yield Skip(f"unit:{job}", "it is running now and is not interrupted: wait until it ends")


def _alias(context: RuleContext, name: str, folders: list[str]) -> bool:
    """Whether a unit's file is an alias of another unit, which must be stopped instead."""
    reader = context.facts.reader
    target = next(filter(None, (reader.link(f"{folder}/{name}") for folder in folders)), None)
    return target is not None and target.rpartition("/")[2] not in (name, systemd.template(name), "null")


def processes(context: RuleContext, table: Iterable[Service]) -> RuleResult:
    """Freeze the processes of a table. They are not ended: quiet could not restart them with their arguments."""
    known = {name: service.why for service in table for name in service.held.split()}
    names = {task.tid: task.comm for task in context.facts.tasks if task.comm in known}
    leaders = set(context.facts.reader.numbered("/proc")) if names else set()
    for pid in sorted(names.keys() & leaders):
        yield DesiredValue(f"process:{pid}", "stopped", known[names[pid]], label=names[pid], kind=value_types.TEXT)


KNOBS = (
    Knob(
        name="services",
        gain="no other tasks",
        noticed="package updates and other background jobs wait for the restore",
        title="background services and timers",
        why="a job that starts during a measurement competes for caches, memory bandwidth and disks",
        doc="systemctl(1), mask --runtime; systemd.unit(5)",
        rule=_services,
        kind=value_types.UNIT,
        choices=("quiet", "all", "leave"),
        targets="unit:NAME of every known timer and service for packages, firmware, scrubbing and indexing (with "
        "'all' also those that users notice: cron, at, printing, Bluetooth, monitoring), and those of the "
        "profile's services.stop, except those of services.keep; process:PID on hosts without systemd",
        recheck_on="service",
        refusals=REFUSALS,
        restore_last=True,
        risk="package updates wait until the restore, and timers that are due start right after it; with 'all' "
        "also every cron and at job of every user",
    ),
)
