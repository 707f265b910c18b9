"""In which line of a policy each of its rules stands. Pure; for people only, nothing is decided by it."""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]', re.DOTALL)


def lines_of(data: bytes) -> dict[tuple[str, str], int]:
    """(list, rule) -> line, from 1; of a rule that is there twice the first. Empty for what is no policy."""
    text = data.decode("utf-8", "replace")
    found: dict[tuple[str, str], int] = {}
    path: list[str] = []
    """Names that led here; of a list, the list's own."""
    name = last = ""
    line, read = 1, 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in ("{", "["):
            path.append(name)
            name = ""
        elif word in ("}", "]"):
            del path[-1:]
        elif word == ":":
            name = last
        else:
            last = _string(word)
            line, read = line + text.count("\n", read, token.start()), token.start()
            if len(path) == 3 and path[1] == "permissions" and path[2] in ("deny", "ask", "allow"):
                found.setdefault((path[2], last), line)
    return found


def _string(word: str) -> str:
    try:
        read = json.loads(word)
    except ValueError:
        return ""
    return read if isinstance(read, str) else ""
