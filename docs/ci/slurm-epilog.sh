#!/bin/sh
# Slurm's Epilog, as root on the compute node: restore the host, also after a canceled job.
exec /usr/local/sbin/quiet-job end
