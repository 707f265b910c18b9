"""Words that could change a database, wherever they stand: for what no parser reads, and where dialects read a text differently."""

from __future__ import annotations

import re
import unicodedata

_COMMENTS = re.compile(r"/\*(?:.*?\*/|.*)|--[^\n]*|#[^\n]*", re.DOTALL)
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|upsert|replace|drop|alter|create|truncate|rename|grant|revoke|call|exec|execute|do|copy|into|set|vacuum|reindex"
    r"|attach|detach|load|lock|refresh|import|begin|commit|pragma|handler|outfile|dumpfile|nextval|setval|save|write|put|post|patch|remove"
    r"|kill|shutdown|purge|reassign|discard|deny|backup|restore|dbcc|waitfor|reconfigure|checkpoint|bulk|xp_\w+|sp_\w+|openrowset|opendatasource"
    r"|(?:insert|update|delete|replace|remove)_?(?:one|many)|bulk_?write|find_?one_?and_?(?:update|delete|replace)|find_?and_?modify"
    r"|drop_?(?:database|collection|index|indexes))\b"
)


def could_write(said: str) -> str:
    """A word with which what is said could change a database; empty: there is none.

    Comments hide nothing, and a word inside a text that is only compared counts too: they cannot be told apart in every dialect.
    """
    text = plain(said).lower()
    found = _WRITES.search(text) or _WRITES.search(_COMMENTS.sub("", text))  # a comment in the middle of a word
    return found.group(0) if found else ""


def plain(said: str) -> str:
    """Letter by letter: long runs of marks would be put in order, which takes time with the square of their number."""
    return said if said.isascii() else "".join(unicodedata.normalize("NFKC", one) for one in said)


def words(*lines: str) -> frozenset[str]:
    """The words of some lines: long lists are read, and changed, more easily as text."""
    return frozenset(" ".join(lines).split())
