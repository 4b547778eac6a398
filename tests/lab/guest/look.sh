# Runs in the guest: what this machine is, a line each.
cd /sys/devices/system || exit
show() { printf '%s=%s\n' "$1" "$(cat $2 2>/dev/null | tr '\n' ' ')"; }
show isolated cpu/isolated
show nohz cpu/nohz_full
show online cpu/online
show smt cpu/smt/control
show siblings cpu/cpu0/topology/thread_siblings_list
show nodes node/online
show driver cpu/cpu3/cpufreq/scaling_driver
show range 'cpu/cpu3/cpufreq/scaling_min_freq cpu/cpu3/cpufreq/scaling_max_freq'
printf 'kernel=%s\n' "$(uname -r)"
printf 'user=%s\n' "$(id -u)"
printf 'systemd=%s\n' "$(test -e /run/systemd/system && echo yes || echo no)"
printf 'run=%s\n' "$(test ! -e /run/quiet && mkdir /run/quiet && rmdir /run/quiet && echo writable)"
printf 'tracing=%s\n' "$(test -e /sys/kernel/tracing/events/sched/sched_switch && echo yes)"
printf 'version1=%s\n' "$(test -e /sys/fs/cgroup/cpuset/cpuset.cpus && echo yes || echo no)"
