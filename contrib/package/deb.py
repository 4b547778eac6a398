"""Build a Debian package from a wheel of this project: python contrib/package/deb.py WHEEL FOLDER.

/opt/quiet is a virtual environment for Python 3.11 to 3.14. Its lib/python3.N are links to one directory. The C modules
of this project and of psutil use the stable ABI; cffi's module is included once for each minor version.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages

CHECKOUT = Path(__file__).resolve().parents[2]
MINORS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAMS = {"quiet": "quiet.cli.start", "cbench": "cbench.__main__"}
CONTROL = """\
Package: quiet-cbench
Version: {version}
Architecture: {architecture}
Maintainer: The quiet and cbench authors <root@localhost>
Section: utils
Priority: optional
Installed-Size: {kilobytes}
Depends: python3 (>= 3.11), python3 (<< 3.15), libc6 (>= {glibc})
Suggests: fish, zsh, bash-completion, man-db
Description: make a Linux host quiet for benchmarks, and measure on it
 quiet keeps tasks and interrupts off selected CPUs, verifies the result and
 restores every setting. cbench measures, compares and studies benchmarks.
"""
POSTINST = """\
#!/bin/sh
set -e
[ "$1" != configure ] || /opt/quiet/bin/python3 -m compileall -q /opt/quiet/lib/python3/site-packages || true
"""
# After the removal, no program could restore the host, and services that start quiet would fail. Each step reports
# settings that it cannot restore; in this case the package stays installed.
PRERM = """\
#!/bin/sh
set -e
units=/etc/systemd/system
ours() { grep -qs '^ExecStart=/opt/quiet/' "$units/$1"; }
first() {
    said=$("$@" 2>&1) || {
        printf '%s\\n' "$said" "quiet-cbench stays installed, because this command failed: $*" >&2
        exit 1
    }
}
if [ "$1" = remove ]; then
    first /opt/quiet/bin/quiet lock --no-wait -- true # refuse during a run
    first /opt/quiet/bin/quiet restore
    if ours quiet-watch.service && [ -d /run/systemd/system ]; then
        first systemctl disable --now quiet-watch.service
    fi
    if ours quiet.service; then first /opt/quiet/bin/quiet remove-service; fi
    first /opt/quiet/bin/quiet boot remove
fi
find /opt/quiet/lib/python3 -name __pycache__ -prune -exec rm -rf {} +
"""
POSTRM = """\
#!/bin/sh
set -e
case "$1" in
remove) rm -rf /run/quiet ;;
purge)
    rm -rf /etc/quiet /var/lib/quiet
    unit=/etc/systemd/system/quiet-watch.service
    if grep -qs '^ExecStart=/opt/quiet/' "$unit"; then
        rm "$unit"
        if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
    fi
    ;;
esac
"""


def main(wheel: Path, folder: Path) -> Path:
    """Build the package and return its path."""
    _, version, _, _, platform = wheel.stem.split("-")
    glibc, machine = _needs(platform)
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary, "root")
        environment = root / "opt/quiet"
        _environment(environment, wheel, machine)
        share = root / "usr/share"
        pages.main(share)
        for page in share.glob("man/man1/*"):
            Path(f"{page}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
            page.unlink()
        if (CHECKOUT / "docs/schemas").is_dir():
            shutil.copytree(CHECKOUT / "docs/schemas", share / "quiet/schemas")
        documents = share / "doc/quiet-cbench"
        documents.mkdir(parents=True)
        shutil.copy(CHECKOUT / "LICENSE", documents / "copyright")
        shutil.copy(CHECKOUT / "CHANGELOG.md", documents)
        (root / "usr/bin").mkdir()
        for name in PROGRAMS:
            (root / "usr/bin" / name).symlink_to(f"/opt/quiet/bin/{name}")
        for path in root.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
        root.chmod(0o755)
        size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file())
        control = root / "DEBIAN"
        control.mkdir(mode=0o755)
        values = {"version": version, "architecture": MACHINES[machine], "glibc": glibc}
        (control / "control").write_text(CONTROL.format(kilobytes=size // 1024, **values))
        for name, script in (("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)):
            (control / name).write_text(script)
            (control / name).chmod(0o755)
        made = folder / f"quiet-cbench_{version}_{MACHINES[machine]}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, made], check=True, stdout=subprocess.DEVNULL)
    return made


def _needs(platform: str) -> tuple[str, str]:
    """The glibc and the architecture that a wheel requires, from its tag; the tag `linux` means this host's glibc."""
    if platform.startswith("linux_"):
        return os.confstr("CS_GNU_LIBC_VERSION").split()[1], platform.removeprefix("linux_")
    _, major, minor, machine = platform.split(".", maxsplit=1)[0].split("_", 3)
    return f"{major}.{minor}", machine


def _environment(environment: Path, wheel: Path, machine: str) -> None:
    """Create a virtual environment for /opt/quiet in another directory, without running any of its programs."""
    site, binaries = environment / "lib/python3/site-packages", environment / "bin"
    site.mkdir(parents=True)
    binaries.mkdir()
    for minor in MINORS:
        (environment / f"lib/python{minor}").symlink_to("python3")
    (binaries / "python3").symlink_to("/usr/bin/python3")
    (environment / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    _pip("install", MINORS[0], machine, "--no-compile", "--target", str(site), str(wheel))
    for name in ("bin", "share"):
        shutil.rmtree(site / name, ignore_errors=True)
    version = next(site.glob("cffi-*.dist-info")).name.split("-")[1].removesuffix(".dist")
    for minor in MINORS[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            _pip("download", minor, machine, "--no-deps", "-d", temporary, f"cffi=={version}")
            with zipfile.ZipFile(next(Path(temporary).glob("cffi-*.whl"))) as archive:
                for name in archive.namelist():
                    if name.startswith("_cffi_backend"):
                        archive.extract(name, site)
    for name, module in PROGRAMS.items():
        script = f"#!/opt/quiet/bin/python3\nimport sys\n\nfrom {module} import main\n\nsys.exit(main())\n"
        (binaries / name).write_text(script)


def _pip(command: str, minor: str, machine: str, *words: str) -> None:
    """Run pip for the package's Python and architecture, which may differ from this machine's; glibc 2.36 or older."""
    kinds = [f"manylinux_2_{each}" for each in range(36, 16, -1)] + ["manylinux2014", "linux"]
    platforms = [option for kind in kinds for option in ("--platform", f"{kind}_{machine}")]
    python = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", command, "--only-binary=:all:"]
    subprocess.run([*python, "--python-version", minor, "--implementation", "cp", *platforms, *words], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: deb.py WHEEL FOLDER")
    os.umask(0o022)
    sys.stdout.write(f"{main(Path(sys.argv[1]), Path(sys.argv[2]))}\n")
