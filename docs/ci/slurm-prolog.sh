#!/bin/sh
# Slurm's Prolog, as root on the compute node: quiet the host. If it fails, Slurm requeues the job and drains the node.
# Requires nodes that run one job at a time: OverSubscribe=EXCLUSIVE for the partition.
[ -n "${SLURM_JOB_ID:-}" ] || exit 1
case ${SLURM_JOB_OVERSUBSCRIBE:-NO} in # not set before Slurm 23.02
NO | TOPO) exec /usr/local/sbin/quiet-job start ;;
esac
echo "slurm-prolog: job $SLURM_JOB_ID may share this node with other jobs; set OverSubscribe=EXCLUSIVE for its partition" >&2
exit 1
