"""The three packages: names, texts and dependencies, as Debian calls them, and the version and moment of a build."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HOME = "opt/watchfloor"
GUARD_HOME = "usr/lib/watchfloor-guard"
SCRIPTS = {"preinstall": "preinst", "postinstall": "postinst", "preremove": "prerm", "postremove": "postrm"}
MAINTAINER = "Watchfloor developers <developers@watchfloor.invalid>"
LIBRARY = re.compile(r"\.so(\.|$)|\.py$")
"""Loaded, never run: no execute bit, whatever the wheel gave it."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class CannotBuild(Exception):
    """Something is not as the build needs it; says what."""


@dataclass(frozen=True, slots=True)
class Package:
    """What nfpm cannot see in the staged files."""

    name: str
    summary: str
    words: str
    depends: tuple[str, ...] = ()
    recommends: tuple[str, ...] = ()
    section: str = "admin"
    is_for_all: bool = False
    """Holds no binary: one package for every architecture."""


PACKAGES = (
    Package(
        "watchfloor-guard",
        "kill switch for AI agents: the process that stops them",
        "The guard holds every agent in a control group of its own. It kills them\n"
        "with proof while everything else is down. It needs Python 3.11 and the\n"
        "standard library only.",
        depends=("python3 (>= 3.11)", "passwd"),
        is_for_all=True,
    ),
    Package(
        "watchfloor",
        "operator console for AI agents: supervisor and command line",
        "See every AI agent live, limit what it may spend and reach, and stop all\n"
        "of it with proof. This package has the supervisor, the command line, the\n"
        "network proxy Envoy, and a Python of its own, so that an upgrade of the\n"
        "system's Python does not break it.",
        depends=("watchfloor-guard (= {version})", "ca-certificates", "iproute2", "procps"),
        recommends=("bubblewrap", "watchfloor-console"),
    ),
    Package(
        "watchfloor-console",
        "operator console for AI agents: the window",
        "The window of Watchfloor with the panic button, as a desktop program. It\nbrings the parts of Qt that it uses.",
        depends=("watchfloor (= {version})", "libxcb-cursor0"),
        recommends=("xdg-utils",),
    ),
)


def version(root: Path) -> str:
    """The version as the source states it."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "console" / "__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise CannotBuild("console/__init__.py states no version")
    return found[1]


def moment(root: Path, commit: str) -> int:
    """Seconds since 1970 that every file gets: $SOURCE_DATE_EPOCH, else the moment of the commit."""
    if named := os.environ.get("SOURCE_DATE_EPOCH", ""):
        return int(named)
    said = subprocess.run(["git", "-C", str(root), "log", "-1", "--format=%ct", commit], capture_output=True, text=True, check=True).stdout
    return int(said)


def utc(seconds: int) -> str:
    """That moment as nfpm and CycloneDX write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
