#!/bin/sh
# GitLab: pre_build_script = ". /etc/quiet/gitlab-pre-build.sh" of a shell executor; $$ is the shell of the job.
#
# GitLab does not run post_build_script after a failed job, so quiet-job restores the host when this shell ends.
sudo -n /usr/local/sbin/quiet-job during "$$" || exit 1
