"""Only what pyproject.toml cannot say: the C extension is built through CFFI in API mode."""

from setuptools import setup

setup(cffi_modules=["cbench/_build.py:ffibuilder", "quiet/noise/_build.py:ffibuilder"])
