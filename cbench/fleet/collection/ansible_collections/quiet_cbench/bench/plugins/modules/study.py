"""Start a detached cbench measurement, wait for its end, stop it, or make a consistent copy of its store."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import pathlib
import sqlite3
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quiet_cbench.bench.plugins.module_utils.programs import BIN, call

DOCUMENTATION = """
module: study
short_description: Start, stop, await or copy a detached cbench measurement
description: >-
  Idempotent. Resumes an interrupted measurement. An interrupted plain run starts again, and its old store is renamed.
  Fails if a user other than root, the user that runs this module, and the user that became root by sudo can change the
  store, because a store contains the commands that a resumed measurement runs.
options:
  data: {description: Path of the store., type: path, required: true}
  state:
    description: The state to reach.
    type: str
    choices: [started, finished, stopped, fetched]
    default: started
  begin: {description: Arguments of cbench; required for started., type: list, elements: str, default: []}
  chdir: {description: Working directory of the measurement., type: path, default: ''}
  copy: {description: Path of the copy that fetched creates; DATA.copy by default., type: path, default: ''}
  timeout: {description: Maximum time in seconds to wait for finished., type: int, default: 86400}
  bin: {description: Directory of quiet and cbench; searches the PATH by default., type: path, default: ''}
author: the authors of quiet and cbench
"""
RESUMED = {"order": ("order", "resume"), "screen": ("screen", "resume"), "ab": ("ab", "--resume")}


def status(module):
    """The output of `cbench status` for the store; None if nothing was started. Another user's store fails the module
    with exit code 3.
    """
    data, state = module.params["data"], module.params["state"]
    new = not os.path.exists(data) and not os.path.exists(data + ".job")
    if new and (state != "started" or module.check_mode):
        return None
    # 2: there is no store, or only a damaged one, which is copied nevertheless.
    codes = (0, 2) if new or state == "fetched" else (0,)
    answer, code = call(module, "cbench", "status", "--trusted", data, codes=codes)
    return None if new or code else answer["jobs"][0]


def start(module, found):
    data, begin = module.params["data"], module.params["begin"]
    if not begin:
        module.fail_json(msg="begin: required for state=started")
    if found and found["state"] in ("running", "finished"):
        return False
    if module.check_mode:
        return True
    words = list(begin)
    resumed = RESUMED.get(begin[0])
    if found and resumed and (found["trials"] is not None or found["trials_done"]):
        words = [*resumed, data]
    elif found and not resumed and os.path.exists(data):
        os.replace(data, f"{data}.cut-{int(time.time())}")
    if module.params["chdir"]:
        if not os.path.isdir(module.params["chdir"]):
            module.fail_json(msg=f"chdir: {module.params['chdir']}: no such directory")
        os.chdir(module.params["chdir"])
    end = words.index("--") if "--" in words else len(words)
    words.insert(end, "--detach")
    path = os.path.join(module.params["bin"], "cbench") if module.params["bin"] else "cbench"
    code, _, err = module.run_command([path, *words])
    if code == 3 and (status(module) or {}).get("state") == "running":  # the measuring process outlived its supervisor
        return False
    if code:
        module.fail_json(msg=(err.strip().splitlines() or [f"exit code {code}"])[-1], rc=code)
    if not os.path.exists(data) and not os.path.exists(data + ".job"):
        module.fail_json(msg=f"begin: this command does not write to {data}; add -o {data} to it")
    return True


def fetch(module):
    data = module.params["data"]
    copy = module.params["copy"] or data + ".copy"
    if not os.path.exists(data):
        module.exit_json(changed=False, path="")
    if module.check_mode:
        module.exit_json(changed=not os.path.exists(copy), path=copy)
    fresh = f"{copy}.{os.getpid()}"
    if not os.path.isdir(os.path.dirname(os.path.abspath(copy))):
        module.fail_json(msg=f"{copy}: no such directory")
    try:
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))  # follows no link
    except OSError as error:
        module.fail_json(msg=f"{fresh}: {error.strerror}")
    try:
        with (
            contextlib.closing(
                sqlite3.connect(pathlib.Path(data).absolute().as_uri() + "?mode=ro", uri=True)
            ) as source,
            contextlib.closing(sqlite3.connect(fresh)) as target,
        ):
            with target:
                source.backup(target)
            target.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        if os.path.exists(fresh):
            os.unlink(fresh)
        module.fail_json(msg=f"{data}: {error}")
    try:
        changed = not (os.path.exists(copy) and filecmp.cmp(fresh, copy, shallow=False))
        os.replace(fresh, copy)
    except OSError as error:
        os.unlink(fresh)
        module.fail_json(msg=f"{copy}: {error.strerror}")
    module.exit_json(changed=changed, path=copy)


def main():
    module = AnsibleModule(
        argument_spec={
            "data": {"type": "path", "required": True},
            "state": {"choices": ["started", "finished", "stopped", "fetched"], "default": "started"},
            "begin": {"type": "list", "elements": "str", "default": []},
            "chdir": {"type": "path", "default": ""},
            "copy": {"type": "path", "default": ""},
            "timeout": {"type": "int", "default": 86400},
            "bin": BIN,
        },
        supports_check_mode=True,
    )
    found = status(module)
    if module.params["state"] == "fetched":
        fetch(module)
    changed = False
    if module.params["state"] == "started":
        changed = start(module, found)
    elif module.params["state"] == "stopped":
        changed = bool(found) and found["state"] == "running"
        # Stop it even if it is not running now: systemd may resume it at the next boot.
        if found and found["state"] != "finished" and not module.check_mode:
            call(module, "cbench", "stop", module.params["data"])
    else:
        limit = time.monotonic() + module.params["timeout"]
        while not module.check_mode and found and found["state"] == "running" and time.monotonic() < limit:
            time.sleep(2)
            found = status(module)
        if not module.check_mode and (not found or found["state"] != "finished"):
            module.fail_json(msg=f"{module.params['data']}: not finished: {json.dumps(found)}")
    module.exit_json(changed=changed, status=None if module.check_mode else status(module))


if __name__ == "__main__":
    main()
