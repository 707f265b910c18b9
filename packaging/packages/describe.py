"""The three packages as nfpm wants them described: names, dependencies, scripts, and each file's place."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def contents(tree: Path) -> list[dict[str, Any]]:
    """One entry per file and link, and per folder that is ours alone. Files below /etc are configuration."""
    found: list[dict[str, Any]] = []
    for one in sorted(tree.rglob("*")):
        place = "/" + str(one.relative_to(tree))
        if one.is_symlink():
            found.append({"src": str(one.readlink()), "dst": place, "type": "symlink"})
        elif one.is_dir():
            if place.startswith(("/opt/watchfloor", f"/{GUARD_HOME}", "/etc/watchfloor")):
                found.append({"dst": place, "type": "dir", "file_info": {"mode": 0o755}})
        else:
            is_program = one.stat().st_mode & 0o111 and not LIBRARY.search(one.name)
            mode = 0o755 if is_program else 0o644
            kind = {"type": "config|noreplace"} if place.startswith("/etc/") else {}
            found.append({"src": str(one), "dst": place, "file_info": {"mode": mode}, **kind})
    return found


def description(root: Path, package: Package, tree: Path, needed: list[str], number: str, compression: str = "xz") -> dict[str, Any]:
    """What nfpm reads for one package."""
    scripts = root / "packaging" / "packages" / "scripts"
    named = {key: scripts / f"{package.name}.{name}" for key, name in SCRIPTS.items()}
    depends = [d.format(version=number) for d in package.depends]
    return {
        "name": package.name,
        "arch": "all" if package.is_for_all else ARCHITECTURES[os.uname().machine],
        "platform": "linux",
        "version": number,
        "version_schema": "none",
        "section": package.section,
        "priority": "optional",
        "maintainer": MAINTAINER,
        "description": f"{package.summary}\n{package.words}",
        "license": "Apache-2.0",
        "depends": depends + [n for n in needed if n.split()[0] not in {d.split()[0] for d in depends}],
        "recommends": list(package.recommends),
        "mtime": _utc(int(os.environ["SOURCE_DATE_EPOCH"])),
        "contents": contents(tree),
        "scripts": {key: str(file) for key, file in named.items() if file.is_file()},
        "deb": {"compression": compression},
        "rpm": {"compression": "zstd"},
    }


def _utc(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def run_nfpm(
    root: Path,
    tools: Path,
    package: Package,
    tree: Path,
    needed: list[str],
    number: str,
    kind: str,
    compression: str,
    out: Path,
    work: Path,
) -> None:
    """Writes one package in one format. CannotBuild for a format that nfpm does not know."""
    if kind not in ("deb", "rpm", "archlinux"):
        raise CannotBuild(f"format {kind[:20]!r} is not deb, rpm or archlinux")
    file = work / f"{package.name}.{kind}.json"
    file.write_text(json.dumps(description(root, package, tree, needed, number, compression), indent=1))
    subprocess.run([str(tools / "nfpm"), "package", "--config", str(file), "--packager", kind, "--target", str(out)], check=True)
