"""Names of accounts: of this process's own, and of those that records hold by their number."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Literal

LONGEST_NAME = 40
_OPERATOR = re.compile(r"\boperator:([0-9]{1,10})(?:/login:([0-9]{1,10}))?\b")


def operator() -> str:
    """Who gives this order, for the record: ``name (uid 1000)``; behind su or sudo also who logged in, or else sudo's word."""
    uid, login, behind = os.getuid(), login_uid("self"), os.environ.get("SUDO_USER", "")
    said = f"{_login(uid)} (uid {uid})"
    if login not in (-1, uid):
        return f"{said}, logged in as {_login(login)} (uid {login})"
    if uid == 0 and behind.isprintable() and 0 < len(behind) <= 32:
        return f"{behind} through sudo (uid {uid})"
    return said


def login_uid(pid: int | Literal["self"]) -> int:
    """The account that logged in, as the kernel keeps it for a process (audit(7)); -1: none, or not readable."""
    try:
        found = int(Path(f"/proc/{pid}/loginuid").read_text())
    except (OSError, ValueError):
        return -1
    return -1 if found == 0xFFFFFFFF else found


def _login(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "unknown"


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


def with_names(text: str, name_of: Callable[[int], str]) -> str:
    """Return ``text`` with the account's name for each ``operator:1000``; ``operator:0/login:1000`` names who logged in as well.

    Give it what Watchfloor wrote, never what an agent did.
    """

    def named(found: re.Match[str]) -> str:
        return name_of(int(found[1])) + (f", logged in as {name_of(int(found[2]))}" if found[2] else "")

    return _OPERATOR.sub(named, text) if "operator:" in text else text


def account_words(uid: int, login: str, full_name: str = "") -> str:
    """``ann (Ann Adams, uid 1000)``; ``uid 1000`` alone when the host knows no such account."""
    if not login:
        return f"uid {uid}"
    return f"{login} ({full_name}, uid {uid})" if full_name else f"{login} (uid {uid})"


def _cleaned(name: str) -> str:
    """Without what could be taken for the number behind the name, or for more than one name."""
    kept = "".join(c if c.isprintable() and c not in '(),:"“”' else " " for c in name[: LONGEST_NAME * 4])
    return " ".join(kept.split())[:LONGEST_NAME]
