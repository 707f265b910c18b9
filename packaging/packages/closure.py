"""Which of our modules a program can load: its imports followed in the source, those inside functions too."""

from __future__ import annotations

import ast
import sys
from pathlib import Path


def closure(root: Path, *entries: str) -> tuple[dict[str, Path], set[str]]:
    """(our modules by name with their file, names of modules that are neither ours nor of the standard library)."""
    found: dict[str, Path] = {}
    foreign: set[str] = set()
    waiting, ours = list(entries), entries[0].split(".")[0]
    while waiting:
        name = waiting.pop()
        file = _file(root, name)
        if name in found or file is None:
            continue
        found[name] = file
        waiting += [name.rpartition(".")[0]] if "." in name else []
        for imported in _imports(file):
            if imported.split(".")[0] == ours:
                waiting.append(imported)
            elif imported.split(".")[0] not in sys.stdlib_module_names:
                foreign.add(imported)
    return found, foreign


def _imports(file: Path) -> list[str]:
    """Full names: of ``from a import b`` both ``a`` and ``a.b``, which may be a module."""
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _file(root: Path, name: str) -> Path | None:
    place = root.joinpath(*name.split("."))
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None
