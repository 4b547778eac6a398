#!/bin/busybox sh
# The first process of an arm64 guest: mount what a system has mounted, load needed by the shared directory, and do
# what is asked for there. tracefs is left unmounted, as on a host where nobody traces.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
busybox mkdir -p /proc /sys /dev /run /tmp
busybox mount -t proc -o nosuid,nodev,noexec proc /proc
busybox mount -t sysfs -o nosuid,nodev,noexec sys /sys
busybox mount -t devtmpfs -o mode=755 dev /dev
busybox mkdir -p /dev/pts /dev/shm
busybox mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
busybox mount -t tmpfs -o mode=1777 shm /dev/shm
busybox mount -t tmpfs -o mode=755 run /run
busybox chmod 1777 /tmp # no file system of its own: the checkout may lie below it
busybox mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 /sys/fs/cgroup
busybox ln -sf /proc/self/fd /dev/fd
busybox hostname lab
busybox ip link set lo up
for module in /lib/lab-modules/*.ko; do
    busybox insmod "$module" || echo "no $module"
done
busybox mkdir -p /run/quiet-lab
if busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000 lab /run/quiet-lab; then
    busybox sh /run/quiet-lab/enter
fi
busybox poweroff -f
