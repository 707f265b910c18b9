"""The account that this process runs under, as the record names it."""

from __future__ import annotations

import os
import pwd


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
