# Check the requirements of the study; report how to meet a missing one. Changes nothing.
set -u
refuse() { echo "memcached study: $1" >&2; exit 1; }
local='or use ../memcached-local/study.toml, which needs neither root nor systemd'
command -v memcached >/dev/null || refuse 'install the server: apt-get install memcached'
[ -d /run/systemd/system ] || refuse "this host was not booted by systemd; $local"
[ "$(id -u)" = 0 ] || refuse "restarting memcached.service needs root; $local"
systemctl -q is-active memcached.service || refuse "start the server: systemctl start memcached; $local"
