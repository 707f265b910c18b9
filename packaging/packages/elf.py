"""Which shared libraries the binaries of a tree need, and which binaries can go because nothing needs them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

MAGIC = b"\x7fELF"


def binaries(tree: Path) -> list[Path]:
    """All ELF files of the tree, in order; links are not followed."""
    return [f for f in sorted(tree.rglob("*")) if f.is_file() and not f.is_symlink() and _is_elf(f)]


def _is_elf(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(4) == MAGIC


def needed(files: Iterable[Path]) -> dict[Path, set[str]]:
    """The names of libraries that each file asks for itself."""
    asked: dict[Path, set[str]] = {}
    for file in files:
        said = subprocess.run(["readelf", "--dynamic", str(file)], capture_output=True, text=True, check=True).stdout
        asked[file] = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said))
    return asked


def needed_outside(tree: Path, *trees: Path) -> set[str]:
    """Names of libraries that the tree's binaries need and that none of the trees brings."""
    brought = {f.name for one in trees for f in one.rglob("*.so*")}
    return {name for names in needed(binaries(tree)).values() for name in names if name not in brought}


def unneeded(folder: Path, roots: Iterable[Path]) -> list[Path]:
    """Libraries directly in ``folder`` that no root needs, not even through others."""
    there = {f.name: f for f in folder.iterdir() if f.is_file()}
    waiting, kept = list(roots), set[str]()
    while waiting:
        for names in needed([waiting.pop()]).values():
            new = {n for n in names if n in there} - kept
            kept |= new
            waiting += [there[n] for n in sorted(new)]
    return [f for name, f in sorted(there.items()) if name not in kept]
