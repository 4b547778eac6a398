# Runs in a guest on which nothing of this project is: installs its Debian package, uses it, and purges it.
# What each step printed is in $LAB_OUT/STEP, its exit status in $LAB_OUT/STEP.code.
checkout=$PWD
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
cd /root
step() {
    name=$1
    shift
    "$@" >"$LAB_OUT/$name" 2>&1
    echo $? >"$LAB_OUT/$name.code"
}
snapshot() { PYTHONPATH=$checkout python3 -P -B -m tests.lab.guest.snapshot; }
listed() {
    find /opt /usr /etc /var/lib -xdev \( -name __pycache__ -o -path /var/lib/dpkg -o -path /var/lib/apt \
        -o -path /var/lib/systemd -o -path /var/lib/man-db \) -prune -o -print | sort
}
watched() { # the service, and the unit that `quiet watch --unit` prints
    step "service$1" quiet install-service --profile bench
    step "start$1" systemctl restart quiet.service
    quiet watch --unit >/etc/systemd/system/quiet-watch.service 2>/dev/null
    systemctl daemon-reload
    step "watch$1" systemctl enable --now quiet-watch.service
    for _ in $(seq 300); do
        run=$(systemctl show -P InvocationID quiet-watch.service)
        journalctl -q _SYSTEMD_INVOCATION_ID="$run" >"$LAB_OUT/journal$1"
        grep -q ' watching ' "$LAB_OUT/journal$1" && break
        sleep 1
    done
    step "active$1" systemctl is-active quiet.service quiet-watch.service
}

step failed-before systemctl --no-legend --plain --failed
listed >/run/files-before
snapshot >/run/before.json
cp "$LAB_IN"/*.deb package.deb
step install apt-get -y install ./package.deb

step versions sh -c 'quiet --version; cbench --version'
step plan sh -c 'quiet plan --json 2>/dev/null'
step run sh -c 'cbench run hash --quick --trials 5 --no-trace --json 2>/dev/null'
step man man -P cat quiet-install-service
step bash bash -c '. /usr/share/bash-completion/bash_completion
    $(complete -p -D | sed "s/.*-F //; s/ .*//") quiet
    COMP_WORDS=(quiet instal) COMP_CWORD=1
    $(complete -p quiet | sed "s/.*-F //; s/ .*//") quiet instal quiet
    echo "${COMPREPLY[@]}"'
# An interactive zsh, in which the tab key is pressed.
step zsh timeout 300 zsh -fc 'zmodload zsh/zpty
    zpty shell zsh -f -i
    zpty -w shell "autoload -Uz compinit; compinit -u -D; print RE\\ADY"
    zpty -r shell seen "*READY*"
    zpty -w -n shell $'"'quiet instal\t'"'
    zpty -r shell seen "*install-service*"
    print completed'
step fish fish --no-config -c 'set -p fish_complete_path /usr/share/fish/vendor_completions.d; complete -C "quiet instal"'
step schemas ls /usr/share/quiet/schemas

watched -1
step verify quiet verify --duration 0
# A thread that the kernel starts later may run everywhere; the unit has no rights to repair, and verify says what does.
grep -qx 0 "$LAB_OUT/verify.code" || { step again quiet apply --profile bench && step verify quiet verify --duration 0; }
echo 0 >/proc/sys/kernel/watchdog_cpumask # the profile has set it: quiet does not know which value the host should keep
step refused apt-get -y remove quiet-cbench
step kept dpkg-query -W -f '${Status}' quiet-cbench
step forced quiet restore --force
watched -2
step purge apt-get -y purge quiet-cbench

step processes pgrep -af /opt/quiet
step units systemctl --no-legend --plain list-units --all 'quiet*'
step failed systemctl --no-legend --plain --failed
step run-folder ls -d /run/quiet
listed >/run/files-after
diff /run/files-before /run/files-after >"$LAB_OUT/files"
snapshot >/run/after.json
step settings env PYTHONPATH="$checkout" python3 -P -B -c '
import json
from tests.lab.guest import snapshot
before, after = (json.load(open(f"/run/{name}.json")) for name in ("before", "after"))
print(*snapshot.compare(before, after), sep="\n", end="")'
