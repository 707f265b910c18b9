"""Names of accounts: of this process's own, and of those that records hold by their number."""

from __future__ import annotations

import os
import pwd
from functools import lru_cache

from console.domain.words import account_words, with_names

LONGEST_NAME = 40


def operator() -> str:
    """Who gives this order, for the record: ``name (uid 1000)``; the name behind sudo when there is one."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = "unknown"
    behind = os.environ.get("SUDO_USER", "")
    if uid == 0 and behind.isprintable() and 0 < len(behind) <= 32:
        name = f"{behind} through sudo"
    return f"{name} (uid {uid})"


def account_names(uid: int) -> tuple[str, str]:
    """Return (login, full name) of an account, cleaned; ("", "") when the host knows none. May wait for a directory service.

    The full name is the first field of its GECOS (passwd(5)). A user may set it (chfn(1)), so it is text of a stranger.
    """
    try:
        entry = pwd.getpwuid(uid)
    except (KeyError, OverflowError):
        return "", ""
    login, full_name = _cleaned(entry.pw_name), _cleaned(entry.pw_gecos.partition(",")[0])
    return login, "" if full_name == login else full_name


@lru_cache(maxsize=256)
def _words(uid: int) -> str:
    return account_words(uid, *account_names(uid))


def named_here(by: str) -> str:
    """``operator:1000`` as a person reads it on this host, ``ann (Ann Adams, uid 1000)``, also within a sentence of Watchfloor's own."""
    return with_names(by, _words)


def _cleaned(name: str) -> str:
    """Without what could be taken for the number behind the name, or for more than one name."""
    kept = "".join(c if c.isprintable() and c not in '(),:"“”' else " " for c in name[: LONGEST_NAME * 4])
    return " ".join(kept.split())[:LONGEST_NAME]
