"""The extension that _build.py makes of c/detector.h, which has the types; CFFI's own values are opaque to Python."""

from typing import Any

lib: Any
ffi: Any
