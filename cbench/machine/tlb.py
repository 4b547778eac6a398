"""Read the reach of the data TLBs from the processor's CPUID, which a hypervisor may change.

Sources: Intel SDM volume 2A, CPUID leaves 2 (descriptors, also arch/x86/kernel/cpu/cpuid_0x2_table.c) and 18H; AMD APM
volume 3, CPUID functions 8000_0005h and 8000_0006h. Other architectures do not report TLBs to user programs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from cbench.machine.process import affinity

SMALL, HUGE = 4 << 10, 2 << 20
PAGE_NAMES = {SMALL: "4 KiB pages", HUGE: "2 MiB pages"}

Leaf = tuple[int, int, int, int]
Cpuid = Callable[[int, int], Leaf | None]


@dataclass(frozen=True, slots=True)
class Tlb:
    """One level of TLB for data, for one page size (bytes). `reach`: bytes that are translated without a walk."""

    level: int
    page: int
    entries: int
    reach: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", self.entries * self.page)

    @property
    def name(self) -> str:
        return f"TLB{self.level} {PAGE_NAMES[self.page]}"


@dataclass(frozen=True, slots=True)
class TlbLevels:
    """The TLBs for data, and the source of this information or the reason why they are unknown."""

    source: str
    levels: tuple[Tlb, ...] = ()


# Leaf 2: descriptor -> the TLBs for data that it describes. 4 MiB pages are not used.
DESCRIPTORS: dict[int, tuple[Tlb, ...]] = {
    0x03: (Tlb(1, SMALL, 64),),
    0x57: (Tlb(1, SMALL, 16),),
    0x59: (Tlb(1, SMALL, 16),),
    0x5A: (Tlb(1, HUGE, 32),),
    0x5B: (Tlb(1, SMALL, 64),),
    0x5C: (Tlb(1, SMALL, 128),),
    0x5D: (Tlb(1, SMALL, 256),),
    0x63: (Tlb(1, HUGE, 32),),
    0x64: (Tlb(1, SMALL, 512),),
    0x6B: (Tlb(1, SMALL, 256),),
    0x6C: (Tlb(1, HUGE, 128),),
    0xA0: (Tlb(1, SMALL, 32),),
    0xB3: (Tlb(1, SMALL, 128),),
    0xB4: (Tlb(1, SMALL, 256),),
    0xBA: (Tlb(1, SMALL, 64),),
    0xC0: (Tlb(1, SMALL, 8),),
    0xC1: (Tlb(2, SMALL, 1024), Tlb(2, HUGE, 1024)),
    0xC2: (Tlb(1, HUGE, 16),),
    0xC3: (Tlb(2, SMALL, 1536), Tlb(2, HUGE, 1536)),
    0xC4: (Tlb(1, HUGE, 32),),
    0xCA: (Tlb(2, SMALL, 512),),
}


def intel(cpuid: Cpuid) -> tuple[Tlb, ...]:
    """The TLBs of an Intel processor, from leaf 18H if it exists and has entries, otherwise from leaf 2."""
    return _kept(_leaf_18(cpuid)) or _kept(_leaf_2(cpuid))


def _leaf_18(cpuid: Cpuid) -> Iterator[Tlb]:
    first = cpuid(0x18, 0)
    for number in range(min(first[0], 63) + 1 if first else 0):
        leaf = cpuid(0x18, number)
        if leaf is None:
            continue
        _, ebx, sets, edx = leaf
        if edx & 31 in (1, 3, 4):  # data, unified, loads only
            entries = (ebx >> 16) * sets
            for bit, page in ((0, SMALL), (1, HUGE)):
                if ebx >> bit & 1:
                    yield Tlb(edx >> 5 & 7, page, entries)


def _leaf_2(cpuid: Cpuid) -> Iterator[Tlb]:
    registers = cpuid(2, 0) or ()
    for position, register in enumerate(registers):
        if register >> 31:  # the register holds no descriptors
            continue
        data = register.to_bytes(4, "little")
        for descriptor in data[1:] if position == 0 else data:  # AL is a constant
            yield from DESCRIPTORS.get(descriptor, ())


def amd(cpuid: Cpuid) -> tuple[Tlb, ...]:
    """The TLBs of an AMD processor: the first level from function 8000_0005h, the second from 8000_0006h. Associativity
    0 means that there is no such TLB.
    """
    first, second = cpuid(0x80000005, 0), cpuid(0x80000006, 0)
    tlbs = []
    for number, page in ((1, SMALL), (0, HUGE)):
        if first and first[number] >> 24 & 0xFF:
            tlbs.append(Tlb(1, page, first[number] >> 16 & 0xFF))
        if second and second[number] >> 28 & 0xF:
            tlbs.append(Tlb(2, page, second[number] >> 16 & 0xFFF))
    return _kept(tlbs)


def _kept(tlbs: Iterator[Tlb] | list[Tlb]) -> tuple[Tlb, ...]:
    """The largest TLB for each level and page size, sorted."""
    best: dict[tuple[int, int], Tlb] = {}
    for tlb in tlbs:
        key = (tlb.level, tlb.page)
        if tlb.entries and (key not in best or best[key].entries < tlb.entries):
            best[key] = tlb
    return tuple(best[key] for key in sorted(best, key=lambda key: (key[1], key[0])))


def decode(cpuid: Cpuid) -> TlbLevels:
    """The TLB levels that the processor reports through `cpuid`."""
    head = cpuid(0, 0)
    if head is None:
        return TlbLevels("not known: only x86 processors report their TLB sizes to a program")
    vendor = b"".join(part.to_bytes(4, "little") for part in (head[1], head[3], head[2])).decode("latin-1")
    tlbs = amd(cpuid) if vendor in ("AuthenticAMD", "HygonGenuine") else intel(cpuid)
    return TlbLevels(f"from CPUID ({vendor})" if tlbs else f"not known: CPUID ({vendor}) does not report it", tlbs)


def read(cpu: int) -> TlbLevels:
    """The TLB levels of this CPU, read on the CPU itself if this process may run there, because cores of one host may
    differ.
    """
    from cbench._cbench import ffi, lib

    def cpuid(leaf: int, subleaf: int) -> Leaf | None:
        words = ffi.new("uint32_t[4]")
        return None if lib.cb_cpuid(leaf, subleaf, words) else (words[0], words[1], words[2], words[3])

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(affinity({cpu}))
        return decode(cpuid)
