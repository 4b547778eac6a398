"""The fragments that come with the package: each line has its reason, and is there when it is installed."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from quiet.boot.parameters.registry import BY_NAME
from quiet.errors import UsageError
from quiet.kernel import fragments
from tests import CHECKOUT

FOLDER = CHECKOUT / "kernel-configs"


def test_every_fragment_is_known_by_name() -> None:
    assert sorted((*fragments.NAMES, fragments.LAB)) == sorted(path.stem for path in FOLDER.glob("*.config"))


@pytest.mark.parametrize("name", fragments.NAMES)
def test_every_option_says_why_and_what_it_costs(name: str) -> None:
    for option in fragments.load([name]):
        assert option.why, option.name
        assert option.cost, option.name
        assert option.wanted in ("y", "n")
        assert not option.cost.endswith(".")


def test_every_option_of_the_lab_has_a_reason() -> None:
    assert [option.name for option in fragments.load([fragments.LAB]) if not option.why] == []


def test_no_option_is_in_two_fragments() -> None:
    names = Counter(option.name for option in fragments.load())
    assert [name for name, count in names.items() if count > 1] == []


def test_every_parameter_of_a_command_line_has_its_reason_right_above_it() -> None:
    for path in FOLDER.glob("*.cmdline"):
        lines = path.read_text().splitlines()
        for above, line in itertools.pairwise(lines):
            if not line.startswith("#"):
                name = line.partition("=")[0]
                assert above.startswith((f"# {name}: ", f"# {name.split('.')[0]}: ")), (path.name, line)


def test_every_parameter_is_known_to_quiet_boot() -> None:
    for path in FOLDER.glob("*.cmdline"):
        names = {word.partition("=")[0] for word in fragments.command_line(path.stem).split()}
        assert names <= BY_NAME.keys(), path.name


def test_a_command_line_is_given_without_its_reasons() -> None:
    assert fragments.command_line("lab") == "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3"


def test_a_reason_reaches_until_the_next_comment_or_blank_line() -> None:
    text = "# header\n\n# a thing:\n# without, a loss\nCONFIG_A=y\nCONFIG_B=y\n# another\nCONFIG_C=y\n\nCONFIG_D=y\n"
    found = {option.name: (option.why, option.cost) for option in fragments.parse("x", text)}
    both = ("a thing", "a loss")
    assert found == {"CONFIG_A": both, "CONFIG_B": both, "CONFIG_C": ("another", ""), "CONFIG_D": ("", "")}


def test_the_words_of_a_comment_belong_to_its_own_options_only() -> None:
    text = "# a\n# only: x86\n# shows: /proc/a word\n# also: CONFIG_OLD\nCONFIG_A=y\n# b\n# may show: /b\nCONFIG_B=y\n"
    first, second = fragments.parse("x", text)
    assert (first.only, first.names) == ("x86", ("CONFIG_OLD",))
    assert first.evidence == (fragments.OptionEvidence("/proc/a", "word", True),)
    assert (second.only, second.names) == ("", ())
    assert second.evidence == (fragments.OptionEvidence("/b", "", False),)


def test_a_disabled_option_may_be_written_as_the_kernel_writes_it() -> None:
    (option,) = fragments.parse("x", "# slow: with it, slow\n# CONFIG_SLOW is not set\n")
    assert (option.name, option.wanted, option.cost) == ("CONFIG_SLOW", "n", "slow")


def test_an_unknown_fragment_is_named_with_the_existing_ones() -> None:
    with pytest.raises(UsageError, match=r"frob: no such fragment; known fragments: isolation, cgroup"):
        fragments.load(["frob"])


@pytest.mark.slow
def test_the_installed_package_has_them(tmp_path: Path) -> None:
    build = [sys.executable, "setup.py", "-q", "build_py", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CHECKOUT, check=True, capture_output=True)
    installed = tmp_path / "quiet/kernel-configs"
    assert {path.name for path in installed.iterdir()} >= {path.name for path in FOLDER.glob("*.[cm]*")}
    assert not any(path.is_symlink() for path in (installed, *installed.iterdir()))
