"""Load the profiles that the helper accepts: bundled profiles, and root's files in /etc/quiet."""

from __future__ import annotations

import re

from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.machine.trusted_program import who_can_change
from quiet.settings.profile import Profile, bundled, load

FOLDER = "/etc/quiet"
_FILE = re.compile(rf"{FOLDER}/[A-Za-z0-9_-][A-Za-z0-9_.-]*\.toml")


def permitted(reader: Reader, name: str, uid: int) -> Profile:
    """The profile that a user requests by name or path. Root may use any profile.

    Raises Refused if the user may not use it, and QuietError if it cannot be loaded.
    """
    if uid == 0 or name in bundled():
        return load(name)
    if not _FILE.fullmatch(name):
        own = (
            f"{name}: only bundled profiles and files in {FOLDER} are permitted"
            if "/" in name
            else f"no bundled profile {name}"
        )
        raise Refused(f"{own}; for a profile of your own, use `sudo quiet run`, or have root copy it to {FOLDER}")
    if found := who_can_change(reader, [name]):
        raise Refused(
            f"{name}: {found[1]} can change {found[0]}; only root may have this right (chown root:root, chmod go-w)"
        )
    return load(name)
