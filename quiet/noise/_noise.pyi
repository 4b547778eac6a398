"""The extension that _build.py builds from c/, whose headers have the types; CFFI's values are opaque to Python."""

from typing import Any

lib: Any
ffi: Any
