#!/bin/sh
# GitLab: pre_build_script = ". /etc/quiet/gitlab-pre-build.sh" of a shell executor; $$ is the shell of the job.
#
# post_build_script is not run after a job that failed, so the host is restored when this shell is gone.
sudo -n /usr/local/sbin/quiet-job during "$$" || exit 1
