# Sourced in a guest: users `u` (1000), who may use sudo for quiet's helper without a password, and `v` (1001), who
# may not; Debian's sudo from $SUDO, a folder that its package was unpacked in. `as u CMD...` runs a command as a user.

sed -i '/^[^:]*:[^:]*:100[012]:/d' /etc/passwd /etc/group
printf 'u:x:1000:1000::/home/u:/bin/sh\nv:x:1001:1001::/home/v:/bin/sh\n' >>/etc/passwd
printf 'u:x:1000:\nv:x:1001:\nextra:x:1002:u\n' >>/etc/group
mkdir -p /home/u /home/v /opt/lab/bin /usr/libexec/sudo /etc/sudoers.d
chown 1000:1000 /home/u && chown 1001:1001 /home/v
cp "$SUDO/usr/libexec/sudo/"* /usr/libexec/sudo/
cp "$SUDO/usr/bin/sudo" /opt/lab/bin/sudo && chown 0:0 /opt/lab/bin/sudo && chmod 4755 /opt/lab/bin/sudo
printf 'auth sufficient pam_permit.so\naccount sufficient pam_permit.so\nsession sufficient pam_permit.so\n' >/etc/pam.d/sudo
QUIET=$(command -v quiet)
printf '%s\n' 'Defaults secure_path="/usr/sbin:/usr/bin:/sbin:/bin:/opt/lab/bin"' 'Defaults !fqdn' \
    'root ALL=(ALL) ALL' "u ALL=(root) NOPASSWD: $QUIET run-helper" >/etc/sudoers
chown 0:0 /etc/sudoers && chmod 440 /etc/sudoers
PATH=/opt/lab/bin:$PATH

# Python may be installed below a folder that only root may enter.
if ! setpriv --reuid 1000 --clear-groups test -x "$(readlink -f "$(command -v python)")"; then
    folder=$(python -c 'import sys; print(sys.base_prefix)')
    above=/$(echo "$folder" | cut -d/ -f2)
    mkdir -p /run/lab-python && mount --bind "$folder" /run/lab-python
    mount -t tmpfs -o mode=755 none "$above" && mkdir -p "$folder" && mount --bind /run/lab-python "$folder"
fi

as() {
    user=$1
    shift
    setpriv --reuid "$user" --regid "$user" --init-groups env -i PATH="$PATH" HOME="/home/$user" USER="$user" \
        LOGNAME="$user" LC_ALL=C.UTF-8 VIRTUAL_ENV="$VIRTUAL_ENV" "$@"
}
