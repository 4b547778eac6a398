"""Measure the interruptions of CPUs and return them as the fact quiet_noise."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.quiet_cbench.bench.plugins.module_utils.programs import BIN, call

DOCUMENTATION = """
module: noise
short_description: Measure the interruptions of CPUs and return them as the fact quiet_noise
description: Calls C(quiet noise). Changes nothing.
options:
  cpus: {description: CPUs to measure such as 2-3., type: str, required: true}
  seconds: {description: Duration of the measurement in seconds., type: float, default: 10}
  bin: {description: Directory of quiet and cbench; searches the PATH by default., type: path, default: ''}
author: the authors of quiet and cbench
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "cpus": {"type": "str", "required": True},
            "seconds": {"type": "float", "default": 10},
            "bin": BIN,
        },
        supports_check_mode=True,
    )
    words = ["noise", "--cpus", module.params["cpus"], "--duration", str(module.params["seconds"])]
    found = call(module, "quiet", *words, codes=(0, 1))[0]
    module.exit_json(changed=False, ansible_facts={"quiet_noise": found})


if __name__ == "__main__":
    main()
