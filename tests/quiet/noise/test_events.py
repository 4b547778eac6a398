"""The requested events, and their meaning: against the kernel's own declarations of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import decode, events
from quiet.noise.call_nesting import BEGIN, CALL, END, NMI, NOTE, POINT, SOFTIRQ, SWITCH, VECTOR, TraceEvent
from quiet.noise.events import ON_THE_CPU, SOFTIRQS, TICK_KEPT, TICK_NEEDED, EventType, vectors
from quiet.noise.formats import parse
from quiet.noise.names import SHOOTDOWN
from tests.quiet.noise.tracing import DECLARED, NUMBERS, X86, format_of

IRQ_VECTORS = sorted(name.partition("/")[2] for name in X86 if name.startswith("irq_vectors/"))
ASKED = [*ON_THE_CPU, *decode.SENDING, *vectors(IRQ_VECTORS)]
BY_NAME = {kind.name: kind for kind in (*ON_THE_CPU, *vectors(IRQ_VECTORS))}


def symbol(address: int) -> str:
    return f"function_{address:x}"


def made(name: str, *values: int | str | bytes | None) -> TraceEvent | None:
    return BY_NAME[name].make(1_000, 10, values, symbol)


@pytest.mark.parametrize("kind", ASKED, ids=lambda kind: f"{kind.system}:{kind.name}")
def test_requested_events_are_declared_by_the_kernel(kind: EventType) -> None:
    assert f"{kind.system}/{kind.name}" in DECLARED
    assert set(kind.fields) <= set(parse(format_of(f"{kind.system}/{kind.name}")).fields)


def test_no_two_kinds_are_of_one_event() -> None:
    for kinds in (ON_THE_CPU, decode.SENDING, vectors(IRQ_VECTORS)):
        names = [(kind.system, kind.name) for kind in kinds]
        assert len(set(names)) == len(names)
    assert set(NUMBERS) == {f"{kind.system}/{kind.name}" for kind in ASKED}


PAIRS = [
    (kind.name, kind.name.replace("entry", "exit").replace("start", "end"))
    for kind in (*ON_THE_CPU, *vectors(IRQ_VECTORS))
    if kind.name.endswith(("_entry", "_start"))
]


@pytest.mark.parametrize(("first", "last"), PAIRS)
@given(st.integers(0, (1 << 31) - 1))
def test_begin_and_end_events_have_the_same_key(first: str, last: str, value: int) -> None:
    begin, end = (made(name, *[value] * len(BY_NAME[name].fields)) for name in (first, last))
    assert begin
    assert end
    assert (begin.action, end.action) == (BEGIN, END)
    assert (begin.kind, begin.key, begin.time, begin.pid) == (end.kind, value, 1_000, 10)
    assert end.key == value


def test_a_pair_is_distinguished_by_what_does_not_change() -> None:
    for first, last in PAIRS:
        key = BY_NAME[last].fields[0]
        assert key in BY_NAME[first].fields
        assert key not in ("func", "function", "name")


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("hrtimer_expire_entry", (5, 0xA), "function_a"),
        ("timer_expire_entry", (5, 0xB), "function_b"),
        ("workqueue_execute_start", (5, 0xC), "function_c"),
        ("csd_function_entry", (5, 0xD), "function_d"),
        ("ipi_entry", (0xE,), "function_e"),
        ("nmi_handler", (0xF, 700, 1), "function_f"),
        ("irq_handler_entry", (27, "eth0"), "27 eth0"),
        ("irq_handler_entry", (27, None), "27 "),
        ("page_fault_user", (0x1000,), "page fault"),
        ("sched_switch", (41, "Web Content"), "Web Content"),
        ("local_timer_entry", (236,), "local_timer"),
    ],
)
def test_a_name_is_that_of_the_function_or_the_kernels_own(
    name: str, values: tuple[int | str | None, ...], wanted: str
) -> None:
    found = made(name, *values)
    assert found
    assert found.name == wanted


def test_a_switch_names_both_tasks() -> None:
    found = made("sched_switch", 41, "Web Content")
    assert found
    assert (found.action, found.pid, found.other) == (SWITCH, 10, 41)


@given(st.integers(0, 40))
def test_a_softirq_has_the_kernels_name_and_one_that_is_not_known_its_number(number: int) -> None:
    found = made("softirq_entry", number)
    assert found == TraceEvent(1_000, BEGIN, SOFTIRQ, SOFTIRQS[number] if number < 10 else str(number), 10, number)


@pytest.mark.parametrize("handled", [0, 1, 2])
def test_an_nmi_belongs_to_the_handler_that_claims_it(handled: int) -> None:
    wanted = TraceEvent(1_000, POINT, NMI, "function_f", 10, 700) if handled else None
    assert made("nmi_handler", 0xF, 700, handled) == wanted


@given(st.integers(0, 10))
def test_only_a_flush_from_another_cpu_names_a_call(reason: int) -> None:
    wanted = TraceEvent(1_000, POINT, CALL, SHOOTDOWN, 10) if reason == events.TLB_REMOTE_SHOOTDOWN else None
    assert made("tlb_flush", reason) == wanted


@given(st.integers(0, 1), st.integers(0, 64))
def test_a_tick_that_could_not_be_stopped_says_why(success: int, dependency: int) -> None:
    found = made("tick_stop", success, dependency)
    if success:
        assert found is None
    else:
        assert found == TraceEvent(1_000, NOTE, TICK_KEPT, TICK_NEEDED.get(dependency, str(dependency)), 10)


def test_vectors_are_those_with_an_entry_and_an_exit() -> None:
    found = vectors(
        ["local_timer_entry", "local_timer_exit", "vector_alloc", "enable", "filter", "x86_platform_ipi_exit", "_entry"]
    )
    assert [(kind.system, kind.name) for kind in found] == [
        ("irq_vectors", "local_timer_entry"),
        ("irq_vectors", "local_timer_exit"),
        ("irq_vectors", "x86_platform_ipi_exit"),
    ]
    assert found[0].make(5, 10, (236,), symbol) == TraceEvent(5, BEGIN, VECTOR, "local_timer", 10, 236)
    assert found[2].make(5, 10, (247,), symbol) == TraceEvent(5, END, VECTOR, "x86_platform_ipi", 10, 247)
    assert vectors([]) == []
