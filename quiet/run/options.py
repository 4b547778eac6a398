"""Define the options of `quiet run`: those for the helper, and those for the front.

The module also provides a NamedTuple for modules that a front loads, because loading `typing` would take a tenth of the
time of a run whose profile lingers.
"""

from __future__ import annotations

from _operator import itemgetter  # operator itself loads more

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported
else:

    class NamedTuple(tuple):
        """Like typing.NamedTuple: a class whose annotations are the fields."""

        __slots__ = ()

        def __init_subclass__(cls):
            cls._fields = tuple(cls.__annotations__)
            cls._field_defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
            for index, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(index)))

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                whole = {**cls._field_defaults, **dict(zip(cls._fields, values, strict=False)), **named}
                if len(values) > len(cls._fields) or whole.keys() != set(cls._fields):
                    raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)}")
                values = [whole[name] for name in cls._fields]
            return tuple.__new__(cls, values)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **named):
            return type(self)(**{**self._asdict(), **named})


class RunRequest(NamedTuple):
    """The request of a front to the helper. Add a new option as a field here; the protocol checks its type."""

    profile: str = "bench"
    cpus: str | None = None  # None: selected automatically
    share: bool = False
    wait_s: float | None = None  # maximum time to queue; None: no limit
    linger_s: float = 0.0  # time that the profile stays applied after the run; the helper limits it
    observe: bool = True
    trace: bool = False  # observe by tracing; otherwise by counts, which cost less
    threads: bool | None = None  # balance over the CPUs; None: only if nothing pins the command
    pinned: str = ""  # the program in the command that pins its child processes, such as taskset; "" if none
    mems: str | None = None  # "auto", "leave" or NUMA nodes; None: as in the profile
    command: str = ""  # shown to others, never executed


class FrontOptions(NamedTuple):
    """The options of the front; None: not given. A limit that is not given does not apply."""

    as_user: str | None = None
    report: str | None = None
    quiet_report: bool = False
    max_lost: str | None = None
    max_interrupts: str | None = None
    container: bool = False  # add the option that pins a container to the isolated CPUs
