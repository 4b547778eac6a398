"""docs/reference-files.md: the example of each TOML file. `python -m tests.reference.toml_files` writes it."""

from __future__ import annotations

from cbench.screen.config.example import EXAMPLE as SCREEN
from cbench.study.example import EXAMPLE as STUDY
from tests import CHECKOUT

FILE = CHECKOUT / "docs" / "reference-files.md"
PROFILE = CHECKOUT / "quiet" / "profiles" / "bench.toml"


def written() -> str:
    """The page as the code has it now."""
    files = {
        "study.toml": ("What `cbench order init` writes; [study-file](study-file.md) explains each key.", STUDY),
        "screen.toml": ("What `cbench screen init` writes; [screen-file](screen-file.md) explains each key.", SCREEN),
        "profile": ("The profile `bench`; [knobs](knobs.md) explains each knob.", PROFILE.read_text()),
    }
    sections = "".join(
        f"\n## {name}\n\n{intro}\n\n```text\n{text.rstrip()}\n```\n" for name, (intro, text) in files.items()
    )
    return (
        "# Keys of TOML files\n\nWritten by `python -m tests.reference.toml_files`. "
        f"[gate](gate.md) lists the keys of `gate.toml`; "
        f"editors complete and check keys by [schemas](schemas/README.md).\n{sections}"
    )


if __name__ == "__main__":
    FILE.write_text(written())
