"""Exchange messages between a front and its helper: one JSON object per line, on a socket.

Front: RunRequest, then Start with the process to move, then CommandDone. Helper: Waiting (repeatedly), RunReady, Moved,
RunEnded; or RunFailure at any time. If the front closes the socket before CommandDone, the helper ends the command and
restores.
"""

from __future__ import annotations

import _json  # not json and socket, because the modules that these load take a tenth of a short run
import _socket
import select
import sys
import time

from quiet.errors import QuietError, UsageError
from quiet.host import FOLDER
from quiet.run.options import NamedTuple, RunRequest

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Callable

LINGER_SOCKET = f"{FOLDER}/linger."  # followed by the user's ID

FROM_FRONT, FROM_HELPER = 1 << 14, 1 << 20  # maximum size of a line in bytes
_PATIENCE_S = 10  # time limit for the rest of a line, and for the other side to read a message


class Start(NamedTuple):
    """Move this process, a child of the front, to the isolated CPUs."""

    pid: int


class CommandDone(NamedTuple):
    """The command has ended, with this exit code and usage (wait4(2); cpu_ns is -1 if unknown)."""

    code: int = -1
    cpu_ns: int = -1
    minor_faults: int = 0
    major_faults: int = 0
    voluntary: int = 0
    involuntary: int = 0


class Waiting(NamedTuple):
    """The run has to wait; the text describes the run on the CPUs."""

    text: str


class RunReady(NamedTuple):
    """The profile is applied."""

    profile: str
    cpus: str
    fixed: bool  # the command gets fixed addresses
    changes: int
    skips: int
    notes: tuple[str, ...]


class Moved(NamedTuple):
    """The process is on the isolated CPUs."""


class RunEnded(NamedTuple):
    """The command has ended, and the host is restored unless `stays`.

    `lines` and `report`: the observed interruptions, as text and as JSON.
    """

    complete: bool
    stays: bool
    restored: int
    notes: tuple[str, ...]
    lines: tuple[str, ...] = ()
    report: str = ""
    interruptions: int = -1  # -1: not observed
    lost_ns: int = 0
    observed_ns: int = 0  # the time that lost_ns is a share of
    lingers_s: float = 0.0  # the profile stays until this time passes without a run; 0: until a later restore
    unmeasured: int = 0  # interruptions that are counted, but not in lost_ns


class RunFailure(NamedTuple):
    """The run failed. `text`: the reason; `code`: the exit code."""

    text: str
    code: int


Message = RunRequest | Start | CommandDone | Waiting | RunReady | Moved | RunEnded | RunFailure
_KINDS = {
    kind.__name__: kind for kind in (RunRequest, Start, CommandDone, Waiting, RunReady, Moved, RunEnded, RunFailure)
}


class Peer(NamedTuple):
    """The process at the other end, as the kernel recorded it at socketpair(2), connect(2) or listen(2)."""

    pid: int
    uid: int


class HelperProtocolError(UsageError):
    """The other side does not speak this protocol."""


class HelperChannel:
    """A connected socket that sends and receives whole messages.

    `most`: the maximum size of a received line, in bytes.
    """

    def __init__(self, connection: _socket.socket, most: int) -> None:
        self._socket, self._most, self._read = connection, most, b""
        self.closed = False  # by the other side

    def fileno(self) -> int:
        """The file descriptor of the socket, for poll(2)."""
        return self._socket.fileno()

    def peer(self) -> Peer:
        """The process at the other end; PID 0 and user ID -1 if the channel is not a connected local socket."""
        data = self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # struct ucred: pid, uid, gid
        return Peer(*(int.from_bytes(data[at : at + 4], sys.byteorder, signed=True) for at in (0, 4)))

    def send(self, message: Message) -> None:
        """Send a message; do nothing if the other side has closed the socket or does not read."""
        line = _text({"kind": type(message).__name__, **message._asdict()}).encode() + b"\n"
        try:
            self._socket.settimeout(_PATIENCE_S)
            self._socket.sendall(line)
        except OSError:
            return  # messages sent earlier can still be read

    def receive(self, *kinds: type[Message], within_s: float | None = None) -> Message | None:
        """The next message; None if the other side has closed the socket, or if nothing arrives within `within_s`
        seconds (None: no limit).

        Raises HelperProtocolError for any other kind of message, and for a line that is too long or not a message.
        """
        if b"\n" not in self._read and not self._more(within_s):
            return None
        end = time.monotonic() + _PATIENCE_S
        while b"\n" not in self._read:
            if len(self._read) > self._most or time.monotonic() > end:
                raise HelperProtocolError("the other side sent a line that does not end")
            if not self._more(_PATIENCE_S):
                return None
        line, _, self._read = self._read.partition(b"\n")
        if len(line) > self._most:
            raise HelperProtocolError("the other side sent a line that is too long")
        message = parse(line)
        if not isinstance(message, kinds):
            raise HelperProtocolError(f"the other side sent an unexpected {type(message).__name__}")
        return message

    def leave(self) -> None:
        """Stop sending; messages from the other side still arrive."""
        try:
            self._socket.shutdown(_socket.SHUT_WR)
        except OSError:
            return  # the other side has closed

    def close(self) -> None:
        """Close this end of the socket."""
        self._socket.close()

    def _more(self, within_s: float | None) -> bool:
        """Read available data; False if the other side has closed the socket, or nothing arrives within `within_s`
        seconds.
        """
        if self.closed:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(None if within_s is None else within_s * 1000):
            return False
        try:
            part = self._socket.recv(1 << 16)
        except OSError:
            part = b""
        self.closed = not part
        self._read += part
        return bool(part)


def _text(value: object) -> str:
    """The JSON text of a field, or of a whole message."""
    if isinstance(value, str):
        return _json.encode_basestring_ascii(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(name)}: {_text(item)}' for name, item in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return "null" if value is None else str(value).lower()  # a number, true or false


class _Plain:
    """The options of the scanner, as json.loads sets them."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parse(line: bytes) -> Message:
    """Parse a message from its line. Raises HelperProtocolError if the line is not a message."""
    try:
        text = line.decode().strip()
        data, end = _json.make_scanner(_Plain)(text, 0)  # type: ignore[arg-type] # any object with these options
        if end < len(text):
            raise HelperProtocolError("the other side sent a line with more than one message")
        kind = _KINDS[data.pop("kind")]
        fields = {name: _value(kind.__annotations__[name], value) for name, value in data.items()}
        if missing := [name for name in kind._fields if name not in fields and name not in kind._field_defaults]:
            raise HelperProtocolError(f"the other side sent {kind.__name__} without {missing[0]}")
        make: Callable[..., Message] = kind
        return make(**fields)
    except QuietError:
        raise
    except (ValueError, StopIteration, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        raise HelperProtocolError("the other side does not speak this protocol") from None


def _value(type_name: object, value: object) -> object:
    """Check that the value has this type (an annotation or its text) and return it. Raises ValueError otherwise."""
    name = str(getattr(type_name, "__forward_arg__", type_name))
    if name.endswith(" | None"):
        if value is None:
            return None
        name = name.removesuffix(" | None")
    if name == "tuple[str, ...]":
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif name == "float":
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
            return float(value)
    elif isinstance(value, int) and abs(value) >> 63:
        raise ValueError(name)
    elif type(value) is {"str": str, "int": int, "bool": bool}[name]:
        return value
    raise ValueError(name)


def lingering_helper(uid: int) -> HelperChannel | None:
    """Connect to this user's lingering helper; None if there is none. The helper must run as root."""
    connection = connect(f"{LINGER_SOCKET}{uid}")
    channel = HelperChannel(connection, FROM_HELPER) if connection else None
    if channel and channel.peer().uid != 0:
        channel.close()
        return None
    return channel


def connect(path: str) -> _socket.socket | None:
    """Connect to the process that listens on a socket; None if no process does."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection
