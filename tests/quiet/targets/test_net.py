"""Network interfaces as targets: the driver's answers on recorded trees, and the order of dependent settings."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiet import cpulist
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.record.recorder import Recording, record
from quiet.settings import plan
from quiet.settings.apply import apply
from quiet.settings.restore import restore
from quiet.targets import net, registry
from tests.quiet.kernels import Kernel, profile
from tests.trees import contents, machine, nic, plant

NET = ("net.channels", "net.rss", "net.threaded", "net.adaptive", "net.defer", "net.rps", "net.xps")
ANSWERS = "/run/quiet-recorded/net"
CLASS = "/sys/class/net"


def device(**answers: str) -> dict[str, str]:
    """A device with four queues whose every setting differs from the driver's default."""
    replies = {"channels": "combined 4", "rss": "8: 3 2 1 0", "adaptive": "rx 1 tx 1"} | answers
    files = machine(cpus=4) | nic(**replies)
    for queue in range(4):
        files[f"sys/class/net/eth0/queues/rx-{queue}/rps_cpus"] = "0c"
        files[f"sys/class/net/eth0/queues/tx-{queue}/xps_cpus"] = f"{1 << queue:02x}"
    return files


def driver(kernel: Kernel, path: str, value: str) -> str:
    """With other channels, queues come and go, all of them as the driver starts them."""
    if path == f"{ANSWERS}/eth0/channels":
        count = net.counts(value)["combined"]
        base = Path(kernel.root + CLASS, "eth0/queues")
        shutil.rmtree(base)
        plant(base, {f"rx-{n}/rps_cpus": "00" for n in range(count)})
        plant(base, {f"tx-{n}/xps_cpus": f"{1 << n:02x}" for n in range(count)})
        Path(f"{kernel.root}{ANSWERS}/eth0/rss").write_text(f"8: {' '.join(map(str, range(count)))}\n")
        for queue in range(4):
            mask = Path(f"{kernel.root}/proc/irq/{40 + queue}/smp_affinity_list")
            if mask.stat().st_mode & 0o200:
                mask.write_text("0-3\n")
    return value


def found(root: Path) -> dict[str, bytes]:
    return {name: text for name, text in contents(root).items() if not name.startswith("run/quiet/")}


@pytest.fixture
def host(tmp_path: Path) -> Kernel:
    return Kernel(plant(tmp_path, device()), driver)


def test_fewer_channels_remove_their_queues_and_restore_recreates_all(host: Kernel, tmp_path: Path) -> None:
    before = found(tmp_path)
    done = apply(host, profile("irq", *NET, cpus="2-3"))
    assert not done.failures
    assert host.text(f"{ANSWERS}/eth0/channels") == "combined 2"
    assert host.names(f"{CLASS}/eth0/queues") == ["rx-0", "rx-1", "tx-0", "tx-1"]
    assert {host.text(f"/proc/irq/{40 + queue}/smp_affinity_list") for queue in range(4)} == {"0-1"}
    made = plan.make(host, profile("irq", *NET, cpus="2-3"), done.cpus)
    assert made.changes == ()
    assert restore(host).complete
    assert found(tmp_path) == before


def test_channels_change_before_the_settings_of_their_queues(host: Kernel) -> None:
    apply(host, profile("irq", *NET, cpus="2-3"))
    applied = [path for path, _ in host.written]
    host.written.clear()
    restore(host)
    restored = [path for path, _ in host.written]
    for order in (applied, restored):
        at = order.index(f"{ANSWERS}/eth0/channels")
        assert [path for path in order[:at] if path.startswith(f"{CLASS}/eth0/queues")] == []
        assert {f"/proc/irq/{40 + queue}/smp_affinity_list" for queue in range(4)} <= set(order[at:])
    assert f"{CLASS}/eth0/queues/rx-3/rps_cpus" in restored


def test_an_interface_that_has_disappeared_is_gone_and_nothing_fails(host: Kernel, tmp_path: Path) -> None:
    apply(host, profile(*NET, cpus="2-3"))
    shutil.rmtree(tmp_path / "sys/class/net/eth0")
    outcome = restore(host)
    assert outcome.complete
    assert "net:eth0/channels" in outcome.gone


def test_a_setting_that_another_program_has_changed_is_a_conflict(host: Kernel) -> None:
    apply(host, profile("irq", *NET, cpus="2-3"))
    registry.put(host, "net:eth0/adaptive", "rx 1 tx 0")
    for _ in range(2):
        assert [each.target for each in restore(host).conflicts] == ["net:eth0/adaptive"]
    assert registry.get(host, "net:eth0/adaptive") == "rx 1 tx 0"
    assert restore(host, keep=True).complete


def test_another_device_of_the_same_name_keeps_its_values(host: Kernel, tmp_path: Path) -> None:
    apply(host, profile(*NET, cpus="2-3"))
    (tmp_path / "sys/class/net/eth0/ifindex").write_text("9\n")
    assert restore(host).complete
    assert host.text(f"{ANSWERS}/eth0/channels") == "combined 2"


def test_a_renamed_interface_regains_its_values_under_its_new_name(host: Kernel, tmp_path: Path) -> None:
    before = found(tmp_path)
    wanted = profile("net.rps", "net.xps", "net.defer", cpus="2-3")
    apply(host, wanted)
    for folder in ("sys/class/net", "run/quiet-recorded/net"):
        (tmp_path / folder / "eth0").rename(tmp_path / folder / "lan0")
    plant(tmp_path, nic("eth0", index=7, rx=1, irqs=60))
    newcomer = {name for name in found(tmp_path) if "/eth0/" in name or "/6" in name}
    assert restore(host).complete
    after = found(tmp_path)
    assert {name.replace("/lan0/", "/eth0/"): text for name, text in after.items() if name not in newcomer} == before


def test_an_interface_that_disappears_during_a_change_is_not_a_failure(tmp_path: Path) -> None:
    def unplug(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith("rx-1/rps_cpus"):
            shutil.rmtree(tmp_path / "sys/class/net/eth0")
            raise FileNotFoundError(2, "No such file or directory")
        return value

    host = Kernel(plant(tmp_path, device()), unplug)
    assert apply(host, profile("net.rps", "net.xps", cpus="2-3")).failures == ()
    assert restore(host).complete


def test_a_mask_of_cpus_that_are_all_kept_free_is_refused_with_the_reason(tmp_path: Path) -> None:
    def kept_free(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith("rps_cpus"):
            raise OSError(22, "Invalid argument")
        return value

    done = apply(Kernel(plant(tmp_path, device()), kept_free), profile("net.rps", cpus="2-3"))
    assert done.failures == ()
    assert {skip.reason for skip in done.skips} == {
        "the kernel removes CPUs of isolcpus= and nohz_full= from this mask, and no other CPU is left in it"
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("requested channel counts are too low for existing indirection table settings", "ethtool -X"),
        ("requested channel counts are too low for existing ntuple filter settings", "ethtool -N"),
        ("requested channel counts are too low for existing zerocopy AF_XDP sockets", "AF_XDP"),
    ],
)
def test_queues_in_use_are_kept_and_their_user_is_reported(words: str, reason: str, tmp_path: Path) -> None:
    def in_use(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith("/channels"):
            raise OSError(22, words)
        return value

    done = apply(Kernel(plant(tmp_path, device()), in_use), profile("net.channels", cpus="2-3"))
    assert done.failures == ()
    assert [skip.target for skip in done.skips if reason in skip.reason] == ["net:eth0/channels"]


@st.composite
def devices(draw: st.DrawFn) -> tuple[dict[str, str], frozenset[int]]:
    """A device with any masks, and the interrupts of it that nobody can move."""
    replies = {"rss": f"8: {' '.join(str(draw(st.integers(0, 3))) for _ in range(3))} 0"}
    files = device(**replies, adaptive=f"rx {draw(st.integers(0, 1))} tx {draw(st.integers(0, 1))}")
    for name in (name for name in files if name.endswith("ps_cpus")):
        files[name] = f"{draw(st.integers(0, 15)):02x}"
    return files, draw(st.frozensets(st.integers(40, 43), max_size=3))


@pytest.mark.slow
@settings(max_examples=12)
@given(devices(), st.sampled_from([NET, NET[1:], ("irq", *NET)]), st.sampled_from(["3", "2-3", "1-3"]))
def test_on_any_device_no_queue_reaches_an_isolated_cpu_and_everything_is_restored(
    made: tuple[dict[str, str], frozenset[int]], knobs: tuple[str, ...], cpus: str
) -> None:
    files, fixed = made
    with tempfile.TemporaryDirectory() as folder:
        root = plant(Path(folder), files)
        for number in fixed:
            (root / f"proc/irq/{number}/smp_affinity_list").chmod(0o444)
        host, before = Kernel(root, driver), found(root)
        wanted = profile(*knobs, cpus=cpus)
        done = apply(host, wanted)
        assert done.failures == ()
        assert plan.make(host, wanted, done.cpus).changes == ()
        for queue in host.names(f"{CLASS}/eth0/queues"):
            file = "rps_cpus" if queue.startswith("rx") else "xps_cpus"
            mask = cpulist.parse_mask(host.text(f"{CLASS}/eth0/queues/{queue}/{file}") or "")
            assert not mask & done.cpus.isolated
        assert restore(host).complete
        assert found(root) == before


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("4: 0 1", [0, 1, 0, 1]),
        ("5: 0 1", [0, 1, 0, 1, 0]),
        ("4: 7", [7, 7, 7, 7]),
        ("4: 0 1 1", [0, 1, 1, 0]),
        ("", []),
    ],
)
def test_a_table_of_queues_repeats_cyclically(text: str, table: list[int]) -> None:
    assert net.spell_queues(table) == text
    if text:
        assert net.queues(text) == table


def test_read_only_targets_are_not_written(host: Host) -> None:
    for name in ("rules", "interrupts"):
        with pytest.raises(OSError, match="cannot be written"):
            registry.put(host, f"net:eth0/{name}", "1")


def test_a_device_whose_driver_does_not_report_is_absent_not_zero() -> None:
    here = Reader("/")
    for name in ("channels", "rss", "adaptive", "rules"):
        assert registry.get(here, f"net:no-such-one/{name}") is None
        if "lo" in Facts(here).interfaces:
            assert registry.get(here, f"net:lo/{name}") is None


def test_a_recorded_device_has_its_drivers_answers(tmp_path: Path) -> None:
    machine_root = plant(tmp_path / "machine", device(rules="1023 3"))
    for queue in range(4):
        (machine_root / f"proc/irq/{40 + queue}/smp_affinity_list").chmod(0o444)
    record(Recording(str(machine_root)), str(tmp_path / "tree.tar.gz"))
    with tarfile.open(tmp_path / "tree.tar.gz") as tar:
        tar.extractall(tmp_path / "copy", filter="data")
    copy = Reader(str(tmp_path / "copy"))
    for name in ("channels", "rss", "adaptive", "rules", "interrupts"):
        original = registry.get(Reader(str(machine_root)), f"net:eth0/{name}")
        assert original
        assert registry.get(copy, f"net:eth0/{name}") == original
