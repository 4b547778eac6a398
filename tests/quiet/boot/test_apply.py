"""Apply and remove where the loader's commands run: generated files, failures, kills, and changes by others."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from quiet.boot.apply import remove
from quiet.boot.loaders.loader import BEGIN
from quiet.boot.plan import load_record
from quiet.errors import Incomplete, Refused
from quiet.settings.profile import Profile, load
from tests.quiet.boot.live import Alive, killed
from tests.quiet.boot.requests import apply, make
from tests.quiet.boot.trees import grow, states
from tests.quiet.commands import Quiet

DROP_IN = "etc/default/grub.d/zz-quiet.cfg"
CONFIG = "boot/grub/grub.cfg"
WANTED = "isolcpus=managed_irq,2-3 nohz_full=2-3 irqaffinity=0-1 skew_tick=1"


@pytest.fixture
def bench() -> Profile:
    return load("bench")


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    root = grow("debian", tmp_path)
    Alive(root).run("update-grub")  # its original state is generated from its own files
    return root


def test_grub_cfg_is_regenerated_and_restored_with_its_time(debian: Path, bench: Profile) -> None:
    found = states(debian)
    host = Alive(debian)
    apply(host, bench, None)
    assert f"quiet nomodeset {WANTED}\n" in (debian / CONFIG).read_text()
    done = remove(host)
    assert host.ran == ["update-grub", "update-grub"]
    assert not done.conflicts
    assert states(debian) == found


def test_contradicting_words_are_removed_from_both_variables_by_the_shell(debian: Path, bench: Profile) -> None:
    path = debian / "etc/default/grub"
    path.write_text(
        'GRUB_CMDLINE_LINUX="nohz=off console=ttyS0 skew_tick=0"\n'
        'GRUB_CMDLINE_LINUX_DEFAULT="nohz=off nohz=off isolcpus=1 isolcpus=10 quiet"\n'
    )
    plan = make(Alive(debian), bench, None)
    apply(Alive(debian), bench, None)
    line = (debian / CONFIG).read_text().splitlines()[1].split("ro ", 1)[1]
    assert line.split() == str(plan.merged.line).split()
    assert "nohz=off" not in line
    assert "isolcpus=1 " not in line


@pytest.mark.parametrize("word", ["a.b=c|d", "x=a&b", "y=[z]", "p=a*b", "q=1.5"])
def test_characters_special_to_sed_are_literal(debian: Path, word: str) -> None:
    from quiet.boot.loaders.grub import _block

    script = _block((word,), ("new=1",)) + 'printf "%s\\n" "$GRUB_CMDLINE_LINUX|$GRUB_CMDLINE_LINUX_DEFAULT"'
    lines = {"GRUB_CMDLINE_LINUX": f"one {word} two", "GRUB_CMDLINE_LINUX_DEFAULT": f"{word} {word} {word}x"}
    lines["PATH"] = "/usr/bin:/bin"
    done = subprocess.run(["sh", "-ec", script], env=lines, capture_output=True, text=True, check=True)
    assert done.stdout == f"one two|{word}x new=1\n"


def test_an_original_grub_cfg_that_differs_from_its_inputs_is_restored_too(debian: Path, bench: Profile) -> None:
    (debian / CONFIG).write_text("menuentry 'by hand' { }\n")
    found = states(debian)
    apply(Alive(debian), bench, None)
    assert not remove(Alive(debian)).conflicts
    assert states(debian) == found


def test_a_kernel_installed_since_stays_in_grub_cfg(debian: Path, bench: Profile) -> None:
    apply(Alive(debian), bench, None)
    (debian / "etc/default/grub").write_text('GRUB_CMDLINE_LINUX_DEFAULT="newer"\n')
    Alive(debian).run("update-grub")
    done = remove(Alive(debian))
    assert [path for path, _ in done.conflicts] == [f"/{CONFIG}"]
    assert "newer" in (debian / CONFIG).read_text()
    assert "isolcpus" not in (debian / CONFIG).read_text()
    assert load_record(Alive(debian)) is None


def test_a_failing_command_leaves_everything_unchanged(debian: Path, bench: Profile) -> None:
    found = states(debian)
    with pytest.raises(Refused, match="update-grub: it is broken; every file was restored"):
        apply(Alive(debian, broken=("update-grub",)), bench, None)
    assert states(debian) == found


def test_a_second_apply_whose_command_fails_says_that_the_first_is_gone(debian: Path, bench: Profile) -> None:
    found = states(debian)
    apply(Alive(debian), bench, None)
    with pytest.raises(Refused, match="every file was restored; the earlier parameters were removed: apply them again"):
        apply(Alive(debian, broken=("update-grub",)), bench, "3")
    assert states(debian) == found


def test_a_record_that_cannot_be_written_again_is_an_incomplete_apply(debian: Path, bench: Profile) -> None:
    found = states(debian)
    apply(Alive(debian), bench, None)
    (debian / "var/lib/quiet/boot.json.quiet-new").mkdir()
    with pytest.raises(Incomplete, match="the earlier parameters are partly removed"):
        apply(Alive(debian), bench, "3")
    (debian / "var/lib/quiet/boot.json.quiet-new").rmdir()
    remove(Alive(debian))
    assert states(debian) == found


def test_a_second_apply_whose_command_leaves_no_file_keeps_the_record(tmp_path: Path, bench: Profile) -> None:
    root = grow("ubuntu-s390x", tmp_path)
    found = states(root)
    apply(Alive(root), bench, None)
    with pytest.raises(Incomplete, match="the boot loader may still have the earlier parameters"):
        apply(Alive(root, broken=("zipl",)), bench, "3")
    host = Alive(root)
    remove(host)
    assert host.ran == ["zipl"]
    assert load_record(host) is None
    assert states(root) == found


def test_a_remove_whose_second_command_fails_is_repeated(tmp_path: Path, bench: Profile) -> None:
    root = grow("rhel-s390x", tmp_path)
    apply(Alive(root), bench, None)
    with pytest.raises(Incomplete, match="zipl: it is broken; correct this, then run `quiet boot remove` again"):
        remove(Alive(root, broken=("zipl",)))
    assert load_record(Alive(root))
    host = Alive(root)
    remove(host)
    assert host.ran[-1] == "zipl"
    assert load_record(Alive(root)) is None


def test_a_remove_whose_command_fails_still_restores_files_that_no_other_program_changed(
    debian: Path, bench: Profile
) -> None:
    found = states(debian)
    apply(Alive(debian), bench, None)
    remove(Alive(debian, broken=("update-grub",)))
    assert states(debian) == found


def test_if_it_cannot_restore_the_record_is_kept_for_the_next_attempt(debian: Path, bench: Profile) -> None:
    apply(Alive(debian), bench, None)
    (debian / CONFIG).write_text("menuentry 'other' { linux isolcpus=2-3 }\n")
    with pytest.raises(Incomplete, match="correct this, then run `quiet boot remove`"):
        remove(Alive(debian, broken=("update-grub",)))
    assert load_record(Alive(debian))
    remove(Alive(debian))
    assert "isolcpus" not in (debian / CONFIG).read_text()


def test_text_that_another_program_added_to_our_file_stays(debian: Path, bench: Profile) -> None:
    apply(Alive(debian), bench, None)
    with (debian / DROP_IN).open("a") as file:
        file.write('GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX mine"\n')
    done = remove(Alive(debian))
    assert done.conflicts[0] == (f"/{DROP_IN}", "it was changed after the apply; only quiet's part was removed")
    assert (debian / DROP_IN).read_text() == 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX mine"\n'


def test_text_that_another_program_added_beside_our_block_stays(tmp_path: Path, bench: Profile) -> None:
    root = grow("opensuse", tmp_path)
    path = root / "etc/default/grub"
    before = path.read_text()
    apply(Alive(root), bench, None)
    path.write_text(path.read_text().replace("mitigations=auto", "mitigations=auto,nosmt"))
    done = remove(Alive(root))
    assert "only quiet's part" in done.conflicts[0][1]
    assert path.read_text() == before.replace("mitigations=auto", "mitigations=auto,nosmt")


def test_a_line_changed_by_another_program_loses_only_our_words_and_regains_the_replaced_ones(
    tmp_path: Path, bench: Profile
) -> None:
    root = grow("raspberry", tmp_path)
    path = root / "boot/firmware/cmdline.txt"
    before = path.read_text()
    apply(Alive(root), bench, None)
    path.write_text(path.read_text().replace("console=tty1", "console=tty2"))
    remove(Alive(root))
    assert path.read_text() == before.replace("console=tty1", "console=tty2")


def test_a_changed_file_is_the_original_state_of_a_second_apply(tmp_path: Path, bench: Profile) -> None:
    root = grow("ubuntu-s390x", tmp_path)
    path = root / "etc/zipl.conf"
    apply(Alive(root), bench, None)
    path.write_text(path.read_text().replace("crashkernel=196M", "crashkernel=1G"))
    changed = path.read_text()
    apply(Alive(root), bench, "2")
    assert path.read_text() == changed.replace("2-3", "2").replace("irqaffinity=0-1", "irqaffinity=0-1,3")
    done = remove(Alive(root))
    assert not done.conflicts
    assert 'parameters = "root=UUID=0b0b crashkernel=1G"\n' in path.read_text()


def test_our_file_deleted_by_another_program_is_not_a_reason_to_stop(debian: Path, bench: Profile) -> None:
    found = states(debian)
    apply(Alive(debian), bench, None)
    (debian / DROP_IN).unlink()
    remove(Alive(debian))
    assert states(debian) == found


def test_grubby_removes_its_additions_and_the_entries_are_restored(tmp_path: Path, bench: Profile) -> None:
    root = grow("fedora", tmp_path)
    found = states(root)
    host = Alive(root)
    apply(host, bench, None)
    assert WANTED in next((root / "boot/loader/entries").iterdir()).read_text()
    apply(host, bench, "3")
    assert "nohz_full=3 " in next((root / "boot/loader/entries").iterdir()).read_text()
    assert "2-3" not in next((root / "boot/loader/entries").iterdir()).read_text()
    assert not remove(host).conflicts
    assert states(root) == found


@pytest.mark.parametrize("later", ["arch+2-1.conf", "arch.conf", "arch+3.conf"])
def test_an_entry_whose_tries_were_counted_in_its_name_is_still_known(
    tmp_path: Path, bench: Profile, later: str
) -> None:
    root = grow("arch", tmp_path)
    entries = root / "boot/loader/entries"
    before = (entries / "arch.conf").read_bytes()
    (entries / "arch.conf").rename(entries / "arch+3.conf")
    apply(Alive(root), bench, None)
    (entries / "arch+3.conf").rename(entries / later)
    assert make(Alive(root), bench, None).settled
    assert not remove(Alive(root)).conflicts
    assert (entries / later).read_bytes() == before


def test_an_entry_added_since_loses_only_our_words(tmp_path: Path, bench: Profile) -> None:
    root = grow("fedora", tmp_path)
    apply(Alive(root), bench, None)
    old = next((root / "boot/loader/entries").iterdir())
    new = old.with_name("0b0b-7.0.conf")
    new.write_text(old.read_text() + "# new\n")
    remove(Alive(root))
    assert "options root=UUID=0b0b ro rootflags=subvol=root rhgb quiet\n" in new.read_text()


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("name", ["debian", *(pytest.param(n, marks=SLOW) for n in ("opensuse", "arch", "fedora"))])
def test_an_apply_killed_at_any_step_is_reverted(tmp_path: Path, bench: Profile, name: str) -> None:
    for step in itertools.count(1):
        root = grow(name, tmp_path / str(step))
        found = states(root)
        died = killed(lambda root=root: apply(Alive(root), bench, None), step)  # type: ignore[misc]
        remove(Alive(root))
        left = {path: state for path, state in states(root).items() if found.get(path) != state}
        # grub.cfg may be what its inputs make; nothing else differs, and nothing of ours is in it
        assert not {path for path in left if not path.endswith("grub.cfg")}, f"step {step}"
        assert not [path for path, (data, _, _) in left.items() if b"isolcpus" in data], f"step {step}"
        if not died:
            break
    assert step > 6


@SLOW
@pytest.mark.parametrize("name", ["debian", "arch"])
def test_an_apply_killed_and_repeated_still_knows_the_original_state(tmp_path: Path, bench: Profile, name: str) -> None:
    for step in itertools.count(1):
        root = grow(name, tmp_path / str(step))
        Alive(root).run("update-grub") if name == "debian" else None
        found = states(root)
        died = killed(lambda root=root: apply(Alive(root), bench, None), step)  # type: ignore[misc]
        apply(Alive(root), bench, None)
        assert not remove(Alive(root)).conflicts, f"step {step}"
        assert states(root) == found, f"step {step}"
        if not died:
            break
    assert step > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arch", pytest.param("debian", marks=SLOW)])
def test_a_remove_killed_at_any_step_is_completed_by_the_next(tmp_path: Path, bench: Profile, name: str) -> None:
    for step in itertools.count(1):
        root = grow(name, tmp_path / str(step))
        found = states(root)
        apply(Alive(root), bench, None)
        died = killed(lambda root=root: remove(Alive(root)), step)  # type: ignore[misc]
        remove(Alive(root))
        left = {path: state for path, state in states(root).items() if found.get(path) != state}
        assert not {path for path in left if not path.endswith("grub.cfg")}, f"step {step}"
        assert not [path for path, (data, _, _) in left.items() if b"isolcpus" in data], f"step {step}"
        if not died:
            break
    assert step > 5


@SLOW
def test_another_choice_killed_at_any_step_is_completely_reverted(tmp_path: Path, bench: Profile) -> None:
    for step in itertools.count(1):
        root = grow("arch", tmp_path / str(step))
        found = states(root)
        apply(Alive(root), bench, None)
        died = killed(lambda root=root: apply(Alive(root), bench, "2"), step)  # type: ignore[misc]
        remove(Alive(root))
        assert states(root) == found, f"step {step}"
        if not died:
            break
    assert step > 8


def test_the_record_reveals_no_secret_that_the_files_did_not(debian: Path, bench: Profile) -> None:
    (debian / CONFIG).chmod(0o600)
    apply(Alive(debian), bench, None)
    assert (debian / "var/lib/quiet/boot.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["debian", "opensuse", "debian-uboot"])
def test_without_its_record_the_text_between_the_markers_is_still_removed(
    tmp_path: Path, bench: Profile, name: str
) -> None:
    root = grow(name, tmp_path)
    found = {path: data for path, (data, _, _) in states(root).items() if not path.endswith(("grub.cfg", "boot.json"))}
    apply(Alive(root), bench, None)
    (root / "var/lib/quiet/boot.json").unlink()
    host = Alive(root)
    assert remove(host).files
    assert len(host.ran) == 1
    left = {path: data for path, (data, _, _) in states(root).items() if not path.endswith("grub.cfg")}
    assert left == found
    assert remove(host).files == ()


def test_without_its_record_a_failing_write_is_an_incomplete_remove(tmp_path: Path, bench: Profile) -> None:
    root = grow("opensuse", tmp_path)
    apply(Alive(root), bench, None)
    (root / "var/lib/quiet/boot.json").unlink()
    marked = next(path for path, (data, _, _) in states(root).items() if BEGIN.encode() in data)
    (root / f"{marked}.quiet-new").mkdir()
    host = Alive(root)
    with pytest.raises(Incomplete, match=r"correct this, run `quiet boot remove` again, then run `"):
        remove(host)
    assert host.ran == []
    (root / f"{marked}.quiet-new").rmdir()
    assert remove(host).files == (f"/{marked}",)


def test_the_status_shows_the_content_of_the_boot_configuration(debian: Path, bench: Profile, quiet: Quiet) -> None:
    assert quiet("status", "--root", debian, "--json").json["boot"] is None
    apply(Alive(debian), bench, None)
    assert "boot configuration: bench on CPUs 2-3, by grub\n" in quiet("status", "--root", debian).out
    (debian / "var/lib/quiet/boot.json").write_text("{")
    assert quiet("status", "--root", debian, "--json").json["boot"]["profile"] is None


def test_a_damaged_record_is_named_and_kept(debian: Path, bench: Profile) -> None:
    from quiet.errors import UsageError

    apply(Alive(debian), bench, None)
    (debian / "var/lib/quiet/boot.json").write_text("{")
    with pytest.raises(UsageError, match=r"/var/lib/quiet/boot\.json: damaged"):
        remove(Alive(debian))
    assert (debian / DROP_IN).exists()


def test_the_shown_difference_has_the_file_s_asterisks(debian: Path, quiet: Quiet) -> None:
    path = debian / "etc/default/grub"
    path.write_text("# ***** by hand *****\n" + path.read_text())
    (debian / "etc/default/grub.d/zz-quiet.cfg").write_text("# ** mine **\n")
    assert "# ** mine **" in quiet("boot", "plan", "--root", debian).out
