"""Recorded machines: apply and restore leave every file of the tree byte for byte as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.settings.apply import apply
from quiet.settings.profile import load
from quiet.settings.restore import restore
from tests import hosts
from tests.trees import contents


@pytest.mark.slow
@pytest.mark.parametrize("archive", hosts.ARCHIVES, ids=lambda path: str(path.name).removesuffix(".tar.gz"))
def test_a_restored_tree_is_byte_for_byte_as_before(archive: Path, tmp_path: Path) -> None:
    host = Host(str(hosts.unpack(archive, tmp_path)))
    before = contents(tmp_path)
    apply(host, load("bench"))
    assert contents(tmp_path) != before
    assert restore(host).complete
    assert contents(tmp_path) == before
