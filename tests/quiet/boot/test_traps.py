"""Configurations in which the plain way would be wrong: each done rightly, or refused with the words to add by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quiet.boot.apply import remove
from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.settings.profile import Profile, load
from tests.quiet.boot.requests import apply, make
from tests.quiet.boot.trees import grow, states
from tests.quiet.commands import Quiet
from tests.trees import plant

WANTED = "isolcpus=managed_irq,2-3 nohz_full=2-3 irqaffinity=0-1 skew_tick=1"


@pytest.fixture
def bench() -> Profile:
    return load("bench")


def configured(root: Path) -> str:
    return str(make(Reader(str(root)), load("bench"), None).before)


@pytest.mark.parametrize("text", [None, ""])
def test_words_without_a_place_to_put_them_are_refused_and_named(
    quiet: Quiet, tmp_path: Path, text: str | None
) -> None:
    root = grow("unified", tmp_path)
    (root / "etc/kernel/cmdline").unlink()
    (root / "usr/lib/modules/6.12.3/vmlinuz").unlink()
    if text is not None:
        plant(root, {"etc/cmdline.d/root.conf": "root=UUID=0b0b"})
    for what in ("plan", "apply"):
        done = quiet("boot", what, "--root", root)
        assert (done.code, done.err.count("\n")) == (3, 1)
        assert WANTED in done.err


def test_fedora_takes_the_line_of_the_running_kernel_and_not_the_rescue_one(tmp_path: Path) -> None:
    root = grow("fedora", tmp_path)
    entry = next((root / "boot/loader/entries").iterdir())
    text = entry.read_text()
    entry.write_text(text.replace("rhgb quiet", "rhgb quiet isolcpus=1 skew_tick=0"))
    (entry.with_name("0b0b-0-rescue.conf")).write_text("linux /vmlinuz-0-rescue\noptions root=UUID=0b0b ro\n")
    (entry.with_name("0b0b-5.0.conf")).write_text("linux /vmlinuz-5.0\noptions root=UUID=0b0b ro old\n")
    made = make(Reader(str(root)), load("bench"), None)
    assert "isolcpus=1 skew_tick=0" in str(made.before)
    assert "--remove-args=isolcpus=1 skew_tick=0" in made.steps.commands[0]


@pytest.mark.parametrize("words", ["quiet -- nosplash", "-- nosplash"])
def test_grub_gets_the_words_before_the_two_dashes(tmp_path: Path, bench: Profile, words: str) -> None:
    root = grow("debian", tmp_path)
    path = root / "etc/default/grub"
    (root / "etc/default/grub.d/50-cloud.cfg").unlink()
    path.write_text(f'GRUB_CMDLINE_LINUX="console=ttyS0"\nGRUB_CMDLINE_LINUX_DEFAULT="{words}"\n')
    planned = str(make(Reader(str(root)), bench, None).merged.line)
    apply(Host(str(root)), bench, None)
    script = path.read_text() + (root / "etc/default/grub.d/zz-quiet.cfg").read_text()
    script += 'printf "%s" "$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"'
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == planned.split()
    assert planned.endswith(f"{WANTED} -- nosplash")


def test_two_dashes_in_the_line_that_grub_puts_first_are_refused(tmp_path: Path, bench: Profile) -> None:
    root = grow("debian", tmp_path)
    (root / "etc/default/grub").write_text('GRUB_CMDLINE_LINUX="console=ttyS0 -- nosplash"\n')
    with pytest.raises(Refused, match=f"GRUB_CMDLINE_LINUX.*{WANTED}"):
        make(Reader(str(root)), bench, None)


@pytest.mark.parametrize("name", ["fedora", "coreos"])
def test_tools_that_only_append_are_not_used_if_init_has_words(tmp_path: Path, bench: Profile, name: str) -> None:
    root = grow(name, tmp_path)
    for path in (root / "proc/cmdline", *(root / "boot").glob("loader/entries/*.conf")):
        path.write_text(path.read_text().rstrip().replace("rhgb quiet", "rhgb") + " -- single\n")
    if name == "fedora":
        entry = next((root / "boot/loader/entries").iterdir())
        entry.write_text("options root=UUID=0b0b ro -- single\n")
    with pytest.raises(Refused, match=f"after.*--.*{WANTED.split(maxsplit=1)[0]}"):
        make(Reader(str(root)), bench, None)


@pytest.mark.parametrize("word", ['dyndbg="module foo +p"', "foo=$bar", "a=`id`", "b=c\\d"])
def test_u_boot_menu_gets_a_line_that_the_shell_reads_unchanged(tmp_path: Path, bench: Profile, word: str) -> None:
    root = grow("debian-uboot", tmp_path)
    path = root / "etc/default/u-boot"
    path.write_text(f"U_BOOT_PARAMETERS='ro {word}'\n")
    assert configured(root) == f"ro {word}"
    apply(Host(str(root)), bench, None)
    script = path.read_text() + 'printf "%s" "$U_BOOT_PARAMETERS"'
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"ro {word} {WANTED}"


def test_an_entry_that_a_new_kernel_got_since_loses_our_words_at_remove(tmp_path: Path, bench: Profile) -> None:
    root = grow("arch", tmp_path)
    plant(root, {"etc/kernel/cmdline": "root=PARTUUID=0b0b rw skew_tick=0"})
    apply(Host(str(root)), bench, None)
    line = (root / "etc/kernel/cmdline").read_text()
    new = root / "boot/loader/entries/m-7.0.conf"
    new.write_text(f"linux /vmlinuz-7.0\noptions {line}")
    done = remove(Host(str(root)))
    assert [path for path, _ in done.conflicts] == ["/boot/loader/entries/m-7.0.conf"]
    assert new.read_text() == "linux /vmlinuz-7.0\noptions root=PARTUUID=0b0b rw skew_tick=0\n"


def test_an_entry_that_had_the_words_before_apply_keeps_them(tmp_path: Path, bench: Profile) -> None:
    root = grow("arch", tmp_path)
    own = root / "boot/loader/entries/own.conf"
    own.write_text(f"linux /vmlinuz\noptions root=PARTUUID=0b0b {WANTED}\n")
    text = own.read_text()
    apply(Host(str(root)), bench, None)
    own.write_text(text + "# mine\n")
    assert not remove(Host(str(root))).conflicts
    assert own.read_text() == text + "# mine\n"


def test_of_several_lines_each_regains_only_its_own_words(tmp_path: Path, bench: Profile) -> None:
    root = grow("arch", tmp_path)
    first, other = (root / "boot/loader/entries" / name for name in ("arch.conf", "b.conf"))
    first.write_text("linux /a\noptions root=x skew_tick=0\n")
    other.write_text("linux /b\noptions root=x\n")
    apply(Host(str(root)), bench, None)
    for path in (first, other):
        path.write_text("title new\n" + path.read_text().replace("root=x", "root=y"))
    remove(Host(str(root)))
    assert first.read_text() == "title new\nlinux /a\noptions root=y skew_tick=0\n"
    assert other.read_text() == "title new\nlinux /b\noptions root=y\n"


def test_a_folder_that_only_root_can_read_is_not_treated_as_empty(
    tmp_path: Path, bench: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    root = grow("arch", tmp_path)
    real = os.listdir

    def closed(path: str) -> list[str]:
        if "loader/entries" in os.path.realpath(path):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "listdir", closed)
    with pytest.raises(Refused, match="/boot/loader/entries cannot be read; run this with sudo"):
        make(Reader(str(root)), bench, None)


def test_a_file_where_a_folder_belongs_is_named_and_nothing_stays_behind(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("debian", tmp_path)
    (root / "etc/default/grub.d/50-cloud.cfg").unlink()
    (root / "etc/default/grub.d").rmdir()
    plant(root, {"etc/default/grub.d": "a file"})
    found = states(root)
    done = quiet("boot", "apply", "--root", root)
    assert (done.code, done.err.count("/etc/default/grub.d")) == (3, 1)
    assert states(root) == found
    assert quiet("boot", "remove", "--root", root).code == 0


def test_a_partition_that_cannot_be_written_is_named_and_nothing_stays_behind(
    quiet: Quiet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    root = grow("raspberry", tmp_path)
    found = states(root)
    for name in ("open", "unlink"):

        def readonly(path: object, *rest: object, real: object = getattr(os, name), **more: object) -> object:
            if os.path.realpath(str(path)).startswith(str(root / "boot")) and (not rest or int(rest[0]) & os.O_WRONLY):  # type: ignore[call-overload]
                raise OSError(errno.EROFS, "Read-only file system", path)
            return real(path, *rest, **more)  # type: ignore[operator]

        monkeypatch.setattr(os, name, readonly)
    done = quiet("boot", "apply", "--root", root)
    assert (done.code, "/boot/firmware/cmdline.txt: Read-only file system" in done.err) == (3, True)
    assert states(root) == found
    assert quiet("boot", "remove", "--root", root).code == 0


def test_a_line_longer_than_the_kernel_reads_is_refused(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("raspberry", tmp_path)
    path = root / "boot/firmware/cmdline.txt"
    path.write_text(path.read_text().strip() + f" a={'b' * 1900}\n")
    done = quiet("boot", "plan", "--root", root)
    assert (done.code, "2047 bytes" in done.err) == (3, True)


@pytest.mark.slow
def test_an_entry_removed_after_a_killed_apply_stays_removed(tmp_path: Path, bench: Profile) -> None:
    import json

    root = grow("fedora", tmp_path)
    apply(Host(str(root)), bench, None)
    path = root / "var/lib/quiet/boot.json"
    data = json.loads(path.read_text())
    data["state"] = "applying"
    for item in data["generated"]:
        item["after"] = None
    path.write_text(json.dumps(data))
    entry = next((root / "boot/loader/entries").iterdir())
    entry.unlink()
    assert [name for name, _ in remove(Host(str(root))).conflicts] == [f"/{entry.relative_to(root)}"]
    assert not entry.exists()


def test_comments_and_lines_of_the_kernels_file_stay(tmp_path: Path, bench: Profile) -> None:
    root = grow("unified", tmp_path)
    path = root / "etc/kernel/cmdline"
    path.write_text("# why foo\nroot=x skew_tick=0\n\nfoo=1\n")
    apply(Host(str(root)), bench, None)
    assert path.read_text() == f"# why foo\nroot=x\n\nfoo=1 {WANTED}\n"
    path.write_text(path.read_text().replace("foo=1", "foo=2"))
    remove(Host(str(root)))
    assert path.read_text() == "# why foo\nroot=x skew_tick=0\n\nfoo=2\n"


def test_a_memory_test_and_firmware_programs_get_no_words(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("arch", tmp_path)
    others = {"m.conf": "title memtest\nefi /m.efi\noptions a\n", "memtest.conf": "linux /m\noptions b\n"}
    for name, text in others.items():
        (root / "boot/loader/entries" / name).write_text(text)
    assert quiet("boot", "apply", "--root", root).code == 0
    assert {name: (root / "boot/loader/entries" / name).read_text() for name in others} == others


@pytest.mark.parametrize("label", ["LABEL rescue", "LABEL x\n  MENU LABEL Memtest86", "label l0r\n\tlinux /memtest"])
def test_labels_for_repairs_keep_their_line(quiet: Quiet, tmp_path: Path, label: str) -> None:
    root = grow("extlinux", tmp_path)
    path = root / "boot/extlinux/extlinux.conf"
    path.write_text(f"{path.read_text()}{label}\n  APPEND root=x single\n")
    quiet("boot", "apply", "--root", root)
    assert path.read_text().endswith("\n  APPEND root=x single\n")
    assert path.read_text().count("isolcpus") == 2


@pytest.mark.parametrize(
    ("name", "path", "text", "said"),
    [
        ("arch", "etc/NIXOS", "", "boot.kernelParams"),
        ("opensuse", "etc/sysconfig/bootloader", 'LOADER_TYPE="grub2-bls"', "sdbootutil update-all-entries"),
        ("extlinux", "etc/update-extlinux.conf", "default_kernel_opts=x", "update-extlinux"),
        ("raspberry", "boot/firmware/config.txt", "cmdline=other.txt", "cmdline=other.txt"),
        ("unified", "etc/kernel/cmdline", "root=x", "contains a built-in command line"),
    ],
)
def test_files_that_another_tool_regenerates_are_refused_with_that_tools_procedure(
    quiet: Quiet, tmp_path: Path, name: str, path: str, text: str, said: str
) -> None:
    root = plant(grow(name, tmp_path), {path: text})
    if name == "unified":
        (root / "efi/EFI/Linux/0b0b-6.12.3.efi").rename(root / "efi/EFI/Linux/arch-linux.efi")
    done = quiet("boot", "plan", "--root", root)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert said in done.err
    assert ("nohz_full=3" if name == "raspberry" else "nohz_full=2-3") in done.err


def test_images_of_mkinitcpio_are_regenerated_by_it(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("unified", tmp_path)
    (root / "efi/EFI/Linux/0b0b-6.12.3.efi").rename(root / "efi/EFI/Linux/arch-linux.efi")
    preset = 'default_uki="/efi/EFI/Linux/arch-linux.efi"'
    plant(root, {"etc/mkinitcpio.d/linux.preset": preset, "usr/bin/mkinitcpio": ""})
    assert quiet("boot", "apply", "--root", root, "--json").json["not_run"] == ["mkinitcpio -P"]
    assert "which quiet does not compare" in quiet("boot", "remove", "--root", root).out


def test_a_grub_cfg_on_the_efi_partition_without_a_menu_is_ignored(quiet: Quiet, tmp_path: Path) -> None:
    root = grow("opensuse", tmp_path)
    (root / "boot/grub2/grub.cfg").unlink()
    plant(root, {"boot/efi/EFI/opensuse/grub.cfg": "bli\nblscfg"})
    assert quiet("boot", "plan", "--root", root).code == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        'if true; then GRUB_CMDLINE_LINUX="isolcpus=1"; fi',
        'if [ -e /x ]; then\n  GRUB_CMDLINE_LINUX="isolcpus=1"\nfi',
        '[ -e /x ] && GRUB_CMDLINE_LINUX="isolcpus=1"',
        'GRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX/quiet/}"',
        'GRUB_CMDLINE_LINUX="$(cat /x)"',
        'X=`cat /x`\nGRUB_CMDLINE_LINUX="$X"',
        'GRUB_CMDLINE_LINUX="a\nb"',
        ': "${GRUB_CMDLINE_LINUX:=a}"',
    ],
)
def test_shell_that_is_not_understood_is_refused(quiet: Quiet, tmp_path: Path, text: str) -> None:
    root = grow("debian", tmp_path)
    (root / "etc/default/grub").write_text(text + "\n")
    done = quiet("boot", "plan", "--root", root)
    assert (done.code, "is not understood" in done.err, "nohz_full=2-3" in done.err) == (3, True, True)


@pytest.mark.parametrize(
    "text",
    [
        "GRUB_CMDLINE_LINUX='a=\"b c\" $d'  # what it is",
        'export GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT \\\n  quiet"',
        'if true; then\n X=1\nfi\nGRUB_CMDLINE_LINUX+=" x=\\"y z\\""',
        "GRUB_DISTRIBUTOR=`x`; # y\nGRUB_CMDLINE_LINUX=a\\ b\nexport GRUB_CMDLINE_LINUX",
    ],
)
def test_simple_shell_assignments_are_read(quiet: Quiet, tmp_path: Path, text: str) -> None:
    root = grow("debian", tmp_path)
    (root / "etc/default/grub").write_text(text + "\n")
    assert quiet("boot", "plan", "--root", root).code == 0


def test_lines_that_became_equal_regain_their_own_words(tmp_path: Path, bench: Profile) -> None:
    root = grow("extlinux", tmp_path)
    path = root / "boot/extlinux/extlinux.conf"
    text = f"label a\n append root=x skew_tick=0\nlabel b\n append root=x\nlabel c\n append root=x {WANTED}\n"
    path.write_text(text)
    apply(Host(str(root)), bench, None)
    path.write_text("TIMEOUT 5\n" + path.read_text())
    remove(Host(str(root)))
    assert path.read_text() == "TIMEOUT 5\n" + text


def test_a_new_entry_gets_the_words_of_the_kernels_file_and_no_others(tmp_path: Path, bench: Profile) -> None:
    root = grow("arch", tmp_path)
    (root / "boot/loader/entries/arch.conf").write_text("linux /a\noptions root=x skew_tick=0\n")
    plant(root, {"etc/kernel/cmdline": "root=x"})
    apply(Host(str(root)), bench, None)
    new = root / "boot/loader/entries/m-7.0.conf"
    new.write_text(f"linux /m\noptions {(root / 'etc/kernel/cmdline').read_text()}")
    remove(Host(str(root)))
    assert new.read_text() == "linux /m\noptions root=x\n"
