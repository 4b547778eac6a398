#!/bin/sh
# Slurm's Epilog, as root on the compute node: restore, also after a job that was cancelled.
exec /usr/local/sbin/quiet-job end
