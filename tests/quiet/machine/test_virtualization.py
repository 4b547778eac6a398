"""Containers, virtual machines, WSL: detection, settings that are impossible there, and disturbances that cannot be
stopped from inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine import virtualization
from quiet.machine.facts import Facts
from quiet.machine.virtualization import hypervisor
from tests.quiet.commands import Quiet
from tests.quiet.kernels import Kernel, profile, settings, tree
from tests.trees import contents, machine, plant

DOCKER = (
    "overlay / overlay rw 0 0\nproc /proc proc rw 0 0\nsysfs /sys sysfs ro,nosuid 0 0\n"
    "cgroup /sys/fs/cgroup cgroup2 ro 0 0\nproc /proc/irq proc ro 0 0\nproc /proc/sys proc ro 0 0"
)
PRIVILEGED = "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0"
FLAGS = {"proc/cpuinfo": "model name : X\nflags\t\t: fpu hypervisor"}


def known(root: Path, files: dict[str, str]) -> Facts:
    return Facts(Reader(str(plant(root, machine(cgroup=0) | files))))


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({".dockerenv": ""}, "container (Docker)"),
        ({"run/.containerenv": ""}, "container (Podman)"),
        ({"run/systemd/container": "systemd-nspawn"}, "container (systemd-nspawn)"),
        ({"run/host/container-manager": "lxc"}, "container (lxc)"),
        ({"dev/lxd/sock": ""}, "container (LXD)"),
        ({"var/run/secrets/kubernetes.io/serviceaccount/": ""}, "container (Kubernetes)"),
        ({".dockerenv": "", "proc/1/cgroup": "0::/kubepods/besteffort/pod1"}, "container (Docker in Kubernetes)"),
        ({"proc/1/cgroup": "11:cpuset:/docker/ab12\n0::/docker/ab12"}, "container (Docker)"),
        ({"proc/1/cgroup": "0::/init.scope"}, ""),
        ({"proc/version": "Linux version 4.4.0-19041-Microsoft (x@y)"}, "WSL 1"),
        ({"proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2 (x@y)"}, "WSL"),
        ({"proc/version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"}, "gVisor"),
        ({"proc/version": "Linux version 4.19.0-gvisor #1 SMP"}, "gVisor"),
    ],
)
def test_a_machine_is_recognized_by_its_files(tmp_path: Path, files: dict[str, str], kind: str) -> None:
    assert virtualization.virtual(known(tmp_path, files)) == kind


WHOLE = [
    ({".dockerenv": "", "proc/mounts": DOCKER}, "/sys and /proc/sys are read-only in this container (Docker): run"),
    (
        {"proc/self/uid_map": "         0       1000          1"},
        "root in a user namespace has no rights over the kernel's settings",
    ),
    (
        {"run/.containerenv": "", "proc/self/uid_map": "0 1000 1\n1 100000 65536"},
        "root in this container (Podman) has no rights",
    ),
    ({"proc/version": "Linux version 4.4.0-19041-Microsoft"}, "WSL 1 is not a Linux kernel"),
    ({"proc/version": "Linux version 4.19.0-gvisor"}, "gVisor is not a Linux kernel"),
]


@pytest.mark.parametrize(("files", "reason"), WHOLE)
def test_where_nothing_can_be_written_a_plan_has_one_reason_and_apply_refuses_with_it(
    quiet: Quiet, tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    root = tree(tmp_path / "machine", settings() | files)
    found = contents(root)
    made = quiet("plan", "--root", root, "--json").json
    assert made["changes"] == []
    said = {skip["reason"] for skip in made["skips"] if skip["reason"].startswith(reason)}
    assert len(said) == 1
    assert len({skip["knob"] for skip in made["skips"] if skip["reason"] in said}) > 10
    assert len([skip for skip in made["skips"] if skip["knob"] == "irq" and skip["reason"] in said]) == 1
    done = quiet("apply", "--profile", "bench", "--root", root)
    assert (done.code, said) == (3, {done.err.removeprefix("quiet: error: ").strip()})
    assert contents(root) == found
    assert reason in quiet("status", "--root", root).out


@pytest.mark.parametrize(
    "files",
    [
        {".dockerenv": "", "proc/mounts": PRIVILEGED, "proc/self/uid_map": "0 0 4294967295"},
        {"proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2"},
        # systemd on cgroup v1 mounts a read-only directory with writable hierarchies in it
        {
            "proc/mounts": "sysfs /sys sysfs rw 0 0\ntmpfs /sys/fs/cgroup tmpfs ro 0 0\n"
            "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0"
        },
    ],
)
def test_where_the_kernel_can_be_reached_the_plan_is_that_of_a_host(tmp_path: Path, files: dict[str, str]) -> None:
    from quiet.settings.verify import plan_now

    host, inside = tree(tmp_path / "host"), tree(tmp_path / "inside", settings() | files)
    knobs = profile()
    assert plan_now(Reader(str(inside)), knobs, None)[0].changes == plan_now(Reader(str(host)), knobs, None)[0].changes


def test_single_read_only_files_are_skipped_with_the_reason_and_never_written(tmp_path: Path) -> None:
    from quiet.settings.apply import apply
    from quiet.settings.restore import restore

    mounts = "sysfs /sys sysfs rw 0 0\nproc /proc proc rw 0 0\nproc /proc/sys proc ro 0 0\nproc /proc/irq proc ro 0 0"
    root = tree(tmp_path / "machine", settings() | {"proc/mounts": mounts})
    found = contents(root)
    host = Kernel(root)
    done = apply(host, profile())
    assert done.failures == ()
    shut = [skip for skip in done.skips if "mounted read-only in this mount namespace" in skip.reason]
    assert {skip.target.partition(":")[0] for skip in shut} == {"file", "irq"}
    assert not [path for path, _ in host.written if path.startswith("/proc/")]
    assert [path for path, _ in host.written if path.startswith("/sys/")]
    assert restore(host).complete
    assert contents(root) == found


def test_an_apply_is_refused_where_only_a_part_of_a_user_namespace_is_seen(tmp_path: Path) -> None:
    from quiet.settings.apply import apply

    root = tree(tmp_path / "machine", settings() | {"proc/self/uid_map": "0 0 65536"})
    with pytest.raises(Refused, match="has no rights over the kernel"):
        apply(Kernel(root), profile())


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (FLAGS, "may preempt a CPU at any time; it reports no stolen time"),
        (FLAGS | {"proc/stat": "cpu  10 0 10 70 0 0 0 10 0 0"}, "10.00% of the time since boot was stolen"),
        (FLAGS | {"proc/stat": "cpu  1 2"}, "it reports no stolen time"),
        (FLAGS, "exposes no performance counters"),
        (FLAGS, "frequency, turbo and C-states are the host's"),
        (FLAGS, "the guest cannot detect whether a CPU shares its core"),
        (
            FLAGS | {"sys/bus/virtio/drivers/virtio_balloon/virtio3/": ""},
            "a memory balloon may take pages from the guest",
        ),
        (FLAGS | {"sys/bus/vmbus/drivers/hv_balloon/1eccfd72/": ""}, "a memory balloon may take pages from the guest"),
        (
            FLAGS | {"sys/devices/system/clocksource/clocksource0/current_clocksource": "acpi_pm"},
            "the time comes from acpi_pm",
        ),
        ({"proc/version": "5.15.0-microsoft-standard-WSL2"}, "Windows schedules these CPUs"),
        ({"sys/hypervisor/type": "xen", "proc/xen/capabilities": "control_d"}, "dom0_vcpus_pin"),
        ({".dockerenv": ""}, "other containers run on the same kernel"),
    ],
)
def test_status_reports_effects_outside_quiets_control(
    quiet: Quiet, tmp_path: Path, files: dict[str, str], said: str
) -> None:
    root = plant(tmp_path, machine() | files)
    assert any(said in line for line in quiet("status", "--root", root, "--json").json["unreachable"])
    assert said in quiet("status", "--root", root).out


@pytest.mark.parametrize(
    ("files", "unsaid"),
    [
        ({}, "hypervisor"),
        (FLAGS | {"sys/bus/event_source/devices/cpu/type": "4"}, "performance counters"),
        (FLAGS | {"sys/bus/virtio/drivers/virtio_balloon/bind": ""}, "balloon"),
        (
            FLAGS | {"sys/devices/system/clocksource/clocksource0/current_clocksource": "kvm-clock"},
            "the time comes from",
        ),
        (FLAGS | {f"sys/devices/system/cpu/cpu{n}/topology/core_cpus_list": "0-1" for n in (0, 1)}, "shares its core"),
    ],
)
def test_statements_that_do_not_apply_are_not_made(tmp_path: Path, files: dict[str, str], unsaid: str) -> None:
    assert not any(unsaid in line for line in virtualization.disturbances(known(tmp_path, files)))


X86 = {"proc/cpuinfo": "processor\t: 0\nmodel name\t: X\nflags\t\t: fpu vme sse2"}
X86_GUEST = {"proc/cpuinfo": "processor\t: 0\nmodel name\t: X\nflags\t\t: fpu vme sse2 hypervisor lahf_lm"}
ARM64 = {"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd evtstrm aes\nCPU part\t: 0xd0c"}
XEN = {"sys/hypervisor/type": "xen"}


def dmi(vendor: str, product: str, board: str = "", bios: str = "", chassis: str = "") -> dict[str, str]:
    names = {"sys_vendor": vendor, "product_name": product}
    names |= {"board_vendor": board, "bios_vendor": bios, "chassis_vendor": chassis}
    return {f"sys/class/dmi/id/{name}": text for name, text in names.items() if text}


def device_tree(*compatible: str) -> dict[str, str]:
    """The root node's names, most specific first, each with the NUL that ends it."""
    return {"proc/device-tree/compatible": "".join(f"{name}\0" for name in compatible)}


class Case(NamedTuple):
    machine: str
    files: dict[str, str]
    hypervisor: str  # "" on bare metal


AMAZON = ("Amazon EC2", "Amazon EC2", "Amazon EC2")
GOOGLE = dmi("Google", "Google Compute Engine", "Google", "Google", "Google")
NOVA = ("OpenStack Foundation", "OpenStack Nova")
DELL = dmi("Dell Inc.", "PowerEdge R650", "Dell Inc.", "Dell Inc.", "Dell Inc.")

CASES = [
    # clouds
    Case("EC2 Nitro x86", X86_GUEST | dmi("Amazon EC2", "m5.large", *AMAZON), "hypervisor (Amazon EC2 m5.large)"),
    Case("EC2 Xen x86", X86_GUEST | XEN | dmi("Xen", "HVM domU", "", "Xen", "Xen"), "hypervisor xen"),
    Case("EC2 x86 metal", X86 | dmi("Amazon EC2", "c5.metal", *AMAZON), ""),
    Case("EC2 x86 metal with a size", X86 | dmi("Amazon EC2", "c7i.metal-24xl", *AMAZON), ""),
    Case("EC2 Graviton", ARM64 | dmi("Amazon EC2", "m6g.large", *AMAZON), "hypervisor (Amazon EC2 m6g.large)"),
    Case("EC2 Graviton metal", ARM64 | dmi("Amazon EC2", "m6g.metal", *AMAZON), ""),
    Case("EC2 Graviton metal with a size", ARM64 | dmi("Amazon EC2", "c8g.metal-24xl", *AMAZON), ""),
    Case("GCE x86", X86_GUEST | GOOGLE, "hypervisor (Google Google Compute Engine)"),
    Case("GCE x86 metal", X86 | GOOGLE, ""),
    Case("GCE arm64", ARM64 | GOOGLE, "hypervisor (Google Google Compute Engine)"),
    Case(
        "Azure x86",
        X86_GUEST | dmi("Microsoft Corporation", "Virtual Machine", *["Microsoft Corporation"] * 3),
        "hypervisor (Microsoft Corporation Virtual Machine)",
    ),
    Case(
        "Azure arm64",
        ARM64 | dmi("Microsoft Corporation", "Virtual Machine", *["Microsoft Corporation"] * 3),
        "hypervisor (Microsoft Corporation Virtual Machine)",
    ),
    Case(
        "OpenStack x86",
        X86_GUEST | dmi(*NOVA, "", "SeaBIOS", "QEMU"),
        "hypervisor (OpenStack Foundation OpenStack Nova)",
    ),
    Case(
        "OpenStack arm64",
        ARM64 | dmi(*NOVA, "", "EFI Development Kit II / OVMF", "QEMU"),
        "hypervisor (OpenStack Foundation OpenStack Nova)",
    ),
    Case(
        "OpenStack of Red Hat, arm64",
        ARM64 | dmi("Red Hat", "OpenStack Compute", "", "", "Red Hat"),
        "hypervisor (Red Hat OpenStack Compute)",
    ),
    Case("Hetzner arm64", ARM64 | dmi("Hetzner", "vServer", "", "Hetzner", "QEMU"), "hypervisor (Hetzner vServer)"),
    Case(
        "Alibaba arm64",
        ARM64 | dmi("Alibaba Cloud", "Alibaba Cloud ECS", "Alibaba Cloud"),
        "hypervisor (Alibaba Cloud Alibaba Cloud ECS)",
    ),
    # other hypervisors
    Case(
        "QEMU x86",
        X86_GUEST | dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)", "", "SeaBIOS", "QEMU"),
        "hypervisor (QEMU Standard PC (Q35 + ICH9, 2009))",
    ),
    Case(
        "QEMU x86 with a hidden flag",
        X86 | dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)", "", "SeaBIOS", "QEMU"),
        "hypervisor (QEMU Standard PC (Q35 + ICH9, 2009))",
    ),
    Case(
        "QEMU arm64 virt with a device tree", ARM64 | device_tree("linux,dummy-virt"), "hypervisor (linux,dummy-virt)"
    ),
    Case(
        "QEMU arm64 virt with ACPI",
        ARM64 | dmi("QEMU", "QEMU Virtual Machine", "", "EFI Development Kit II / OVMF", "QEMU"),
        "hypervisor (QEMU QEMU Virtual Machine)",
    ),
    Case(
        "KVM arm64 with ACPI",
        ARM64 | dmi("QEMU", "KVM Virtual Machine", "", "EDK II", "QEMU"),
        "hypervisor (QEMU KVM Virtual Machine)",
    ),
    Case("QEMU riscv64 virt", device_tree("riscv-virtio"), "hypervisor (riscv-virtio)"),
    Case("QEMU ppc64 pseries", device_tree("qemu,pseries"), "hypervisor (qemu,pseries)"),
    Case("KVM ppc64", {"proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "hypervisor"),
    Case("Firecracker x86", X86_GUEST | {"sys/bus/platform/drivers/virtio-mmio/bind": ""}, "hypervisor (a microVM)"),
    Case(
        "VMware x86",
        X86_GUEST
        | dmi(
            "VMware, Inc.", "VMware Virtual Platform", "Intel Corporation", "Phoenix Technologies LTD", "No Enclosure"
        ),
        "hypervisor (VMware, Inc. VMware Virtual Platform)",
    ),
    Case(
        "VMware arm64",
        ARM64 | dmi("VMware, Inc.", "VMware20,1", *["VMware, Inc."] * 3),
        "hypervisor (VMware, Inc. VMware20,1)",
    ),
    Case(
        "VirtualBox x86",
        X86_GUEST | dmi("innotek GmbH", "VirtualBox", "Oracle Corporation", "innotek GmbH", "Oracle Corporation"),
        "hypervisor (innotek GmbH VirtualBox)",
    ),
    Case(
        "Parallels x86",
        X86_GUEST
        | dmi("Parallels Software International Inc.", "Parallels Virtual Platform", *["Parallels Software"] * 3),
        "hypervisor (Parallels Software International Inc. Parallels Virtual Platform)",
    ),
    Case(
        "Parallels arm64",
        ARM64 | dmi("Parallels International GmbH.", "Parallels ARM Virtual Machine"),
        "hypervisor (Parallels International GmbH. Parallels ARM Virtual Machine)",
    ),
    Case("bhyve x86", X86_GUEST | dmi("", "BHYVE", "", "BHYVE"), "hypervisor (BHYVE)"),
    Case("bhyve arm64", ARM64 | dmi("FreeBSD", "BHYVE", "FreeBSD", "BHYVE"), "hypervisor (FreeBSD BHYVE)"),
    Case(
        "Apple Virtualization arm64",
        ARM64 | dmi("Apple Inc.", "Apple Virtualization Generic Platform", "Apple Inc.", "Apple Inc.", "Apple Inc."),
        "hypervisor (Apple Inc. Apple Virtualization Generic Platform)",
    ),
    Case("Xen HVM", X86_GUEST | XEN | {"sys/hypervisor/guest_type": "HVM"}, "hypervisor xen HVM"),
    Case("Xen PV", X86_GUEST | XEN | {"sys/hypervisor/guest_type": "PV"}, "hypervisor xen PV"),
    Case(
        "Xen dom0",  # Xen schedules its CPUs too
        X86 | XEN | DELL | {"sys/hypervisor/guest_type": "PV", "proc/xen/capabilities": "control_d"},
        "hypervisor xen PV dom0",
    ),
    Case(
        "Xen arm64",
        ARM64 | XEN | {"proc/device-tree/hypervisor/compatible": "xen,xen-4.17\0xen,xen\0"},
        "hypervisor xen",
    ),
    Case("WSL 2", X86_GUEST | {"proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2 (x@y)"}, "WSL"),
    Case("gVisor", X86 | {"proc/version": "Linux version 4.19.0-gvisor #1 SMP"}, "gVisor"),
    # bare metal
    Case("Dell server", X86 | DELL, ""),
    Case("Oracle server", X86 | dmi("Oracle Corporation", "ORACLE SERVER X8-2", *["Oracle Corporation"] * 3), ""),
    Case("Surface laptop", X86 | dmi("Microsoft Corporation", "Surface Laptop 4", *["Microsoft Corporation"] * 3), ""),
    Case("KVM host", X86 | dmi("Supermicro", "SYS-1029P") | {"sys/module/kvm_intel/parameters/nested": "Y"}, ""),
    Case(
        "Ampere arm64 server",
        ARM64 | dmi("GIGABYTE", "R152-P31-00", "GIGABYTE", "Ampere(R)", "GIGABYTE"),
        "",
    ),
    Case("Raspberry Pi", ARM64 | device_tree("raspberrypi,4-model-b", "brcm,bcm2711"), ""),
    Case("container on bare metal", X86 | DELL | {".dockerenv": "", "proc/1/cgroup": "0::/docker/ab12"}, ""),
    Case("nothing readable", {}, ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.machine)
def test_a_machine_is_virtual_when_a_hypervisor_runs_its_kernel(case: Case, tmp_path: Path) -> None:
    assert hypervisor(Facts(Reader(str(plant(tmp_path, case.files))))) == case.hypervisor


def test_status_reports_a_container_on_bare_metal_without_a_hypervisor(quiet: Quiet, tmp_path: Path) -> None:
    root = plant(tmp_path, machine() | X86 | DELL | {".dockerenv": ""})
    assert quiet("status", "--root", root, "--json").json["virtual"] == "container (Docker)"
