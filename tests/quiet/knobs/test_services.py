"""Units by their files: what runs, what is masked and enabled, what a profile may stop, and when it refuses a rival."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from quiet.errors import Refused, UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.knobs import rivals, services
from quiet.machine.facts import Facts
from quiet.settings.apply import apply
from quiet.settings.engine import Write, settle
from quiet.settings.profile import check
from quiet.settings.status import status
from quiet.targets import registry, systemd, value_types
from quiet.targets.target_type import TargetType
from tests.quiet.commands import Quiet
from tests.trees import contents, machine, plant

UNIT = "lib/systemd/system/one.service"
INSTALL = "[Service]\n[Install]\nWantedBy=multi-user.target"
LINK = "etc/systemd/system/multi-user.target.wants/one.service"
RUNS = "sys/fs/cgroup/system.slice/one.service/cgroup.procs"


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, None),
        ({UNIT: "[Service]"}, "inactive static"),
        ({UNIT: INSTALL}, "inactive disabled"),
        ({UNIT: INSTALL, LINK: INSTALL}, "inactive enabled"),
        ({UNIT: INSTALL, LINK: INSTALL, RUNS: "1"}, "active enabled"),
        ({UNIT: INSTALL, "run/systemd/system/one.service": ""}, "inactive disabled masked"),
        ({UNIT: "", "etc/systemd/system/one.service": INSTALL}, "inactive disabled"),
        ({UNIT: INSTALL, LINK: INSTALL, "run/systemd/system.control/one.service": ""}, "inactive enabled masked"),
        ({RUNS: "1"}, "active"),
    ],
)
def test_a_units_state_is_read_from_its_files(files: dict[str, str], state: str | None, tmp_path: Path) -> None:
    assert registry.get(Reader(str(plant(tmp_path, files))), "unit:one.service") == state


def test_a_link_to_nothing_is_a_mask(tmp_path: Path) -> None:
    plant(tmp_path, {UNIT: INSTALL, "etc/systemd/system/": ""})
    (tmp_path / "etc/systemd/system/one.service").symlink_to("/dev/null")
    assert registry.get(Reader(str(tmp_path)), "unit:one.service") == "inactive disabled masked"


def test_an_instance_has_its_templates_file_and_the_slice_of_its_template(tmp_path: Path) -> None:
    inner = "sys/fs/cgroup/system.slice/system-my\\x2djob.slice/my-job@a.service/cgroup.procs"
    plant(tmp_path, {"lib/systemd/system/my-job@.service": INSTALL, inner: "1"})
    assert registry.get(Reader(str(tmp_path)), "unit:my-job@a.service") == "active disabled"


def test_a_timer_without_processes_is_presumed_active_when_it_is_enabled(tmp_path: Path) -> None:
    link = "etc/systemd/system/multi-user.target.wants/one.timer"
    plant(tmp_path, {"lib/systemd/system/one.timer": INSTALL, link: INSTALL})
    assert registry.get(Reader(str(tmp_path)), "unit:one.timer") == "active enabled"


def test_a_second_name_of_a_unit_is_recognized_by_its_link(tmp_path: Path) -> None:
    plant(tmp_path, {"run/systemd/system/": "", "lib/systemd/system/smartmontools.service": "[Service]"})
    (tmp_path / "lib/systemd/system/smartd.service").symlink_to("smartmontools.service")
    profile = check({"cpus": {"isolated": "1"}, "knobs": {"services": "all"}}, "profile", "own")
    plant(tmp_path, machine(cpus=2))
    from quiet.settings.verify import plan_now

    made = plan_now(Reader(str(tmp_path)), profile, None)[0]
    assert [change.target for change in made.changes] == ["unit:smartmontools.service"]


def test_whether_a_unit_is_enabled_is_reported_and_never_compared() -> None:
    assert value_types.same(value_types.UNIT, "inactive static masked", "inactive masked")
    assert value_types.same(value_types.UNIT, "failed enabled", "inactive")
    assert not value_types.same(value_types.UNIT, "active enabled", "inactive enabled")
    assert not value_types.same(value_types.UNIT, "inactive", "inactive masked")
    assert not value_types.same(value_types.UNIT, "inactive masked", "inactive masked stale")


def test_on_a_recorded_tree_no_unit_is_written(tmp_path: Path) -> None:
    plant(tmp_path, {UNIT: INSTALL, RUNS: "1", "sys/fs/cgroup/system.slice/cpuset.cpus": ""})
    found = contents(tmp_path)
    for target, value in (("unit:one.service", "inactive masked"), ("slice:system.slice", "0 by drop-in")):
        with pytest.raises(OSError, match="recorded"):
            registry.put(Host(str(tmp_path)), target, value)
    assert contents(tmp_path) == found


@pytest.mark.parametrize("service", [*services.QUIET, *services.ALL, *rivals.STOPPED, *rivals.HELD])
def test_no_known_service_is_critical(service: services.Service) -> None:
    assert service.why
    for unit in (service.units + " " + service.jobs).split():
        assert services.critical(unit) == "" or unit in service.jobs
        services.check_names((unit,), ()) if unit in service.units else None


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"stop": ["ssh.service"]}, "ssh.service is never stopped: remote access depends on it"),
        ({"stop": ["a\u202e.service"]}, "is not a unit name"),
        ({"stop": ["suricata.service"]}, "suricata.service is never stopped: it guards this host"),
        ({"stop": ["nftables.service"]}, "nftables.service is never stopped: it guards the network"),
        ({"stop": ["fail2ban.service"]}, "fail2ban.service is never stopped: it guards this host"),
        ({"stop": ["chronyd.service"]}, "chronyd.service is never stopped: the clock drifts without it"),
        (
            {"stop": ["docker.service"]},
            "docker.service is never stopped: it runs users' containers or virtual machines",
        ),
        ({"stop": ["systemd-journald.service"]}, "a part of systemd itself"),
        (
            {"stop": ["cron"]},
            "'cron' is not a unit name; a unit name ends with one of .service, .timer, .socket, .path",
        ),
        ({"keep": ["../cron.service"]}, "key 'services.keep': '../cron.service' is not a unit name"),
        ({"keep": "cron.service"}, "key 'services.keep' must be a list of unit names"),
        ({"stop": ["a.timer"], "keep": ["a.timer"]}, "keys 'services.stop' and 'services.keep' both list a.timer"),
        ({"halt": []}, "unknown key 'services.halt'"),
    ],
)
def test_a_profile_that_stops_what_it_must_not_is_refused(lists: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check({"services": lists}, "profile own", "own")
    assert "profile own: " in str(caught.value)
    assert said in str(caught.value)


def test_with_refuse_nothing_is_applied_while_a_rival_runs(tmp_path: Path, quiet: Quiet) -> None:
    files = machine(cpus=2) | {
        "sys/fs/cgroup/system.slice/tuned.service/cgroup.procs": "9",
        "sys/kernel/mm/ksm/run": "1",
    }
    plant(tmp_path, files)
    found = contents(tmp_path)
    profile = check({"cpus": {"isolated": "1"}, "knobs": {"rivals": "refuse", "ksm": "quiet"}}, "profile", "own")
    with pytest.raises(Refused, match=r"rivals = \"refuse\", but these run or are enabled: tuned.service"):
        apply(Host(str(tmp_path)), profile)
    assert contents(tmp_path) == found
    assert status(Facts(Reader(str(tmp_path))), None).rivals == ("tuned.service",)
    assert "tuned.service (also tuning this host" in quiet("status", "--root", tmp_path).out


def test_without_systemd_the_first_folder_says_so(tmp_path: Path) -> None:
    assert not systemd.booted(Reader(str(plant(tmp_path, {"sys/fs/cgroup/cgroup.procs": "1"}))))
    assert systemd.booted(Reader(str(plant(tmp_path, {"run/systemd/system/": ""}))))


class Flock:
    """A kind whose targets are files that are written together, and one that no user may write."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def together(self, host: Host, items: Sequence[tuple[str, str]]) -> None:
        self.calls.append([name for name, _ in items])
        for name, value in items:
            if name != "stuck":
                host.write(f"/{name}", value)
        if any(name == "stuck" for name, _ in items):
            raise OSError(errno.EBUSY, "stuck")

    def kind(self) -> TargetType:
        read, write = (lambda reader, name: reader.text(f"/{name}")), self.together
        return TargetType("flock", read, lambda host, name, value: write(host, [(name, value)]), put_many=write)


def test_targets_of_a_kind_are_written_in_one_go_and_alone_only_where_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = Flock()
    monkeypatch.setitem(registry.BY_WORD, "flock", flock.kind())
    plant(tmp_path, dict.fromkeys(("a", "b", "c", "stuck", "plain"), "0"))
    host, intents, read = Host(str(tmp_path)), list[str](), list[str]()

    def write(*names: str) -> list[str]:
        writes = [Write(name if ":" in name else f"flock:{name}", "1", value_types.TEXT) for name in names]
        failed = settle(host, writes, lambda w: intents.append(w.target), lambda w, _: read.append(w.target))
        return [failure.write.target for failure in failed]

    assert write("a", "b", "file:/plain") == []
    assert flock.calls == [["a", "b"]]
    assert intents == read == ["flock:a", "flock:b", "file:/plain"]
    assert write("c", "stuck") == ["flock:stuck"]
    assert ["c", "stuck"] in flock.calls
    assert ["c"] not in flock.calls
    assert host.text("/c") == "1"
    assert read[-1] == "flock:c"  # or a later change by another program would not be noticed
