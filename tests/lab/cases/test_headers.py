"""Modules are built on this machine for the kernels that the lab boots, of both architectures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.harness import debian, headers


def test_only_a_kernel_of_that_architecture_has_a_tree() -> None:
    with pytest.raises(debian.PackageError, match=r"^6\.1\.0-9-amd64 is not a kernel of Debian's for arm64$"):
        headers.tree("6.1.0-9-amd64", "arm64")
    with pytest.raises(debian.PackageError, match="unknown architecture 'vax'"):
        headers.tree("6.1.0-9-amd64", "vax")


def test_a_version_that_left_the_archive_is_reported_in_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def apt(command: list[str], cwd: Path | None = None) -> str:
        raise debian.PackageError(f"{command[0]} exited with 100: E: Unable to locate package")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian, "run", apt)
    monkeypatch.setattr(debian, "_options", lambda *_: [])
    with pytest.raises(
        debian.PackageError, match=r"^no linux-headers-6\.1\.0-9-amd64 and .* in Debian's archive \(any more\?\): .*$"
    ):
        headers.tree("6.1.0-9-amd64", "x86_64")
    assert list((tmp_path / "quiet-lab/headers").glob("[!.]*")) == []


def test_build_programs_are_of_this_machine_and_of_the_kernels_version() -> None:
    assert headers.packages("6.1.0-56-arm64", "arm64") == (
        ["linux-headers-6.1.0-56-arm64", "linux-headers-6.1.0-56-common"],
        ["linux-kbuild-6.1"],
    )
    assert headers.packages("6.12.117+deb12-amd64", "amd64") == (
        ["linux-headers-6.12.117+deb12-amd64", "linux-headers-6.12.117+deb12-common"],
        ["linux-kbuild-6.12.117+deb12"],
    )
