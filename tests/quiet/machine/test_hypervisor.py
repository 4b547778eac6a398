"""What counts as a virtual machine: one row for each kind of machine, as its kernel describes it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.machine.virtualization import hypervisor
from tests.quiet.commands import Quiet
from tests.trees import machine, plant

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
