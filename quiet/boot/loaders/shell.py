"""Parse plain assignments in shell files such as /etc/default/grub.

The files are not executed, so the output of commands in them is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SET = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)(\+?=)(.*)")
_ESCAPED = {"'": "", '"': '$`"\\'}  # characters that \ escapes in these quotes; outside quotes, it escapes all
_OPENS = re.compile(r"(?:^|[;&|]\s*)(?:if|case|for|while|until)\s|\{$")
_CLOSES = re.compile(r"(?:^|[;&|]\s*)(?:fi|esac|done|\})(?=$|[\s;&|])")
_VALUE = r"""'[^']*'|"(?:[^"\\$`]|\\.|\$\w+(?!\w)|\$\{\w+\})*"|[^\s'"\\$`;&|()#]|\\.|\$\w+(?!\w)|\$\{\w+\}"""
_PLAIN = re.compile(rf"(?:export\s+)?[A-Za-z_]\w*\+?=(?:{_VALUE})*\s*;?\s*(?:\s#.*)?")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def variables(texts: Iterable[str]) -> dict[str, str]:
    """The values of the variables after all files were read, in this order."""
    values: dict[str, str] = {}
    for text in texts:
        for line in text.replace("\\\n", "").splitlines():
            match = _SET.match(line)
            if match:
                word = _unquoted(match[3], values)
                values[match[1]] = values.get(match[1], "") + word if match[2] == "+=" else word
    return values


def unclear(texts: Iterable[str], names: Iterable[str]) -> str:
    """The first line that sets one of these variables in a way that is not supported here; "" if there is none."""
    names, used, depth = set(names), set[str](), 0
    texts = [text.replace("\\\n", "") for text in texts]
    about = re.compile(rf"(?<!\w)({'|'.join(names)})(:?\+?=|$)|\bunset\b.*(?<!\w)({'|'.join(names)})\b")
    for line in "\n".join(texts).splitlines():
        code = line.strip()
        if code.startswith("#"):
            continue
        if about.search(code) and not re.fullmatch(r"export\s+\w+", code) and (depth or not _PLAIN.fullmatch(code)):
            return code
        if about.search(code):
            used |= {match[1] or match[2] for match in _VARIABLE.finditer(code)}
        depth += len(_OPENS.findall(code)) - len(_CLOSES.findall(code))
    return unclear(texts, used | names) if used - names else ""


def quoted(text: str) -> str:
    """Quote text with double quotes as one shell word."""
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def _unquoted(text: str, values: dict[str, str]) -> str:
    """The first shell word of a text, without quotes and with variables expanded, except between single quotes."""
    word, position, quote = "", 0, ""
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
            word += text[position]
            position += 1
        elif letter == "$" and quote != "'" and (match := _VARIABLE.match(text, position - 1)):
            word += values.get(match[1] or match[2], "")
            position = match.end()
        else:
            word += letter
    return word
