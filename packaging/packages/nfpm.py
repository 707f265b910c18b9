"""The three packages as nfpm wants them described, in each format: dependencies, scripts, and each file's place."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packages import formats
from packages.describe import ARCHITECTURES, GUARD_HOME, LIBRARY, MAINTAINER, SCRIPTS, Package, utc


@dataclass(frozen=True, slots=True)
class Form:
    """In which format a package is made."""

    name: str
    """One of ``formats.FORMATS``."""
    work: Path
    """A folder for what nfpm reads."""
    compression: str = "xz"
    """Of a .deb."""


def contents(tree: Path, package_format: str = "deb") -> list[dict[str, Any]]:
    """One entry per file and link, and per folder that is ours alone. Files below /etc are configuration."""
    found: list[dict[str, Any]] = []
    for one in sorted(tree.rglob("*")):
        place = formats.place(package_format, "/" + str(one.relative_to(tree)))
        if place is None:
            continue
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


def description(root: Path, package: Package, tree: Path, needed: list[str], number: str, form: Form) -> dict[str, Any]:
    """What nfpm reads for one package in one format."""
    folder = root / "packaging" / "packages" / "scripts"
    scripts = {key: file for key, name in SCRIPTS.items() if (file := folder / f"{package.name}.{name}").is_file()}
    scripts = formats.scripts(form.name, scripts, form.work)
    depends = [formats.relation(form.name, d.format(version=number)) for d in package.depends]
    recommends = [formats.relation(form.name, d) for d in package.recommends]
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
        "depends": depends + [n for n in needed if _name(n) not in {_name(d) for d in depends}],
        "recommends": recommends,
        "mtime": utc(int(os.environ["SOURCE_DATE_EPOCH"])),
        "contents": contents(tree, form.name),
        "scripts": scripts,
        "deb": {"compression": form.compression},
        "rpm": {"compression": "zstd", "buildhost": "localhost"},  # rpm alone would record this machine's name
        # pacman runs nothing of a package's at its upgrade but this.
        "archlinux": {"scripts": {"postupgrade": scripts["postinstall"]} if "postinstall" in scripts else {}},
    }


def run_nfpm(root: Path, tools: Path, package: Package, tree: Path, needed: list[str], number: str, form: Form, out: Path) -> None:
    """Writes one package in one format."""
    file = form.work / f"{package.name}.{form.name}.json"
    file.write_text(json.dumps(description(root, package, tree, needed, number, form), indent=1))
    subprocess.run([str(tools / "nfpm"), "package", "--config", str(file), "--packager", form.name, "--target", str(out)], check=True)


def _name(dependency: str) -> str:
    return re.split(r"[ (<>=]", dependency)[0]
