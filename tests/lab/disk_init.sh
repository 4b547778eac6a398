#!/bin/busybox sh
# The first process of a guest that boots from a disk: load what the disk and the shared directories need, then hand
# over to the disk's own init.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*.ko; do
    /bin/busybox insmod "$module" || /bin/busybox echo "no $module"
done
tries=0
until [ -b /dev/vda ] || [ $tries = 100 ]; do
    /bin/busybox sleep 0.1
    tries=$((tries + 1))
done
/bin/busybox mount -t ext4 /dev/vda /root || exec /bin/busybox poweroff -f
/bin/busybox umount /proc
exec /bin/busybox switch_root /root /sbin/init
