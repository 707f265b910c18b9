"""What can be told of a statement for a database without knowing its dialect: where that is not certain, nobody pretends that it is."""

from __future__ import annotations

import re
import unicodedata

TABLE = re.compile(r"\b(?:from|join|into|update|table|truncate|references)\s+(?:only\s+|if\s+exists\s+)?([\w.]+)")
"""In lower case, without comments and quotes."""
COMMENTS = re.compile(r"/\*.*?\*/|--[^\n]*|#[^\n]*", re.DOTALL)
QUOTES = str.maketrans("", "", '"`[]')
BLURRED = re.compile(r"\b(execute|prepare|do|call|exec|u&)\b|\$\$|\\", re.IGNORECASE)
"""SQL that runs other SQL, or spells names otherwise: which table it is about is not certain."""
_LISTS = re.compile(r"\b(?:from|join|update)\s+[^;()]*?,|\b(?:use|attach|search_path|set)\b")
"""More tables than the first after FROM, or another place to look for them."""
_SOURCES = re.compile(r"\b(?:from|join|into|update|table|truncate|references)\b")
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|upsert|replace|drop|alter|create|truncate|rename|grant|revoke|call|exec|execute|do|copy|into|set|vacuum|reindex"
    r"|attach|detach|load|lock|refresh|import|begin|commit|pragma|handler|outfile|dumpfile|nextval|setval|save|write|put|post|patch|remove)\b"
)


def could_write(said: str) -> str:
    """A word with which what is said could change a database; empty: there is none.

    Comments hide nothing, and a word inside a text that is only compared counts too: they cannot be told apart in every dialect.
    """
    plain = unicodedata.normalize("NFKC", said).lower()
    found = _WRITES.search(plain) or _WRITES.search(COMMENTS.sub("", plain))  # a comment in the middle of a word
    return found.group(0) if found else ""


def tables(said: str) -> list[str] | None:
    """Tables that are named, as they are named (``place.table``), lower case; none where nothing is a statement. None: not certain."""
    normal = unicodedata.normalize("NFKC", said)
    plain = COMMENTS.sub(" ", normal.translate(QUOTES)).lower()
    if not _SOURCES.search(plain) and not _SOURCES.search(normal.lower()):
        return []
    named = TABLE.findall(plain)
    if BLURRED.search(normal) or _LISTS.search(plain) or len(named) != len(_SOURCES.findall(plain)) or COMMENTS.search(normal):
        return None
    return [str(name) for name in named]
