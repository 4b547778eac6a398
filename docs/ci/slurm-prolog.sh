#!/bin/sh
# Slurm's Prolog, as root on the compute node: quiet the host. If it fails, Slurm requeues the job and drains the node.
[ -n "${SLURM_JOB_ID:-}" ] || exit 1
exec /usr/local/sbin/quiet-job start
