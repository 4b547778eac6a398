"""Run Ansible's programs, version 2.14 or later. They are never imported, because their license is the GPL."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from configparser import Error as ConfigParserError
from configparser import RawConfigParser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from cbench.results import JsonValue
from quiet import QuietError, UsageError

COLLECTIONS = Path(__file__).parent / "collection"
FORKS = 50
LOOKERS = 25
"""The maximum number of worker processes that query the nodes: starting a worker takes 35 ms of CPU time, and a query
in it 14 ms.
"""
HOST = re.compile(r"\w[\w.:-]*")
SECRET = re.compile(r'"(ansible_\w*(?:pass|password|passphrase|private_key))"\s*:(?!\s*"\s*\{\{)')
LITERAL = ("quiet_cbench_begin", "quiet_cbench_study", "quiet_cbench_results", "quiet_cbench_wheels")
"""Variables whose texts may contain braces that are not templates."""
CLOSED = re.compile(r"(Shared c|C)onnection to \S+ closed\.$")
"""Matches the line that ssh appends to the error output of a command."""
WISHED = (
    ("pipelining", "ANSIBLE_PIPELINING", "1"),  # modules through stdin: half the connections
    # A persistent connection to a node that lost power would block for hours.
    ("ssh_extra_args", "ANSIBLE_SSH_EXTRA_ARGS", "-o ServerAliveInterval=15 -o ServerAliveCountMax=4"),
)
"""Keys of ansible.cfg, each with the environment variable and the value that are used unless the user configured it."""
BY_SUFFIX = {".json": "auto,yaml", ".yaml": "auto,yaml", ".yml": "auto,yaml", ".toml": "toml"}
"""Inventory plugins by the suffix of the file. Other plugins would take the lines of a damaged file as host names."""
ERROR = re.compile(r"^\[?ERROR[\]!]?:? *(.+)$", re.MULTILINE)
NEEDED = "pip install 'quiet-cbench[fleet]', or install ansible-core from your distribution"
NO_PYTHON = "set ansible_python_interpreter for this node in the inventory"
NO_SUDO = "ansible_become needs it"
NO_TEMPORARY = "no temporary directory: set ansible_remote_tmp to a directory that the node's user may write to"


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a playbook: the reason why each failed host failed, the hosts that changed, and the hosts that did
    not answer.
    """

    failed: Mapping[str, str]
    changed: tuple[str, ...]
    unreachable: frozenset[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of `cbench status` on a host; None if the host did not answer. `why`: Ansible's reason for the missing
    answer, "" if unknown.
    """

    status: str | None = None
    why: str = ""


def program(name: str) -> str:
    """The path of one of Ansible's programs, in Python's directory or on the PATH. Raises UsageError if it is
    missing.
    """
    beside = Path(sys.executable).parent / name
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if path is None:
        raise UsageError(f"{name}: not installed; {NEEDED}")
    return path


def environment() -> dict[str, str]:
    """The environment variables for Ansible: the path of our collection, machine-readable output, and, unless the user
    configured them, faster and safer connections.
    """
    known = _configured()
    usual = "~/.ansible/collections:/usr/share/ansible/collections"
    given = known.get("collections_path", known.get("collections_paths", usual))
    given = os.environ.get("ANSIBLE_COLLECTIONS_PATH", given)
    return {
        **{variable: value for key, variable, value in WISHED if key not in known},
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": f"{COLLECTIONS}:{given}",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_STDOUT_CALLBACK": "default",
        "ANSIBLE_RETRY_FILES_ENABLED": "0",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
        "ANSIBLE_DEPRECATION_WARNINGS": "0",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "LC_ALL": "C.UTF-8",
    }


def _configured() -> dict[str, str]:
    """The keys and values in the ansible.cfg that Ansible reads, with relative paths of collections made absolute."""
    given = Path(os.environ.get("ANSIBLE_CONFIG", "ansible.cfg"))
    places = [given / "ansible.cfg", given, Path("ansible.cfg"), Path("~/.ansible.cfg").expanduser()]
    places.append(Path("/etc/ansible/ansible.cfg"))
    parser = RawConfigParser(strict=False, allow_no_value=True)
    file = next((place for place in places if place.is_file()), Path())
    with suppress(ConfigParserError, UnicodeDecodeError):  # Ansible reports what is wrong
        parser.read(file)
    found = {key: value or "" for section in parser.values() for key, value in section.items()}
    for key in found.keys() & {"collections_path", "collections_paths"}:
        paths = [each if each.startswith("~") else str(file.parent.absolute() / each) for each in found[key].split(":")]
        found[key] = ":".join(paths)
    return found


def hosts(inventory: str) -> tuple[str, ...]:
    """The hosts of an inventory, each once, in the order in which Ansible lists them. Raises UsageError for an unusable
    inventory.
    """
    if "," not in inventory and not Path(inventory).exists():
        raise UsageError(f"-i {inventory}: no such file; end a list of hosts with a comma: -i {inventory},")
    words = [program("ansible-inventory"), "-i", inventory, "--list"]
    known = environment()
    if (plugins := BY_SUFFIX.get(Path(inventory).suffix)) and "enable_plugins" not in _configured():
        known.setdefault("ANSIBLE_INVENTORY_ENABLED", plugins)
    done = subprocess.run(words, env=known, capture_output=True, text=True, check=False)
    try:
        groups = [group for key, group in json.loads(done.stdout).items() if key != "_meta"]
        names = tuple(dict.fromkeys(name for group in groups for name in group.get("hosts", [])))
    except (ValueError, AttributeError):
        names = ()
    if done.returncode or not names:
        raise UsageError(_unusable(inventory, done.stderr))
    if wrong := [name for name in names if not HOST.fullmatch(name)]:
        raise UsageError(
            f"{inventory}: host {wrong[0]!r}: must begin with a letter, a digit or _ and contain only these and . - :, "
            "because it becomes a file name and a pattern of Ansible"
        )
    return names


def _unusable(inventory: str, errors: str) -> str:
    """The reason why an inventory cannot be used, in one line."""
    # One reason per plugin; that of the suitable plugin is first if the suffix selects the plugins, otherwise last.
    reasons = re.findall(r"Failed to parse .*? plugin: (.+)", errors)
    last = (errors.strip() or "it contains no host").splitlines()[-1].removeprefix("[WARNING]: ")
    why = (reasons[0 if Path(inventory).suffix in BY_SUFFIX else -1] if reasons else last).rstrip(".")
    place = re.search(r"^Origin: /.*:(\d+):\d+$", errors, re.MULTILINE)
    return f"{inventory}{f':{place[1]}' if place else ''}: not an Ansible inventory: {why}"


def play(
    inventory: str,
    limit: Sequence[str],
    variables: Mapping[str, JsonValue],
    log: Path,
    lock: int,
    check: bool = False,
) -> Played:
    """Run the playbook of our collection on these hosts and append its output to the log. `lock`: a file descriptor
    that Ansible inherits. Raises QuietError if Ansible fails and reports no result at all.
    """
    words = [program("ansible-playbook"), "-i", inventory, "-f", str(min(FORKS, len(limit)))]
    words += ["-l", ",".join(limit), "-e", _extra(variables), *(["--check", "--diff"] if check else [])]
    done = _run([*words, "quiet_cbench.bench.fleet"], lock)
    with open(log, "a") as file:
        file.write(done.stdout + done.stderr)
    recap = re.findall(
        r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", done.stdout, re.MULTILINE
    )
    reasons = failures(done.stdout)
    failed = {
        host: reasons.get(host, "").strip('"[]') or f"see {log}" for host, _, no, bad in recap if int(no) + int(bad)
    }
    if not recap and done.returncode in (1, 2, 4) and "ERROR" in done.stderr:
        raise QuietError(f"ansible-playbook: {_last(done)}; see {log}")
    missing = {host: _last(done) for host in limit if host not in {row[0] for row in recap}}
    changed = tuple(host for host, count, _, _ in recap if int(count))
    gone = frozenset(host for host, _, no, _ in recap if int(no)) | frozenset(missing)
    return Played({**missing, **failed}, changed, gone)


def failures(stdout: str) -> dict[str, str]:
    """The reason for the failure of each failed host, from the output of a playbook."""
    found = re.findall(r'^fatal: \[([^\]]+)\].*?"msg": (.*?)(?:, "|\}$)', stdout, re.MULTILINE)
    reasons = {host: NO_TEMPORARY if "Failed to create temporary directory" in why else why for host, why in found}
    for host, errors, rest in re.findall(
        r'^fatal: \[([^\]]+)\].*?"module_stderr": "([^"\\]+)(.*)', stdout, re.MULTILINE
    ):
        why = reasons.get(host, "")
        if '"rc": 127' in rest:  # Ansible found no such program
            why = NO_PYTHON if "python" in errors else NO_SUDO
        reasons[host] = f"{errors} ({why})"
    for host, errors in re.findall(r'^fatal: \[([^\]]+)\].*?"stderr": "((?:[^"\\]|\\.)+)"', stdout, re.MULTILINE):
        lines = [each for each in str(json.loads(f'"{errors}"')).splitlines() if each and not CLOSED.match(each)]
        if lines and reasons.get(host, "").startswith('"non-zero return code'):
            reasons[host] = lines[-1]
    return reasons


def static_inventory(text: str) -> JsonValue:
    """A static inventory for Ansible, from the output of an allocation command or an inventory script. Raises
    UsageError for other output, and for a password, which would be stored.
    """
    if secret := SECRET.search(text):
        keys = "use ssh keys or an agent, or a template such as \"{{ lookup('env', 'PASSWORD') }}\""
        raise UsageError(f"fleet.allocate: printed {secret[1]}, and credentials are not stored: {keys}")
    try:
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("not an object")
        if "_meta" not in content:
            return content
        groups = [group for key, group in content.items() if key != "_meta"]
        names = {name for each in groups for name in (each if isinstance(each, list) else each.get("hosts", []))}
        known = content["_meta"].get("hostvars", {})
        return {"all": {"hosts": {name: known.get(name, {}) for name in sorted(names | set(known))}}}
    except (ValueError, TypeError, AttributeError) as error:
        why = error if isinstance(error, ValueError) else "its groups or hosts have the wrong type"
        raise UsageError(
            f"fleet.allocate: its output is not an inventory in JSON: {why}; print one object of groups and hosts"
        ) from None


def look(
    inventory: str, limit: Sequence[str], variables: Mapping[str, JsonValue], tree: Path, lock: int
) -> dict[str, Answer]:
    """The answer of each host for which Ansible reports a result. Uses the raw module, which copies no file to the
    node. `tree`: the directory for Ansible's results; `lock`: a file descriptor that Ansible inherits. Raises
    QuietError if Ansible cannot begin.
    """
    shutil.rmtree(tree, ignore_errors=True)
    leaders = limit[:LOOKERS]
    shares: dict[str, JsonValue] = {
        leader: list(limit[number :: len(leaders)]) for number, leader in enumerate(leaders)
    }
    words = [program("ansible-playbook"), "-i", inventory, "-f", str(len(leaders)), "-l", ",".join(leaders)]
    words += ["-e", _extra({**variables, "quiet_cbench_shares": shares}), "quiet_cbench.bench.looks"]
    kept = {"ANSIBLE_CALLBACKS_ENABLED": "ansible.builtin.tree", "ANSIBLE_CALLBACK_TREE_DIR": str(tree.absolute())}
    done = _run(words, lock, kept)
    if not tree.is_dir() and (error := ERROR.search(done.stderr)):  # Ansible contacted no host
        raise QuietError(f"ansible-playbook: {error[1]}")
    answers = {}
    for leader in leaders:
        try:
            for each in json.loads((tree / leader).read_bytes())["results"]:
                if each.get("unreachable"):
                    lines = [line for line in str(each.get("msg", "")).splitlines() if not CLOSED.match(line)]
                    answers[str(each["item"])] = Answer(None, lines[-1].strip() if lines else "")
                elif isinstance(each.get("stdout"), str):
                    answers[str(each["item"])] = Answer(each["stdout"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
    return answers


def _run(words: Sequence[str], lock: int, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    known = {**environment(), **(more or {})}
    # Use files instead of pipes: Ansible may outlive this process, and would block forever without a reader.
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        done = subprocess.run(
            words, env=known, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=[lock], check=False
        )
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(done.args, done.returncode, out.read(), err.read())


def _extra(variables: Mapping[str, JsonValue]) -> str:
    """The variables for -e, as YAML: JSON in which texts with braces in the variables LITERAL are marked !unsafe, so
    that Ansible does not expand them as templates.
    """

    def marked(value: JsonValue) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(marked, value))}]"
        # Ansible would read !unsafe "true" as a boolean.
        return f"!unsafe {json.dumps(value)}" if isinstance(value, str) and "{" in value else json.dumps(value)

    pairs = ((key, marked(value) if key in LITERAL else json.dumps(value)) for key, value in variables.items())
    return f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in pairs)}}}"


def _last(done: subprocess.CompletedProcess[str]) -> str:
    if error := ERROR.search(done.stderr):
        return error[1]
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
