"""Unpack a tar file of wheels into this Python's virtual environment without pip. Requires Python 3.11 or newer."""

import configparser
import io
import platform
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

SCRIPT = """#!{python}
import sys

from {module} import {function}

sys.exit({function}())
"""


def misfit(name):
    """The reason why a wheel does not fit this Python, "" if it fits.

    See "Binary distribution format" on packaging.python.org.
    """
    python, abi, where = name.removesuffix(".whl").split("-")[-3:]
    version = sys.version_info[:2]
    if where != "any" and not any(each.endswith(platform.machine()) for each in where.split(".")):
        return f"is for a different machine than {platform.machine()}"
    if abi == "none":
        return ""
    made_for = [(int(each[2]), int(each[3:])) for each in python.split(".")]
    fits = min(made_for) <= version if abi == "abi3" else version in made_for
    return "" if fits else f"is for a different Python than {version[0]}.{version[1]}"


def entry_points(text):
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str
    parser.read_string(text)
    return parser["console_scripts"].items() if parser.has_section("console_scripts") else ()


def main(archive):
    site, scripts = (Path(sysconfig.get_path(name)) for name in ("purelib", "scripts"))
    with tarfile.open(archive) as tar:
        for member in tar:
            if wrong := misfit(member.name):
                sys.exit(f"{member.name} {wrong}: set quiet_cbench_python or ansible_python_interpreter")
            with zipfile.ZipFile(io.BytesIO(tar.extractfile(member).read())) as wheel:
                wheel.extractall(site)  # noqa: S202 - written by cbench.fleet.wheels
                for name in wheel.namelist():
                    if name.endswith(".dist-info/entry_points.txt"):
                        for program, entry in entry_points(wheel.read(name).decode()):
                            module, _, function = entry.partition(":")
                            text = SCRIPT.format(python=sys.executable, module=module, function=function)
                            (scripts / program).write_text(text)
                            (scripts / program).chmod(0o755)
    Path(sys.prefix, "installed").touch()


if __name__ == "__main__":
    main(sys.argv[1])
