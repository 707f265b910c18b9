"""What the host's own instance would change for an account that runs Watchfloor by itself: promise by promise, and how to get it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from console.api.installing import GainView, InstallingView

GAINS = (
    GainView(name="kill of an agent without a sandbox", now="best effort", then="confirmed"),
    GainView(name="guard", now="an agent of your account can end it", then="no agent can end it, and systemd replaces one that hangs"),
    GainView(name="log, rules and limits", now="an agent of your account can change their files", then="no agent can write them"),
    GainView(name="after a start of the host", now="nothing watches until your first command", then="agents are watched at once"),
)
_MEMBER = "sudo usermod --append --groups watchfloor-operator $USER, then log in again"
_START = "sudo systemctl enable --now watchfloor-guard watchfloor"
MOST_NAMED = 20


def services(root: Path = Path("/")) -> tuple[str, str]:
    """(why the host's own instance is not there, what brings it); the first is empty where it is. ``root``: where it looks."""
    if (root / "var/lib/watchfloor/run/guard.sock").is_socket():
        return "", _MEMBER
    if any((root / folder / "systemd/system/watchfloor-guard.service").exists() for folder in ("usr/lib", "lib")):
        return "they were not started", f"{_START}; {_MEMBER}"
    packages = "sudo apt install ./watchfloor-guard_*.deb ./watchfloor_*.deb"
    return "the package watchfloor-guard is not installed", f"{packages}; {_START}; {_MEMBER}"


def installing(best_effort: Iterable[str], root: Path = Path("/")) -> InstallingView | None:
    """What changes for this account, with the agents whose kill is a best effort now. None for root, whose instance is the host's."""
    if os.geteuid() == 0:
        return None
    named = sorted(best_effort)[:MOST_NAMED]
    kill = GAINS[0]
    return InstallingView(how=services(root)[1], gains=[GainView(name=kill.name, now=kill.now, then=kill.then, agents=named), *GAINS[1:]])
