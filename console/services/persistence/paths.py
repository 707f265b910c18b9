"""Where one instance looks for what could bring an agent back: its own workspaces; the machine's places only where discovery may go too."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from console.rollback.persistence.findings import Root, Where
from console.rollback.persistence.places import on_path
from console.settings.options import Options
from console.settings.places import Places

HOMES = 20
_FIRST_PERSON, _LAST_PERSON = 1000, 60_000
"""Uids of people's accounts (login.defs(5), UID_MIN and UID_MAX)."""
_CONFINED = "is not looked at: this instance has a state directory of its own; name a folder in the setting"


def host_roots(places: Places, options: Options) -> tuple[tuple[Root, ...], tuple[str, ...]]:
    """(homes and system to look in, what is not looked at and why). As for sources: confined with --state-dir, unless a folder is named."""
    given = options.persistence
    roots: list[Root] = []
    left: list[str] = []
    if given.home or options.discover_root:
        roots.append(_home(given.home or options.discover_root))
    elif places.is_default:
        roots += [_home(home) for home in _homes()]
    else:
        left.append(f"the home {_CONFINED} persistence.home")
    if given.system or places.is_default:
        roots.append(Root("system", Where.SYSTEM, given.system or "/"))
    else:
        left.append(f"the system {_CONFINED} persistence.system")
    return tuple(roots), tuple(left)


def session_root(places: Places, context_id: str) -> Root:
    """The workspace of a session."""
    return Root(f"session:{context_id}", Where.WORKSPACE, str(places.workspaces_dir / context_id))


def _home(home: str) -> Root:
    return Root(f"home:{home}", Where.HOME, home, on_path(os.environ.get("PATH", "").split(os.pathsep), home))


def _homes() -> list[str]:
    """Our own; as root those of people's accounts too."""
    found = [str(Path.home())]
    if os.geteuid() == 0:
        found += [a.pw_dir for a in pwd.getpwall() if _FIRST_PERSON <= a.pw_uid < _LAST_PERSON and Path(a.pw_dir).is_dir()]
    return [h for h in dict.fromkeys(found) if h.startswith("/") and h != "/"][:HOMES]
