"""A recording contains no private data, and still plans as the machine does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quiet.record.redact import Redaction
from quiet.record.redact_command_line import parameters
from tests.trees import task


def masked(path: str, text: str, **more: str) -> str:
    return Redaction({path: text, **more}).text(path, text)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("BOOT_IMAGE=/vmlinuz root=UUID=1b2c ro quiet", "BOOT_IMAGE=masked root=masked ro quiet"),
        (
            "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 skew_tick=1",
            "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 skew_tick=1",
        ),
        ("rd.luks.uuid=luks-9f ip=10.0.0.7::10.0.0.1 token=s3cret mylab.key=x", ""),
        (
            "rcutree.kthread_prio=1 processor.max_cstate=1 rcu-nocbs=1",
            "rcutree.kthread_prio=1 processor.max_cstate=1 rcu-nocbs=1",
        ),
        ('dyndbg="file secret.c +p" ro', "ro"),
        ("quiet -- --password hunter2", "quiet"),
    ],
)
def test_a_command_line_keeps_the_parameters_that_quiet_knows(line: str, kept: str) -> None:
    assert parameters(line) == kept
    assert masked("/proc/cmdline", line) == kept


def test_command_lines_in_boot_loaders_files_are_masked_where_they_stand() -> None:
    grub = 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet cryptdevice=UUID=77:root isolcpus=2-3"\n'
    assert masked("/etc/default/grub", grub) == 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet isolcpus=2-3"\n'
    entry = "title Debian\noptions root=/dev/mapper/joe-root ro token=1\n"
    assert masked("/boot/loader/entries/a.conf", entry) == "title masked\noptions root=masked ro\n"
    assert masked("/boot/firmware/cmdline.txt", "root=PARTUUID=ab-02 serial=7 quiet") == "root=masked quiet"


@pytest.mark.parametrize(
    ("path", "text", "secret"),
    [
        ("/sys/class/net/eth0/address", "52:54:00:12:34:56", "52:54:00:12:34:56"),
        ("/sys/class/dmi/id/product_uuid", "1d9f3c3a-7b5e-4d2f-9a51-0c1f8e6b2a77", "1d9f3c3a"),
        ("/sys/class/dmi/id/board_serial", "PF2ABCDE", "PF2ABCDE"),
        ("/sys/block/nvme0n1/wwid", "eui.0025385b71b1a1a1", "0025385b"),
        ("/proc/sys/kernel/hostname", "joes-laptop", "joe"),
        ("/proc/version", "Linux version 6.12.1 (joe@builder) (gcc 12)", "joe@builder"),
        ("/proc/version", "Linux version 6.12.1 (x@y) (acme-gcc (ACME 12) 12, GNU ld) #1 SMP", "acme"),
        ("/etc/irqbalance.env", "IRQBALANCE_ARGS=--log=2a02:8070:a1::17", "a1::17"),
        ("/sys/class/net/eth0/ifalias", "2a02:8070:1:2:3:4:5:6", "8070:1"),
        ("/proc/cpuinfo", "Hardware\t: BCM2711\nSerial\t\t: 10000000abcdef01", "abcdef01"),
        ("/proc/cpuinfo", "processor 0: version = FF, identification = 2733E8, machine = 3906", "2733E8"),
        ("/etc/irqbalance.env", "IRQBALANCE_ARGS=--log=10.1.2.3", "10.1.2.3"),
        (
            "/proc/1/cpuset",
            "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "0123456789abcdef",
        ),
        ("/proc/7/cmdline", "curl\0--user\0joe:pw", "joe"),
        ("/proc/7/comm", "joes-secret-job", "joe"),
        ("/proc/mounts", "//server/joe /home/joe cifs rw,username=joe 0 0\n/dev/mapper/joe / ext4 rw,joe 0 0", "joe"),
        ("/etc/systemd/system/a.service", "[Service]\nEnvironment=TOKEN=joe\nExecStart=/x --key joe", "joe"),
        ("/proc/stat", "cpu  1 2 3\nbtime 1699999999", "1699999999"),
    ],
)
def test_names_addresses_and_identifiers_are_masked(path: str, text: str, secret: str) -> None:
    assert secret.lower() not in masked(path, text).lower()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/sys/fs/resctrl/mon_groups/joe/tasks", "/sys/fs/resctrl/mon_groups/masked/masked"),
        ("/sys/fs/resctrl/joe/mon_groups/joes_job", "/sys/fs/resctrl/masked0001/masked/masked"),
        ("/sys/fs/resctrl/joe/schemata", "/sys/fs/resctrl/masked0001/schemata"),
        ("/sys/fs/resctrl/info/L3CODE/min_cbm_bits", "/sys/fs/resctrl/info/L3CODE/min_cbm_bits"),
        ("/boot/efi/EFI/joe/joes/grub.cfg", "/boot/efi/EFI/masked0001/masked/grub.cfg"),
        ("/usr/lib/modules/6.1-joe/vmlinuz", "/usr/lib/modules/masked0001/vmlinuz"),
    ],
)
def test_below_a_directory_that_a_user_named_only_files_that_quiet_reads_keep_their_names(
    path: str, shown: str
) -> None:
    assert Redaction({}).path(path) == shown


def test_the_same_thing_has_the_same_mask_everywhere_and_keeps_its_form() -> None:
    mask = Redaction({})
    first = mask.text("/sys/class/net/eth0/address", "52:54:00:AB:CD:EF")
    assert re.fullmatch(r"02:00(:[0-9a-f]{2}){4}", first)
    assert mask.text("/sys/any", "found 52:54:00:ab:cd:ef") == f"found {first}"
    assert mask.path("/sys/class/net/enx525400abcdef/mtu") == f"/sys/class/net/enx{first.replace(':', '')}/mtu"
    assert mask.text("/sys/any", "52:54:00:ab:cd:ee") != first


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/sys/kernel/irq/24/actions", "nvme0q1,eth0-rx-0"),
        ("/sys/devices/system/cpu/cpu3/topology/core_cpus", "00000000,ffffffff,ffffffff,ffffffff,ffffffff"),
        ("/proc/sys/kernel/osrelease", "6.12.95+deb12-amd64"),
        ("/sys/class/net/lo/address", "00:00:00:00:00:00"),
        ("/proc/interrupts", " 24:  0  1  PCI-MSI 0000:00:03.0 virtio0-config"),
        ("/sys/class/dmi/id/sys_vendor", "QEMU"),
        ("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0"),
    ],
)
def test_facts_that_rules_read_are_unchanged(path: str, text: str) -> None:
    assert masked(path, text) == text


def test_tasks_keep_their_cpus_and_kernel_threads_and_daemons_their_names() -> None:
    for comm, kernel, shown in [
        ("rcuop/3", True, "rcuop/3"),
        ("irqbalance", False, "irqbalance"),
        ("joes-job", False, "task"),
    ]:
        files = {f"/{path}": text for path, text in task(7, comm, "0-3", kernel=kernel).items()}
        files["/proc/7/status"] += "\nUid:\t1017\t1017"
        mask = Redaction(files)
        status = mask.text("/proc/7/status", files["/proc/7/status"])
        assert status.startswith(f"Name:\t{shown}\n")
        assert "Cpus_allowed_list:\t0-3" in status
        assert "1017" not in status
        assert mask.text("/proc/7/stat", files["/proc/7/stat"]).startswith(f"7 ({shown}) S 2 0")


def test_a_name_with_parentheses_and_spaces_is_one_name(tmp_path: Path) -> None:
    line = "7 (joe (x) y) R 2 7 7 34816 7 4194304" + " 9" * 13
    assert masked("/proc/7/stat", line) == "7 (task) S 2 0 0 0 -1 4194304" + " 0" * 13
