#!/bin/bash
# Runs in the guest, which has systemd: containers and services in quiet.slice, and jobs of runners. See the case.
allowed() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p'; }
look() { python -m tests.lab.guest.snapshot >/run/snapshot.$1; ls -R /run/systemd/system >/run/units.$1; }
left() { # what differs from the start
    look now
    python - <<'P'
import json
from tests.lab.guest.snapshot import compare
texts = [json.load(open(f"/run/snapshot.{name}")) for name in ("before", "now")]
print(*compare(*texts), sep="\n", end="")
P
    diff /run/units.before /run/units.now
}
says() { "$@" >"$LAB_OUT/$NAME" 2>"$LAB_OUT/$NAME.err" || echo "exit code $?" >>"$LAB_OUT/$NAME"; }
box() { podman run --rm --network none "$@" localhost/box cat /proc/self/status; }

tar -C / --keep-directory-symlink -xf $LAB_IN/podman.tar
mkdir -p /etc/containers /run/u && chown 1000:1000 /run/u
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' \
    >/etc/containers/storage.conf
printf '[engine]\ncgroup_manager = "systemd"\nevents_logger = "file"\n' >/etc/containers/containers.conf
echo 'u:x:1000:1000::/run/u:/bin/bash' >>/etc/passwd
echo 'u:x:1000:' >>/etc/group
echo 'u:100000:65536' | tee /etc/subuid >/etc/subgid
chmod u+s /usr/bin/newuidmap /usr/bin/newgidmap
mkdir -p /run/image/bin && cp $LAB_IN/busybox /run/image/bin/ && ln -s busybox /run/image/bin/cat &&
    ln -s busybox /run/image/bin/sleep && tar -C /run/image -cf /run/image.tar .
chmod a+r /run/image.tar
NAME=import says podman import /run/image.tar localhost/box
NAME=before says box
printf '[knobs]\nslices = "quiet"\ncpuset = "quiet"\n"cpuset.mems" = "quiet"\ntasks = "quiet"\n' >/run/mine.toml
systemctl daemon-reload
look before

NAME=apply says quiet apply --profile /run/mine.toml --cpus 2-3
partition() { cat /sys/fs/cgroup/quiet.slice/cpuset.cpus{,.partition}; systemctl is-active quiet.slice; }
NAME=partition says partition
NAME=outside says box
NAME=inside says box --cgroup-parent=quiet.slice
NAME=service says systemd-run --quiet --slice=quiet.slice --wait --pipe cat /proc/self/status
systemctl daemon-reload
NAME=reloaded says partition
NAME=verify says quiet verify --duration 0
podman run -d --name stays --network none --cgroup-parent=quiet.slice localhost/box sleep 600 >/dev/null
NAME=refused says quiet restore
podman rm -f -t 0 stays >/dev/null
NAME=restored says quiet restore
NAME=left says left

user() { setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/run/u XDG_RUNTIME_DIR=/run/u PATH="$PATH" "$@"; }
export -f user
export BOX='podman --cgroup-manager=cgroupfs run --rm --network none --cgroups=disabled localhost/box cat /proc/self/status'
mkdir -p /run/u/.config/containers
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/u/run"\ngraphroot = "/run/u/storage"\n' >/run/u/.config/containers/storage.conf
chown -R 1000:1000 /run/u
NAME=rootless.import says user podman import /run/image.tar localhost/box
NAME=rootless says quiet run --profile /run/mine.toml --cpus 2-3 -- bash -c 'user $BOX'
NAME=rootless.left says left

# runners: a process that starts the hook, the job and the hook at the end, as each of them documents it
mkdir -p /usr/local/bin /usr/local/sbin /etc/quiet
install -m 755 docs/ci/quiet-job /usr/local/sbin/
for name in quiet python; do ln -sf "$(command -v $name)" /usr/local/bin/; done
printf '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n' >/usr/local/bin/sudo # everything is root here
chmod 755 /usr/local/bin/sudo
job() { printf 'PROFILE=/run/mine.toml\nCPUS=2-3\nVERIFY=0\n' >/etc/quiet/job.conf; }
job
cat >/run/github <<'P'
GITHUB_ACTIONS=true; export GITHUB_ACTIONS
bash -e "$ACTIONS_RUNNER_HOOK_JOB_STARTED" || exit 1
sh -c 'cat /proc/self/status'
bash -e "$ACTIONS_RUNNER_HOOK_JOB_COMPLETED"
P
export ACTIONS_RUNNER_HOOK_JOB_STARTED=$PWD/docs/ci/github-job-started.sh
export ACTIONS_RUNNER_HOOK_JOB_COMPLETED=$PWD/docs/ci/github-job-completed.sh
NAME=github says bash /run/github
NAME=github.left says left
printf '[knobs]\nslices = "quiet"\ncpuset = "quiet"\ntasks = "quiet"\n[noise]\nmax_lost = "0%%"\nmax_gap = "1ns"\n' >/run/never.toml
printf 'PROFILE=/run/never.toml\nCPUS=2-3\nVERIFY=1\n' >/etc/quiet/job.conf
NAME=noisy says bash /run/github
NAME=noisy.left says left
job
cat >/run/buildkite <<'P'
BUILDKITE=true; export BUILDKITE
bash docs/ci/buildkite/pre-command || exit 1
bash -c 'cat /proc/self/status'; bash -c false
bash docs/ci/buildkite/pre-exit
P
NAME=buildkite says bash /run/buildkite
NAME=buildkite.left says left
cat >/run/gitlab <<'P'
set -eo pipefail
. docs/ci/gitlab-pre-build.sh
cat /proc/self/status
false
P
NAME=gitlab says bash /run/gitlab
for _ in $(seq 120); do [ -e /run/quiet-job ] || break; sleep 1; done
NAME=gitlab.left says left
NAME=slurm says env -i SLURM_JOB_ID=7 SLURM_JOB_UID=1000 docs/ci/slurm-prolog.sh
NAME=slurm.partition says partition
NAME=slurm.end says env -i SLURM_JOB_ID=7 docs/ci/slurm-epilog.sh
NAME=slurm.left says left
exit 0
