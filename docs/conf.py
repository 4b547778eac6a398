"""The site of the documentation: `make docs` builds it from the Markdown pages."""

project = "quiet and cbench"
author = "the authors of quiet and cbench"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
html_theme = "furo"
html_title = project
myst_heading_anchors = 4
# Links to files of the checkout stay links to files; tests/test_links.py checks them. Examples need no highlighting.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure", "myst.header"]
