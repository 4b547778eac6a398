"""The types of targets: one object per type, and the functions of the registry."""

from __future__ import annotations

import errno
import importlib
import pkgutil
from pathlib import Path

import pytest

from quiet import targets
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets import registry
from quiet.targets.target_type import TargetType
from tests.trees import plant

CGROUP = {"proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0", "sys/fs/cgroup/cgroup.controllers": "cpuset cpu"}


def test_every_target_type_of_the_folder_is_registered_once() -> None:
    names = [module.name for module in pkgutil.iter_modules(targets.__path__)]
    modules = [importlib.import_module(f"quiet.targets.{name}") for name in names]
    defined = [value for module in modules for value in vars(module).values() if isinstance(value, TargetType)]
    assert sorted(each.word for each in defined) == sorted(each.word for each in registry.TYPES)
    assert len(registry.BY_WORD) == len(registry.TYPES)


def test_an_unknown_word_is_an_error_that_names_the_target() -> None:
    with pytest.raises(ValueError, match="unknown target disk:sda"):
        registry.get(Reader(), "disk:sda")


def test_a_target_that_cannot_be_absent_rejects_none(tmp_path: Path) -> None:
    host = Host(str(plant(tmp_path, {"a": "1"})))
    for target in ("file:/a", "irq:7", "unit:a.service", "task:1"):
        with pytest.raises(OSError, match="cannot be made absent") as refused:
            registry.put(host, target, None)
        assert refused.value.errno == errno.EINVAL
    with pytest.raises(OSError, match="cannot be made absent"):
        registry.put_many(host, [("unit:a.service", "active"), ("unit:b.service", None)])
    assert host.text("/a") == "1"


def test_targets_report_their_written_and_watched_files(tmp_path: Path) -> None:
    reader = Reader(str(plant(tmp_path, CGROUP)))
    written = {target: registry.written_file(reader, target) for target in ("file:/a", "cgroup:/+cpuset", "net:e0/rss")}
    assert written == {
        "file:/a": "/a",
        "cgroup:/+cpuset": "/sys/fs/cgroup/cgroup.subtree_control",
        "net:e0/rss": "",
    }
    assert registry.watched_files(reader, "cgroup:/quiet/cpuset.cpus") == ("/sys/fs/cgroup/quiet/cpuset.cpus",)
    assert len(registry.watched_files(reader, "irq:7")) == 2
    assert registry.watched_files(reader, "workqueue:global") == ("/sys/devices/virtual/workqueue/cpumask",)
    assert registry.watched_files(reader, "task:7") == ()
