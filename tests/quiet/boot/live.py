"""A recorded tree that counts as alive: the commands of boot loaders run in it, as small shell scripts of our own.

They do what the real ones do to files: update-grub reads the shell files and writes grub.cfg, grubby edits entries.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from quiet.host.host import Host

_MKCONFIG = """
cd "$ROOT"
. etc/default/grub
for file in etc/default/grub.d/*.cfg; do [ -e "$file" ] && . "./$file"; done
words="$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"
printf "menuentry 'it' {\\n\\tlinux root=UUID=0b0b ro %s\\n}\\n" "$words" > "$CONFIG.new" && mv "$CONFIG.new" "$CONFIG"
"""
_SCRIPTS = {
    "update-grub": "CONFIG=boot/grub/grub.cfg" + _MKCONFIG,
    "grub2-mkconfig": "CONFIG=${2#/}" + _MKCONFIG,
    "grubby": """
cd "$ROOT"
for argument; do case $argument in
    --remove-args=*) for word in ${argument#*=}; do sed -i "/^options/s/ $word\\b//" boot/loader/entries/*; done ;;
    --args=*) sed -i "/^options/s/\\$/ ${argument#*=}/" boot/loader/entries/* ;;
esac; done
""",
    "zipl": ":",
    "u-boot-update": ":",
    "kernel-install": ":",
    "rpm-ostree": ":",
}


class Alive(Host):
    """A host whose commands run in the tree; `broken` ones exit with 1."""

    def __init__(self, root: Path, broken: tuple[str, ...] = ()) -> None:
        super().__init__(str(root))
        self.ran: list[str] = []
        self.broken = broken

    @property
    def live(self) -> bool:
        """It counts as one."""
        return True

    def run(self, *command: str, seconds: float = 600) -> str:
        """Run the script of that name."""
        self.ran.append(" ".join(command))
        if command[0] in self.broken:
            raise OSError(5, f"{command[0]}: it is broken")
        environment = {**os.environ, "ROOT": self.root}
        subprocess.run(["sh", "-ec", _SCRIPTS[command[0]], *command], check=True, env=environment)
        return ""


def killed(work: Callable[[], object], at: int) -> bool:
    """Do `work` in a child that is killed before its n-th change of the disk; False when it ended before."""
    pid = os.fork()
    if pid == 0:
        steps = iter(range(1, 1 << 30))

        def deadly(name: str) -> Callable[..., object]:
            real = getattr(os, name)

            def call(*args: object, **named: object) -> object:
                if next(steps) == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **named)

            return call

        for name in ("replace", "unlink", "mkdir", "rmdir", "fsync"):
            setattr(os, name, deadly(name))
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)
