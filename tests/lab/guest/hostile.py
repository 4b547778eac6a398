"""A user with the sudo rule of docs/security.md tries to gain more from quiet's helper than a run of their own.

Each case is what is sent to the helper, or how it is started, and the canaries that tell whether it gained something:
files of root, processes of others, programs that ran as root, settings that differ afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

PROGRAM = os.environ.get("QUIET_PROGRAM", "/opt/quiet/bin/quiet")
SUDO = shutil.which("sudo") or "sudo"  # by its path: cases change PATH
CANARY = "/run/canary"  # a file that only root can make
SECONDS = 60
Line = bytes


def request(**fields: Any) -> Line:
    return json.dumps({"kind": "RunRequest", **fields}).encode() + b"\n"


def start(pid: Any) -> Line:
    return json.dumps({"kind": "Start", "pid": pid}).encode() + b"\n"


PATHS = (
    *("/etc/shadow", "/etc/passwd", "/proc/self/mem", "/dev/zero", "/dev/stdin", "/home/u/evil.toml", "evil.toml"),
    *(
        "./evil.toml",
        "../evil.toml",
        "/etc/quiet/../../home/u/evil.toml",
        "/etc/quiet/link.toml",
        "/etc/quiet/open.toml",
    ),
    *("/etc/quiet/", "/etc/quiet/.toml", "/etc/quiet//evil.toml", "/etc/quiet/a/b.toml", "/etc/quiet/%2e%2e.toml"),
    *("bench/../bench", "bench.toml", "../profiles/bench", "bench\u0000", "bench\n", "BENCH", " bench", "", "-", "--"),
    *("/tmp/evil.toml", "/proc/self/cwd/evil.toml", "/proc/1/root/home/u/evil.toml", "file:///home/u/evil.toml", "~"),
    *("/etc/quiet/" + "a" * 4000 + ".toml", "/etc/quiet/\u202e.toml", "$(touch /run/canary)", "`touch /run/canary`"),
    *("; touch /run/canary", "| touch /run/canary", "%s%s%n", "{0.__class__}", "/etc/quiet/fifo.toml"),
)
CPUS = (
    *(
        "",
        "all",
        "-1",
        "0-99999999",
        "0,",
        "1-0",
        "a",
        "1;touch /run/canary",
        "../1",
        "1\n",
        "\uff11",
        "0x1",
        "1/../../../tmp",
    ),
    *("9" * 5000, "0-3", "0", "$(id)", "1,1,1", "isolated", "None", "[1]", "1 2", "\u0000", "2-3/evil", "1.5", "1e3"),
)
GARBAGE: tuple[bytes, ...] = (
    *(
        b"",
        b"\n",
        b"\n" * 5000,
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"\x00" * 4096,
        b"\xff\xfe\n",
        b"[" * 16000,
        b"{" * 16000 + b"\n",
    ),
    *(
        b"A" * 20000,
        b"A" * 2000000,
        b'{"kind":"Done"}\n',
        b'{"kind":"RunRequest"',
        b'{"kind":1}\n',
        b"GET / HTTP/1.0\r\n\r\n",
    ),
    *(b'{"kind":"Peer","pid":1,"uid":0}\n', b'{"kind":"RunRequest","uid":0}\n', b'{"kind":"RunRequest","run":"id"}\n'),
    *(b'{"kind":"RunRequest","profile":{"knobs":{}}}\n', b'{"kind":"RunRequest","share":1}\n', start(1), start(0)),
    *(b'{"kind":"RunRequest","linger_s":1e999}\n', b'{"kind":"RunRequest","linger_s":-1e9,"profile":1}\n'),
    *(
        b'{"kind":"RunRequest","wait_s":"0"}\n',
        b'{"kind":"RunEnded","complete":true,"stays":true,"restored":0,"notes":[]}\n',
    ),
    *(
        b'{"kind":"RunRequest","command":["a"]}\n',
        b'{"kind":"RunRequest","observe":"/etc/shadow"}\n',
        b"!!python/object\n",
    ),
    *(b"\x80\x04\x95K\x00\x00\n", b'{"kind":"RunRequest","profile":"bench","profile":"/home/u/evil.toml"}\n'),
)
PIDS: tuple[Any, ...] = (
    0,
    1,
    2,
    -1,
    -2,
    2**31,
    2**63,
    10**40,
    "1",
    None,
    True,
    1.5,
    [1],
    {},
    "self",
    "root's",
    "other's",
)
ARGUMENTS = (
    ("run-helper", "--root", "/home/u"),
    ("run-helper", "--profile", "/home/u/evil.toml"),
    ("run-helper", "--"),
    ("run-helper", ""),
    ("run-helper", "run-helper"),
    ("run-helper;id",),
    ("run", "--as", "root", "--", "touch", CANARY),
    ("run", "--", "touch", CANARY),
    ("apply",),
    ("restore",),
    ("record", "--unmasked", "/home/u/x.tgz"),
    ("install-service", "--trust-program"),
    ("boot", "apply"),
    ("lock", "--", "touch", CANARY),
    ("watch", "--repair"),
    (),
    ("-m", "os"),
    ("--help",),
    ("run-help",),
    ("run-helper\n",),
)
VARIABLES = {
    "PYTHONPATH": "/home/u/py",
    "PYTHONHOME": "/home/u/py",
    "PYTHONSTARTUP": "/home/u/py/evil.py",
    "PYTHONINSPECT": "1",
    "PYTHONUSERBASE": "/home/u/py",
    "PYTHONBREAKPOINT": "os.system",
    "PYTHONWARNINGS": "error",
    "PYTHONDEVMODE": "1",
    "PYTHONPYCACHEPREFIX": "/home/u/py",
    "PYTHONEXECUTABLE": "/home/u/py/python",
    "LD_PRELOAD": "/home/u/py/evil.so",
    "LD_LIBRARY_PATH": "/home/u/py",
    "LD_AUDIT": "/home/u/py/evil.so",
    "GCONV_PATH": "/home/u/py",
    "LOCPATH": "/home/u/py",
    "TMPDIR": "/home/u/py",
    "HOME": "/home/u",
    "IFS": "/",
    "BASH_ENV": "/home/u/py/evil.sh",
    "ENV": "/home/u/py/evil.sh",
    "PATH": "/home/u/py:/usr/bin:/bin",
    "SUDO_UID": "0",
    "SUDO_USER": "root",
    "PKEXEC_UID": "0",
    "DOAS_USER": "root",
    "VIRTUAL_ENV": "/home/u/py",
    "XDG_CONFIG_HOME": "/home/u/py",
    "SYSTEMD_UNIT_PATH": "/home/u/py",
    "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/home/u/py/bus",
    "TERM": "../../../home/u/py/x",
    "TERMINFO": "/home/u/py",
    "SSL_CERT_FILE": "/home/u/py/x",
    "QUIET_HELPER": "/home/u/py/python",
    "LC_ALL": "../../home/u/py",
    "TZ": "/home/u/py/evil.so",
}


class Helper:
    """A helper that sudo has started, and the user's end of its socket."""

    def __init__(self, *arguments: str, stdin: int | None = None, **options: Any) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        with theirs:
            command = [SUDO, "-n", "--", PROGRAM, *(arguments or ("run-helper",))]
            self.done = subprocess.run(
                command,
                stdin=theirs.fileno() if stdin is None else stdin,
                capture_output=True,
                timeout=SECONDS,
                check=False,
                **options,
            )

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def answers(self) -> list[dict[str, Any]]:
        """Its messages until it closes; the user's end sends nothing more."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        text = b""
        with contextlib.suppress(OSError):
            while part := self.socket.recv(1 << 16):
                text += part
        return [json.loads(line) for line in text.splitlines()]

    def ready(self) -> bool:
        """Whether it reports that a profile is applied."""
        text = b""
        with contextlib.suppress(OSError):
            while b"RunReady" not in text and (part := self.socket.recv(1 << 16)):
                text += part
        return b"RunReady" in text


class Lingering(Helper):
    """The helper that has stayed for user u, and a connection to it."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect("/run/quiet/linger.1000")


def asked(data: bytes, reach: Callable[[], Helper] = Helper) -> bool:
    helper = reach()
    helper.send(data)
    return any(answer["kind"] == "RunReady" and answer["profile"] != "bench" for answer in helper.answers())


def moved(pid: Any, mine: int, others: int, reach: Callable[[], Helper] = Helper, profile: str = "bench") -> bool:
    number = {"root's": mine, "other's": others}.get(pid, pid) if isinstance(pid, str) else pid
    helper = reach()
    helper.send(request(profile=profile))
    if not helper.ready():
        return False
    helper.send(start(number))
    return any(answer["kind"] == "Moved" for answer in helper.answers())


def limited(name: str, value: int) -> Callable[[], None]:
    def lower() -> None:
        resource.setrlimit(getattr(resource, name), (value, value))

    return lower


def ignoring() -> None:
    for number in range(1, 32):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))


def no_umask() -> None:
    os.umask(0)


def slow() -> None:
    os.nice(19)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.umask(0o777)


SURROUNDINGS: dict[str, Callable[[], None]] = {
    "umask": no_umask,
    "signals": ignoring,
    "priority": slow,
    "file size": limited("RLIMIT_FSIZE", 0),
    "files": limited("RLIMIT_NOFILE", 64),
    "core": limited("RLIMIT_CORE", 0),
    "cpu time": limited("RLIMIT_CPU", 600),
    "stack": limited("RLIMIT_STACK", 1 << 18),
}


def inputs() -> Iterator[tuple[str, int]]:
    """What may be the helper's standard input besides a socket of its caller's own."""
    for path in ("/dev/null", "/dev/zero", "/dev/urandom", "/etc/passwd", "/proc/self/maps", "/dev/full"):
        yield path, os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
    yield "a pipe", os.pipe()[0]
    yield "UDP", socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("\0hostile")
    listening.listen()
    yield "one that listens", listening.detach()
    root = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):
        root.connect("/run/root.sock")  # whose other end is root's
    yield "root's socket", root.detach()


def main() -> int:
    """`python -m tests.lab.guest.hostile PID-OF-ROOT PID-OF-ANOTHER-USER`, as the user; one JSON object on stdout.

    With a third argument, the profile that lingers, only by the socket of the helper that stays.
    """
    roots, others = map(int, sys.argv[1:3])
    found: list[dict[str, Any]] = []

    def case(kind: str, name: object, gained: bool) -> None:
        found.append({"kind": kind, "case": repr(name)[:80], "gained": gained or os.path.exists(CANARY)})

    if profile := "".join(sys.argv[3:]):
        try:
            case("lingering", "ready", not Lingering().socket.getpeername())
        except OSError as error:  # as for every other user
            print(json.dumps([{"kind": "lingering", "case": error.strerror, "gained": False}]))
            return 0
        for path in PATHS:
            case("lingering: profile", path, asked(request(profile=path), Lingering))
        for data in GARBAGE:
            case("lingering: garbage", data[:40], asked(data, Lingering))
        for pid in PIDS:
            case("lingering: pid", pid, moved(pid, roots, others, Lingering, profile))
        print(json.dumps(found))
        return 0
    for path in PATHS:
        case("profile", path, asked(request(profile=path)))
    for cpus in CPUS:
        case("cpus", cpus, asked(request(cpus=cpus)))
    for data in GARBAGE:
        case("garbage", data[:40], asked(data))
    for pid in PIDS:
        case("pid", pid, moved(pid, roots, others))
    for arguments in ARGUMENTS:
        done = Helper(*arguments).done if arguments else subprocess.run([SUDO, "-n", PROGRAM], check=False)
        case("arguments", arguments, done.returncode == 0)
    for name, value in VARIABLES.items():
        helper = Helper(env={**os.environ, name: value})
        helper.send(request(profile="/home/u/evil.toml"))
        case("environment", name, any(answer["kind"] != "RunFailure" for answer in helper.answers()))
        subprocess.run([SUDO, "-n", f"{name}={value}", PROGRAM, "run-helper"], check=False, capture_output=True)
        case("environment by sudo", name, False)
    for name, before in SURROUNDINGS.items():
        helper = Helper(preexec_fn=before)
        helper.send(request())
        case("surroundings", name, any(answer.get("complete") is False for answer in helper.answers()))
    for name, fd in inputs():
        case("input", name, Helper(stdin=fd).done.returncode == 0 and name != "one that listens")
        os.close(fd)
    for number in range(8):  # symbolic links and files where the helper will look
        with contextlib.suppress(OSError):
            os.symlink("/etc/shadow", f"/run/quiet/queue/{number:020}-1")
        with contextlib.suppress(OSError):
            os.symlink(CANARY, f"/run/quiet/queue/.{time.monotonic_ns():020}-{number}")
        case("links", number, asked(request()))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
