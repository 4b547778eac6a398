"""Plain assignments of shell files such as /etc/default/grub. Nothing is executed: what a command prints is unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SET = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)(\+?=)(.*)")
_ESCAPED = {"'": "", '"': '$`"\\'}  # what a backslash takes its meaning from, by the quotes around it; else all
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def variables(texts: Iterable[str]) -> dict[str, str]:
    """The variables after the files were read in this order."""
    values: dict[str, str] = {}
    for text in texts:
        for line in text.replace("\\\n", "").splitlines():
            match = _SET.match(line)
            if match:
                word = _unquoted(match[3], values)
                values[match[1]] = values.get(match[1], "") + word if match[2] == "+=" else word
    return values


def quoted(text: str) -> str:
    """Text as one shell word, between double quotes."""
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def _unquoted(text: str, values: dict[str, str]) -> str:
    """One shell word: quotes taken off, variables put in except between single quotes."""
    made, position, quote = "", 0, ""
    while position < len(text):
        letter = text[position]
        position += 1
        if letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
        elif not quote and letter in " \t;#":
            break
        elif letter == "\\" and position < len(text) and text[position] in _ESCAPED.get(quote, text[position]):
            made += text[position]
            position += 1
        elif letter == "$" and quote != "'" and (match := _VARIABLE.match(text, position - 1)):
            made += values.get(match[1] or match[2], "")
            position = match.end()
        else:
            made += letter
    return made
