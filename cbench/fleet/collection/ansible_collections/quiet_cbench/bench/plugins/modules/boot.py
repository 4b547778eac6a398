"""Put a profile's parameters on the kernel command line of the next boots, or remove them."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quiet_cbench.bench.plugins.module_utils.programs import BIN, call

DOCUMENTATION = """
module: boot
short_description: Apply or remove the boot parameters of a quiet profile
description: Calls C(quiet boot plan), C(apply) and C(remove). Returns C(reboot_needed). Needs root.
options:
  state:
    description: Whether to apply or remove the parameters.
    type: str
    choices: [applied, removed]
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
            "state": {"type": "str", "choices": ["applied", "removed"], "default": "applied"},
            "profile": {"type": "str", "default": "bench"},
            "cpus": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/"},
            "bin": BIN,
        },
        supports_check_mode=True,
    )
    given = module.params
    root = ["--root", given["root"]]
    if given["state"] == "removed":
        placed = call(module, "quiet", "status", *root)[0].get("boot")
        if placed and not module.check_mode:
            call(module, "quiet", "boot", "remove", *root)
        changed = bool(placed)
        module.exit_json(changed=changed, reboot_needed=changed, diff={"before": f"{placed or ''}\n", "after": "\n"})
    chosen = ["--profile", given["profile"], *(["--cpus", given["cpus"]] if given["cpus"] else [])]
    plan = call(module, "quiet", "boot", "plan", *chosen, *root)[0]
    files = plan.get("files") or []
    if files and not module.check_mode:
        call(module, "quiet", "boot", "apply", *chosen, *root)
    diff = {"before": "", "after": "".join(f"{each}\n" for each in files)}
    module.exit_json(changed=bool(files), reboot_needed=not plan.get("in_force", False), diff=diff)


if __name__ == "__main__":
    main()
