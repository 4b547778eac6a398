"""The same work under pyperf: tests/benchmarks/repeatability.py runs it with the library's path in REPEAT_LIBRARY."""

from __future__ import annotations

import ctypes
import os

import pyperf

work = ctypes.CDLL(os.environ["REPEAT_LIBRARY"]).cb_hash_run
work.argtypes, work.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_uint64

pyperf.Runner().bench_func("hash", work, None, int(os.environ["REPEAT_N"]))
