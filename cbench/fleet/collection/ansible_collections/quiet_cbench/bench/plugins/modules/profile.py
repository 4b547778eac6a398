"""Apply a quiet profile to a host, or restore the host."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quiet_cbench.bench.plugins.module_utils.programs import BIN, call

DOCUMENTATION = """
module: profile
short_description: Apply a quiet profile, or restore the host
description: Calls C(quiet plan), C(quiet apply) and C(quiet restore). Needs root.
options:
  state:
    description: Whether to apply the profile or restore the host.
    type: str
    choices: [applied, restored]
    default: applied
  profile: {description: Name of a bundled profile or path of a profile file., type: str, default: bench}
  cpus: {description: CPUs to isolate; selected automatically by default., type: str, default: ''}
  root: {description: Directory of a recorded machine to use instead of this host., type: path, default: /}
  bin: {description: Directory of quiet and cbench; searches the PATH by default., type: path, default: ''}
author: the authors of quiet and cbench
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["applied", "restored"], "default": "applied"},
            "profile": {"type": "str", "default": "bench"},
            "cpus": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/"},
            "bin": BIN,
        },
        supports_check_mode=True,
    )
    given = module.params
    root = ["--root", given["root"]]
    if given["state"] == "restored":
        applied = call(module, "quiet", "status", *root)[0].get("applied")
        diff = {"before": f"profile {applied['profile']}\n" if applied else "", "after": ""}
        if applied and not module.check_mode:
            call(module, "quiet", "restore", *root)
        module.exit_json(changed=bool(applied), diff=diff)
    chosen = ["--profile", given["profile"], *(["--cpus", given["cpus"]] if given["cpus"] else [])]
    plan = call(module, "quiet", "plan", *chosen, *root)[0]
    changes = plan["changes"]
    before, after = ("".join(f"{each['target']} = {each[key]}\n" for each in changes) for key in ("current", "wanted"))
    if changes and not module.check_mode:
        code = call(module, "quiet", "apply", *chosen, *root, codes=(0, 1))[1]
        if code:
            module.warn("some settings could not be applied; quiet verify lists them")
    module.exit_json(changed=bool(changes), diff={"before": before, "after": after}, cpus=plan["cpus"])


if __name__ == "__main__":
    main()
