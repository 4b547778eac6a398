#!/bin/bash
# ACTIONS_RUNNER_HOOK_JOB_STARTED: move the runner's worker, which starts every step, to the isolated CPUs.
set -eu
exec sudo -n /usr/local/sbin/quiet-job start "$PPID"
