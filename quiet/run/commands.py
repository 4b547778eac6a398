"""Detect commands whose processes may run on other CPUs: they pin their children, or start containers.

Containers of docker and podman have cgroups outside the command's cgroup: without a cgroup option, they run on the
housekeeping CPUs. Sources: podman-run(1) and docker-run(1), --cgroup-parent; podman-run(1), --cgroups; the Compose
specification, cgroup_parent.
"""

from __future__ import annotations

import os

from quiet.run.options import NamedTuple

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Sequence

# these programs place their child processes themselves, and a balancing scheduler would move them
_PINNING = frozenset(("taskset", "numactl", "likwid-pin", "likwid-perfctr", "schedtool", "cbench"))
_COMPOSERS = ("docker-compose", "podman-compose")
_ENGINES = ("docker", "podman", "nerdctl", *_COMPOSERS)
_AS_ROOT = ("sudo", "doas")
# programs that execute the command that follows their own arguments, with their options that take a value
_WRAPPERS = {
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-T", "-U", "-D", "-R", "-r", "-t"),
    "doas": ("-u", "-C"),
    "env": ("-u", "-C"),
    "nice": ("-n",),
    "time": ("-f", "-o"),
    "timeout": ("-k", "-s"),
    "stdbuf": ("-i", "-o", "-e"),
    "ionice": ("-c", "-n"),
    "chrt": ("-T", "-P", "-D"),
    "nohup": (),
    "setsid": (),
}
_WITH_WORD = ("timeout", "chrt")  # a duration or a priority comes before the command
_STARTS = ("run", "create")
_STARTED = ("start", "restart", "exec")  # in a container that exists
_COMPOSED = ("up", "run", "create", "start", "restart")
_GROUP_OPTIONS = ("--cgroup-parent", "--cgroups")
# options of the engines, before "run", that take a value
_WITH_VALUE = frozenset(
    (
        *("-H", "--host", "-l", "--log-level", "-c", "--context", "--config", "--connection", "--url", "--identity"),
        *("--root", "--runroot", "--runtime", "--cgroup-manager", "--conmon", "--events-backend", "--storage-driver"),
        *("--storage-opt", "--tmpdir", "--network-config-dir", "--hooks-dir", "--module", "--namespace", "-n"),
        *("--address", "-a", "--snapshotter", "--tlscacert", "--tlscert", "--tlskey", "--volumepath", "--data-root"),
        *("--cni-path", "--cni-netconfpath", "--out", "--ssh", "--imagestore", "--runtime-flag", "--network-cmd-path"),
    )
)


class ContainerStart(NamedTuple):
    """A command that starts a container. Without `option` at `position`, the container runs outside the partition."""

    engine: str
    position: int
    option: str  # "" if no option helps
    reason: str  # the reason why no option helps, for a user without root

    def added(self, command: Sequence[str]) -> list[str]:
        """The command with the option inserted."""
        return [*command[: self.position], self.option, *command[self.position :]]


def pins_itself(command: Sequence[str]) -> str:
    """The program in the command that pins its child processes, such as taskset; "" if none."""
    first = _program(command)
    return command[first] if first is not None and os.path.basename(command[first]) in _PINNING else ""


def is_engine(command: Sequence[str]) -> bool:
    """Whether a command calls a container engine."""
    return _engine(command) is not None


def find_start(command: Sequence[str], group: str, uid: int) -> ContainerStart | None:
    """Detect a command that starts a container without a cgroup option; None for any other command.

    `group`: the cgroup of the isolated CPUs. `uid`: the user of podman; rootless podman cannot leave its user's
    cgroups, and stays in the command's cgroup if it creates none.
    """
    first = _engine(command)
    if first is None:
        return None
    engine = os.path.basename(command[first])
    if any(os.path.basename(word) in _AS_ROOT for word in command[:first]):
        uid = 0
    at = _subcommand(command, first + 1)
    if at is not None and command[at] == "container":
        at = _subcommand(command, at + 1)
    if at is None:
        return None
    parent = group.removeprefix("/") if "." in group else group
    if command[at] == "compose" or engine in _COMPOSERS:
        if not any(word in _COMPOSED for word in command[at:]):
            return None
        return ContainerStart(engine, at, "", f"set `cgroup_parent: {parent}` for its service in the compose file")
    if command[at] in _STARTED:
        return ContainerStart(
            engine, at, "", f"a container stays in its original cgroup; create it with --cgroup-parent={parent}"
        )
    if command[at] not in _STARTS:
        return None
    if any(word.partition("=")[0] in _GROUP_OPTIONS for word in command[at + 1 :]):
        return None
    # docker's daemon starts the container, usually as root; a rootless daemon rejects a slice of the system
    if uid == 0 or engine == "docker":
        return ContainerStart(engine, at + 1, f"--cgroup-parent={parent}", "")
    if engine == "podman":
        return ContainerStart(engine, at + 1, "--cgroups=disabled", "")
    return ContainerStart(
        engine, at + 1, "", f"{engine} without root cannot enter the isolated CPUs' cgroup; use podman"
    )


def warning(start: ContainerStart) -> str:
    """The warning about a container that runs outside the partition, in one line."""
    if not start.option:
        return f"the container will not run on the isolated CPUs: {start.reason}"
    return (
        f"{start.engine} starts the container outside the isolated CPUs; add {start.option} to its options, "
        "or --container to the options of `quiet run`"
    )


def _engine(command: Sequence[str]) -> int | None:
    """The position of a container engine; None if the command is another program."""
    first = _program(command)
    return first if first is not None and os.path.basename(command[first]) in _ENGINES else None


def _program(command: Sequence[str]) -> int | None:
    """The position of the program that a command finally executes: after sudo, env and similar programs."""
    wrapper, valued, due = "", False, False
    for position, word in enumerate(command):
        if valued:
            valued = False
        elif wrapper and word.startswith("-"):
            valued = word in _WRAPPERS[wrapper]
        elif wrapper and "=" in word.partition("/")[0]:
            pass
        elif due:
            due = False
        elif (name := os.path.basename(word)) in _WRAPPERS:
            wrapper, due = name, name in _WITH_WORD
        else:
            return position
    return None


def _subcommand(command: Sequence[str], first: int) -> int | None:
    """The position of the first word that is neither an option nor an option's value."""
    position = first
    while position < len(command):
        word = command[position]
        if not word.startswith("-"):
            return position
        position += 2 if word in _WITH_VALUE else 1
    return None
