"""Call quiet and cbench on a node, and read the JSON that they print."""

from __future__ import annotations

import json
import os

BIN = {"type": "path", "default": ""}
"""The module parameter for the directory of the two programs; "" searches the PATH."""


def call(module, program, *words, codes=(0,)):
    """The object that `PROGRAM WORDS --json` prints ({} if it prints nothing), and the exit code. Any exit code outside
    `codes` fails the module.
    """
    path = os.path.join(module.params["bin"], program) if module.params["bin"] else program
    code, out, err = module.run_command([path, *words, "--json"])
    if code not in codes:
        module.fail_json(msg=(err.strip().splitlines() or [f"{program} {words[0]}: exit code {code}"])[-1], rc=code)
    try:
        return (json.loads(out) if out.strip() else {}), code
    except ValueError:
        module.fail_json(msg=f"{program} {words[0]}: printed no JSON", stdout=out[:200])
