#!/bin/busybox sh
# The first process of a guest that boots from a disk: load what the disk and the shared directories need, then hand
# over to the disk's own init.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
    /bin/busybox insmod "$module" || /bin/busybox echo "no $module"
done
root=/dev/vda
read -r line </proc/cmdline
for word in $line; do
    case $word in root=/dev/*) root=${word#root=} ;; esac
done
tries=0
until [ -b "$root" ] || [ $tries = 100 ]; do
    /bin/busybox sleep 0.1
    tries=$((tries + 1))
done
/bin/busybox mount -t ext4 "$root" /root || exec /bin/busybox poweroff -f
/bin/busybox umount /proc
exec /bin/busybox switch_root /root /sbin/init
