"""Synthetic secrets in every place of a machine where people keep secrets: a recording contains none of them."""

from __future__ import annotations

import base64
import random
import re
import tarfile
from pathlib import Path

import pytest

from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.record.recorder import Recording, record
from quiet.record.redact_command_line import parameters
from quiet.settings.profile import load
from quiet.settings.verify import plan_now
from tests.quiet.boot.requests import make
from tests.quiet.kernels import tree
from tests.trees import plant, task

KNOWN = "isolcpus=managed_irq,domain,2-3 skew_tick=0 quiet"

# ruff: noqa: E501
# @ stands for a secret, another one at each place
LOADERS: dict[str, dict[str, str]] = {
    "grub": {
        "etc/debian_version": "12@",
        "usr/sbin/grub-mkconfig": "#!/bin/sh @\nfor x in ${sysconfdir}/default/grub.d/*.cfg ; do\n",
        "usr/sbin/update-grub": "#!/bin/sh\nexec @\n",
        "boot/grub/grub.cfg": 'set superusers="@"\npassword @ @\npassword_pbkdf2 @ grub.pbkdf2.@\nset kernelopts="root=@ '
        "rd.luks.key=@ ro\"\nmenuentry '@' --id @ {\n set root=@\n search --fs-uuid @\n linux /@/vmlinuz-@ root=@ ro @=1 "
        'x=@ console=@\n linuxefi /vmlinuz quiet @\n module2 /vmlinuz placeholder @=1\n initrd /@\n}\n# @\necho "@"\n',
        "etc/default/grub": "# note @\nGRUB_DISTRIBUTOR=@\nGRUB_TIMEOUT=5@\n"
        f'GRUB_CMDLINE_LINUX_DEFAULT="{KNOWN} @=1 rd.luks.key=@ console=@"\n'
        "GRUB_CMDLINE_LINUX='netroot=iscsi:@:@@h dyndbg=\"file @ quiet\"'\n"
        'GRUB_CMDLINE_LINUX_DEFAULT+=" rd.luks.key=@ -- @ quiet=@"\nexport GRUB_CMDLINE_LINUX_RECOVERY="@ ro" # @\n'
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX \\\n rd.iscsi.password=@ \\\n@"\nGRUB_PASSWORD=@\nEXTRA="rd.luks.key=@"\n'
        'GRUB_CMDLINE_LINUX="$EXTRA ${GRUB_CMDLINE_LINUX} $@ ${@}"\n'
        'GRUB_CMDLINE_@="quiet"\n@=1\nprintf @\n',
        "etc/default/grub.d/50-@.cfg": 'X=@\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX $X @"\n',
    },
    "u-boot-menu": {
        "etc/default/u-boot": 'U_BOOT_PARAMETERS="ro skew_tick=0 rd.luks.key=@"\nU_BOOT_MENU_LABEL="@"\n# @\n',
        "etc/u-boot-menu/conf.d/@.conf": "U_BOOT_ROOT=@\n",
        "usr/sbin/u-boot-update": "#!/bin/sh @\n",
        "boot/extlinux/extlinux.conf": "label @\n append root=@ ro @\n\tAPPEND @\n menu label @\n linux /@\n",
    },
    "extlinux": {
        "boot/extlinux/extlinux.conf": f"default @\nlabel @\n\tmenu label @\n\tAPPEND {KNOWN} root=@ @\n\tlinux /@\n# @\n"
    },
    "fedora": {
        "etc/default/grub": "GRUB_ENABLE_BLSCFG=true\n# @\nGRUB_X=@\n",
        "usr/sbin/grubby": "# @",
        "boot/grub2/grub.cfg": 'set kernelopts="root=@ @"\nblscfg\npassword @ @\n',
        "boot/loader/entries/@.conf": f"title @\nversion @\nlinux /@\ninitrd /@\noptions root=@ {KNOWN} @=1\ngrub_users @\n@\n",
        "etc/kernel/cmdline": "# @\nroot=@ quiet @\n",
        "boot/efi/EFI/@/grub.cfg": "search @\n",
    },
    "systemd-boot": {
        "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f": "systemd-boot 256 @",
        "etc/kernel/cmdline": f"# @ quiet\nroot=@ {KNOWN} @\n",
        "etc/kernel/entry-token": "@",
        "etc/machine-id": "@",
        "efi/loader/entries/@.conf": "title @\noptions quiet @\n",
        "efi/EFI/Linux/@.efi": "@",
        "usr/lib/modules/6.1-@/vmlinuz": "@",
    },
    "zipl": {"etc/zipl.conf": f'[@]\nimage=/@\nparameters="root=@ {KNOWN} @"\nparmfile=/@\n# @\n[menu@]\n1=@\n'},
    "raspberry": {
        "boot/firmware/config.txt": "wifi_pw=@\n",
        "boot/firmware/cmdline.txt": f"root=@ {KNOWN} @ psk=@\n@\n",
    },
}
# Data that plans do not use is not kept either.
LOADERS["grub, by a program"] = LOADERS["grub"] | {
    "etc/default/grub": LOADERS["grub"]["etc/default/grub"]
    + 'GRUB_CMDLINE_LINUX="$(cat /@) `@`"\nif @; then GRUB_CMDLINE_LINUX="@"; fi\n',
}
LOADERS["raspberry, another line"] = LOADERS["raspberry"] | {"boot/firmware/config.txt": "wifi_pw=@\ncmdline=@\n"}
REFUSED = ("grub, by a program", "raspberry, another line")
MACHINE = {
    "proc/cmdline": f"BOOT_IMAGE=/@ root=UUID=@ ro @=1 init=/@ rd.iscsi.password=@ {KNOWN} console=@ -- @",
    "proc/swaps": "Filename Type Size Used Priority\n/home/@/swap file 1024 0 -2\n/dev/mapper/@ partition 1024 0 -3\n",
    "proc/keys": "@",
    "proc/sys/kernel/core_pattern": "|/@ %p",
    "proc/sys/kernel/hostname": "@",
    "proc/mounts": "@ / fuse.@ rw,@ 0 0\n@ /sys/fs/cgroup cgroup2 rw,@ 0 0\nx@ /sys/fs/cgroup/@ cgroup rw,name=@ 0 0\n"
    "@ /dev/cpuset cgroup rw,cpuset,release_agent=/@ 0 0\n@ /home/@ ext4 rw 0 0\ntracefs /home/@/t tracefs rw 0 0\n",
    "sys/class/net/cpu/ifindex": "8",
    "dev/cpuset/@/cpuset.cpus": "0",
    "proc/config.gz": 'CONFIG_LOCALVERSION="-@"\nCONFIG_CMDLINE="@"\nCONFIG_SMP=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_@=y\n',
    "proc/1/cgroup": "0::/@.slice/@.service",
    "proc/1/environ": "A=@",
    "proc/interrupts": " 24: 0 PCI-MSI wg-$-rx-0\n",
    "sys/kernel/irq/24/actions": "wg-$-rx-0",
    "run/quiet/journal": "@",
    "var/lib/quiet/secret": "@",
    "run/systemd/system/": "",
    "run/systemd/container": "@",
    "sys/fs/cgroup/@.slice/cpuset.cpus": "",
    "sys/fs/cgroup/system.slice/@.service/cgroup.procs": "1",
    "etc/systemd/system/tuned.service": "[Service]\nEnvironment=P=@\nExecStart=/usr/bin/tuned \\\n  --password=@\n"
    "[Install]\nWantedBy=@.target multi-user.target\nAlias=@.service\n# @\n",
    "etc/systemd/system/tuned.service.d/@.conf": "[Service]\nEnvironment=A=@ \\\n B=@\n",
    "etc/systemd/system/@.target.wants/tuned.service": "",
    "lib/systemd/system/irqbalance.service": "[Service]\nExecStart=@\n",
    "sys/class/net/wg-$/ifindex": "7",
    "sys/class/net/wg-$/queues/rx-0/rps_cpus": "0",
    "sys/class/net/wg-$/mtu": "1",
    "sys/fs/resctrl/@/schemata": "L3:0=f",
    "sys/devices/virtual/workqueue/wg-$/cpumask": "f",
    **task(200, "@", "0-3"),
    **task(201, "cron@", "0-3"),
    **task(202, "napi/wg-$-0", "0-3", kernel=True),
    "proc/200/cgroup": "0::/kubepods/@",
    "proc/200/cpuset": "/@",
}


def secretive(root: Path, loader: str) -> tuple[Path, list[str]]:
    """A machine with secrets, and these."""
    made = random.Random(loader)
    secrets: list[str] = []

    def secret(_: re.Match[str] | None = None) -> str:
        secrets.append("".join(made.choices("ABCDEFGHJKMNPQRSTVWXYZqjx", k=9)))
        return secrets[-1]

    interface = secret()[:6]
    secrets[-1] = interface
    files: dict[str, str] = {}
    for path, text in (MACHINE | LOADERS[loader]).items():
        shown, content = (part.replace("wg-$", f"wg-{interface}") for part in (path, text))
        files[re.sub("@", secret, shown)] = re.sub("@", secret, content)
    return plant(tree(root), files), secrets


def content(archive: Path) -> str:
    """The content of an archive."""
    parts = []
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member) if member.isfile() else None
            data = file.read() if file else b""
            parts.append(f"{member.name} {member.linkname}\n{data.decode('latin-1')}")
    return "\n".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("loader", sorted(LOADERS))
def test_no_secret_of_a_machine_is_in_its_recording_and_it_plans_alike(tmp_path: Path, loader: str) -> None:
    root, secrets = secretive(tmp_path / "machine", loader)
    reader = Recording(str(root))
    for path in (path for path in root.rglob("*") if path.is_file()):  # even if a caller requests everything
        name = f"/{path.relative_to(root)}"
        if not name.startswith("/proc/20"):
            reader.text(name)
            reader.names(name.rpartition("/")[0])
    record(reader, str(tmp_path / "a.tar.gz"))
    shown = content(tmp_path / "a.tar.gz").lower()
    leaks = [line for line in shown.splitlines() for secret in secrets if secret.lower() in line]
    assert leaks == []
    assert not [line for line in shown.splitlines() if base64.b64encode(b"rd.luks").decode().lower()[:8] in line]
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        tar.extractall(tmp_path / "again", filter="data")
    places = [Reader(str(place)) for place in (root, tmp_path / "again")]
    plans = [plan_now(place, load("bench"), None)[0] for place in places]
    assert plans[0].cpus == plans[1].cpus
    assert len(plans[0].changes) == len(plans[1].changes)
    if loader in REFUSED:
        with pytest.raises(Refused):
            make(places[0], load("strict"))
        return
    made = [make(place, load("strict")) for place in places]
    assert made[0].loader.name == made[1].loader.name
    assert (made[0].merged.add, made[0].merged.drop) == (made[1].merged.add, made[1].merged.drop)
    assert parameters(str(made[0].before)) == parameters(str(made[1].before)) != ""
    assert [change.path.rpartition("/")[0] for change in made[0].files] == [
        change.path.rpartition("/")[0] for change in made[1].files
    ]
