"""Files are read completely, whatever the size of the kernel's pieces."""

from __future__ import annotations

from pathlib import Path

from quiet.host.reader import Reader


def test_a_file_that_the_kernel_gives_a_page_at_a_time_is_read_to_its_end() -> None:
    with open("/proc/self/smaps", "rb", buffering=0) as file:
        assert len(file.read(1 << 16)) < 1 << 13  # which is why one read is not enough
    text = Reader().text("/proc/self/smaps") or ""
    assert "[stack]" in text
    assert text.count("\nVmFlags:") == text.count("\nRss:")


def test_a_file_without_a_final_newline_is_read_completely(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/one").write_bytes(b"x" * 200_000)
    assert len(Reader(str(tmp_path)).text("/sys/one") or "") == 200_000


def test_an_absent_file_is_none_and_an_empty_one_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    reader = Reader(str(tmp_path))
    assert reader.text("/absent") is None
    assert reader.text("/empty") == ""
