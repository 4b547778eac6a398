"""Configurations in which the plain way would be wrong: each done rightly, or refused with the words to add by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quiet.boot.apply import apply, remove
from quiet.boot.plan import make
from quiet.errors import Refused
from quiet.host import Host, Reader
from quiet.profile import Profile, load
from tests.quiet.boot.trees import grow
from tests.quiet.commands import Quiet
from tests.trees import plant

WANTED = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1 skew_tick=1"


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
def test_tools_that_only_append_are_not_asked_where_init_has_words(tmp_path: Path, bench: Profile, name: str) -> None:
    root = grow(name, tmp_path)
    for path in (root / "proc/cmdline", *(root / "boot").glob("loader/entries/*.conf")):
        path.write_text(path.read_text().rstrip().replace("rhgb quiet", "rhgb") + " -- single\n")
    if name == "fedora":
        entry = next((root / "boot/loader/entries").iterdir())
        entry.write_text("options root=UUID=0b0b ro -- single\n")
    with pytest.raises(Refused, match=f"after.*--.*{WANTED.split(maxsplit=1)[0]}"):
        make(Reader(str(root)), bench, None)


@pytest.mark.parametrize("word", ['dyndbg="module foo +p"', "foo=$bar", "a=`id`", "b=c\\d"])
def test_u_boot_menu_gets_a_line_that_the_shell_reads_as_it_is(tmp_path: Path, bench: Profile, word: str) -> None:
    root = grow("debian-uboot", tmp_path)
    path = root / "etc/default/u-boot"
    path.write_text(f"U_BOOT_PARAMETERS='ro {word}'\n")
    assert configured(root) == f"ro {word}"
    apply(Host(str(root)), bench, None)
    script = path.read_text() + 'printf "%s" "$U_BOOT_PARAMETERS"'
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"ro {word} {WANTED}"


def test_an_entry_that_a_new_kernel_got_meanwhile_loses_our_words_at_remove(tmp_path: Path, bench: Profile) -> None:
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


def test_of_several_lines_each_gets_back_only_what_it_had(tmp_path: Path, bench: Profile) -> None:
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
