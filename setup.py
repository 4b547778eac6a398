"""Only what pyproject.toml cannot say: the C extensions are built through CFFI in API mode.

One wheel serves every CPython from 3.11 on (the stable ABI). QUIET_CBENCH_PURE=1 leaves the C out: the wheel then runs
anywhere, analyzes results, plans and reports, and cannot measure.
"""

import os
import shlex
import shutil
import sys
import sysconfig

from setuptools import setup

BUILDS = {"bdist_wheel", "editable_wheel", "build_ext"}

if os.environ.get("QUIET_CBENCH_PURE") == "1":
    no_c = {name: ["*"] for name in ("quiet.noise.c", "cbench.c", "cbench.c.workloads", "cbench.kmod")}
    setup(exclude_package_data={**no_c, "quiet.noise": ["*.so", "_noise.c"], "cbench": ["*.so", "_cbench.c"]})
else:
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if BUILDS.intersection(sys.argv) and not shutil.which(compiler):
        sys.exit(
            f"quiet-cbench: no C compiler ({compiler}): install one (Debian: gcc libc6-dev python3-dev), use a wheel, "
            "or set QUIET_CBENCH_PURE=1 to install what analyzes results and cannot measure"
        )
    stable = {} if sysconfig.get_config_var("Py_GIL_DISABLED") else {"bdist_wheel": {"py_limited_api": "cp311"}}
    setup(cffi_modules=["cbench/_build.py:ffibuilder", "quiet/noise/_build.py:ffibuilder"], options=stable)
