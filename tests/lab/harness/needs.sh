#!/bin/bash
# needs.sh build|lab|arm|kernel|studies|suites|perf|browser|fleet: make sure that what builds the project (boots its test
# machines, builds their kernel, runs its studies and suites of other harnesses, counts as we do, shows its reports) is
# installed.
#
# Looks for the tools themselves, not for packages. What is missing is installed as Debian packages when this user
# may do that without being asked (root, or sudo without a password); otherwise one line says what is missing.
set -euo pipefail

missing=()
has() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; }
has_static_busybox() { has busybox && ! ldd "$(command -v busybox)" 2>/dev/null | grep -q '=>'; }
has_headers() { "$1" -c 'import ensurepip, os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' 2>/dev/null; }

case "${1:-}" in
build)
    has gcc || missing+=(gcc)
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
    has_headers "${2:-python3}" || missing+=(python3 python3-venv python3-dev)
    ;;
lab)
    has qemu-system-x86_64 || missing+=(qemu-system-x86)
    has_static_busybox || missing+=(busybox-static)
    has depmod || missing+=(kmod)
    has iasl || missing+=(acpica-tools)
    has file || missing+=(file)
    has mkfs.ext4 || missing+=(e2fsprogs)
    ;;
arm)
    has qemu-system-aarch64 || missing+=(qemu-system-arm)
    has aarch64-linux-gnu-gcc || missing+=(gcc-aarch64-linux-gnu)
    [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || missing+=(libc6-dev-arm64-cross)
    has depmod || missing+=(kmod)
    ;;
kernel)
    for tool in bc bison flex gcc make perl; do has "$tool" || missing+=("$tool"); done
    has ld || missing+=(binutils)
    has depmod || missing+=(kmod)
    has xz || missing+=(xz-utils)
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
    [ -e /usr/include/gelf.h ] || missing+=(libelf-dev)
    [ -e /usr/include/openssl/opensslv.h ] || missing+=(libssl-dev)
    ;;
studies)
    has fio || missing+=(fio)
    # Where systemd runs Debian's package starts a server at once: there it is for the user to install.
    [ -d /run/systemd/system ] || has memcached || missing+=(memcached)
    ;;
suites)
    has g++ || missing+=(g++)
    [ -e /usr/include/benchmark/benchmark.h ] || missing+=(libbenchmark-dev)
    [ -e /usr/include/catch2/catch.hpp ] || [ -e /usr/include/catch2/catch_all.hpp ] || missing+=(catch2)
    has go || missing+=(golang-go)
    has benchstat || has benchcmp || missing+=(golang-golang-x-tools) # reads our benchfmt
    ;;
perf)
    has perf || missing+=(linux-perf)
    ;;
browser)
    has chromium || has chromium-browser || has google-chrome || missing+=(chromium)
    ;;
fleet)
    # As above: where systemd runs the package starts a server at once.
    [ -d /run/systemd/system ] || has sshd || missing+=(openssh-server)
    has ssh || missing+=(openssh-client)
    ;;
*)
    echo "usage: needs.sh build|lab|arm|kernel|studies|suites|perf|browser|fleet" >&2
    exit 2
    ;;
esac

[ ${#missing[@]} -gt 0 ] || exit 0
as_root=()
if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
if ! has apt-get || ! "${as_root[@]}" true 2>/dev/null; then
    echo "missing: ${missing[*]} (install with: sudo apt-get install --no-install-recommends ${missing[*]})" >&2
    exit 1
fi
echo "==> installing Debian packages: ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends)
# The package lists may be old or not there at all: they are fetched only when installing did not work without.
"${install[@]}" "${missing[@]}" >/dev/null 2>&1 ||
    { "${as_root[@]}" apt-get -qq update && "${install[@]}" "${missing[@]}" >/dev/null; }
