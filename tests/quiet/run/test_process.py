"""What a helper keeps of its caller: nothing that could change what it does."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from quiet.host.host import Host
from quiet.run.process import cleanse


def test_a_small_stack_is_not_inherited(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 18, resource.getrlimit(resource.RLIMIT_STACK)[1]))
            cleanse(Host(str(tmp_path)))
            code = resource.getrlimit(resource.RLIMIT_STACK)[0] != 8 << 20
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
