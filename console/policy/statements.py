"""What can be told of a statement for a database without knowing its dialect: where that is not certain, nobody pretends that it is."""

from __future__ import annotations

import re
import unicodedata

TABLE = re.compile(r"\b(?:from|join|into|update|table|truncate|references)\s+(?:only\s+|if\s+exists\s+)?([\w.]+)")
"""In lower case, without comments and quotes."""
COMMENTS = re.compile(r"/\*(?:.*?\*/|.*)|--[^\n]*|#[^\n]*", re.DOTALL)
QUOTES = str.maketrans("", "", '"`[]')
BLURRED = re.compile(r"\b(execute|prepare|do|call|exec|u&)\b|\$\$|\\", re.IGNORECASE)
"""SQL that runs other SQL, or spells names otherwise: which table it is about is not certain."""
_FIRST = re.compile(r"\b(?:from|join|update)\s")
"""Tables may follow, with commas between them."""
_END = re.compile(r"[\s;,()]|\Z")
"""What may follow a name: ``users$old`` and ``users@there`` are not ``users``."""
_ELSEWHERE = re.compile(r"\b(?:use|attach|search_path|set)\b")
"""Another place to look for tables."""
_BARE = re.compile(
    r"\b(?:delete|insert|merge|replace)\s+(?:(?:low_priority|high_priority|delayed|quick|ignore|or\s\w+)\s+)*+(?!from\b|into\b)[\w.]"
    r"|(?:^|[;\n(])[ \t\r]*(?:(?:execute|exec|prepare|call|do|copy|handler|lock|describe|desc|analyze|cluster|vacuum|reindex"
    r"|grant|revoke|comment|rename|load|import|export|optimize|repair|checksum|pragma)\b\s*[\w.(]"
    r"|(?:create|alter|drop)\s+(?!(?:temporary\s+|temp\s+|unlogged\s+)?table\b)\w)"
)
"""Statements that name a table without any of those words before it, or run what they do not show."""
_SOURCES = re.compile(r"\b(?:from|join|into|update|table|truncate|references)\b")
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|upsert|replace|drop|alter|create|truncate|rename|grant|revoke|call|exec|execute|do|copy|into|set|vacuum|reindex"
    r"|attach|detach|load|lock|refresh|import|begin|commit|pragma|handler|outfile|dumpfile|nextval|setval|save|write|put|post|patch|remove"
    r"|kill|shutdown|purge|reassign|discard"
    r"|(?:insert|update|delete|replace|remove)_?(?:one|many)|bulk_?write|find_?one_?and_?(?:update|delete|replace)|find_?and_?modify"
    r"|drop_?(?:database|collection|index|indexes))\b"
)


def could_write(said: str) -> str:
    """A word with which what is said could change a database; empty: there is none.

    Comments hide nothing, and a word inside a text that is only compared counts too: they cannot be told apart in every dialect.
    """
    plain = _plain(said).lower()
    found = _WRITES.search(plain) or _WRITES.search(COMMENTS.sub("", plain))  # a comment in the middle of a word
    return found.group(0) if found else ""


def tables(said: str) -> list[str] | None:
    """Tables that are named, as they are named (``place.table``), lower case; none where nothing is a statement. None: not certain."""
    normal = _plain(said)
    plain = COMMENTS.sub(" ", normal.translate(QUOTES)).lower()
    if _BARE.search(plain) or _BARE.search(normal.lower()):
        return None
    if not _SOURCES.search(plain) and not _SOURCES.search(normal.lower()):
        return []
    found = list(TABLE.finditer(plain))
    named = [one[1] for one in found]
    if any(_END.match(plain, one.end()) is None for one in found):
        return None
    if BLURRED.search(normal) or _has_more(plain) or len(named) != len(_SOURCES.findall(plain)) or COMMENTS.search(normal):
        return None
    return named


def _has_more(plain: str) -> bool:
    """Read once from its beginning to its end, however many words it has: an agent wrote it, and everybody waits meanwhile."""
    pieces = ((one, _FIRST.search(one)) for one in re.split(r"[;()]", plain))
    return bool(_ELSEWHERE.search(plain)) or any(first is not None and "," in one[first.end() :] for one, first in pieces)


def _plain(said: str) -> str:
    """Letter by letter: long runs of marks would be put in order, which takes time with the square of their number."""
    return said if said.isascii() else "".join(unicodedata.normalize("NFKC", one) for one in said)
