"""Select the workloads of a command by name, and check their parameters before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cbench.machine.memory import free_memory
from cbench.model import Params, Workload
from cbench.workloads import registry, user_code
from quiet import Reader, UsageError

MEMORY_SHARE = 0.8


def find(texts: Iterable[str], cache: Path, tell: Callable[[str], None]) -> list[Workload]:
    """The built-in workloads and the user's functions with these names, without duplicates. Raises UsageError for an
    unknown name or unusable user code.
    """
    given = list(texts)
    names = list(dict.fromkeys(given))
    for name in names:
        if given.count(name) > 1:
            tell(f"{name} is given more than once, but measured once; to compare equal code, run the command twice")
    builtin = {text: registry.find(text) for text in names if not user_code.is_user_code(text)}
    return [builtin[text] if text in builtin else user_code.load(text, cache, tell) for text in names]


def check_memory(workload: Workload, params: Params) -> None:
    """Raise UsageError if the buffer would not fit into free memory, because locked memory cannot be swapped out."""
    available = free_memory(Reader())
    if workload.buffers * params.get("size", 0) > MEMORY_SHARE * available:
        raise UsageError(
            f"--param size={params['size']}: {workload.name} would need more than "
            f"{100 * MEMORY_SHARE:g} % of the {available // 2**20:,} MiB of free memory; choose a smaller size"
        )


def select(
    texts: Iterable[str], settings: Params, quick: bool, cache: Path, tell: Callable[[str], None]
) -> tuple[Sequence[Workload], Sequence[Params]]:
    """The workloads, and the parameters of each. Raises UsageError for an unknown workload or parameter."""
    names = list(texts)
    try:
        chosen = find(names, cache, tell)
    except UsageError as error:  # the name may be that of a program instead of a workload
        hints = [] if any(":" in name for name in names) else list(filter(None, map(registry.as_command, names)))
        raise UsageError(f"{error}{hints[0] if hints else ''}") from None
    registry.check_settings(chosen, settings)
    params = [registry.parameters(workload, settings, quick) for workload in chosen]
    for workload, values in zip(chosen, params, strict=True):
        check_memory(workload, values)
    return chosen, params
