"""Which repository git would use in a folder (git(1), setup.c): a ``.git`` folder or file, or a folder that is bare repository itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from console.policy.files.git_folders import is_repository
from console.policy.files.paths import Files, absolute

_ENDS = "\r\n"
"""git takes both away at the end of a file that names a folder (setup.c, read_gitfile_gently)."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Where git keeps and finds things."""

    folder: str
    """The worktree; of a bare one, the repository itself."""
    git_dir: str
    common: str
    """Where settings and hooks lie; other than ``git_dir`` in a linked worktree."""


def repository_of(folder: str, files: Files) -> Repository | None:
    """The repository that git finds from a folder upwards; None: there is none."""
    for here in _upwards(files.look(folder).real or folder):
        dot = f"{here.rstrip('/')}/.git"
        found = files.look(dot)
        git_dir = found.real if found.kind == "folder" else _linked(dot, files) if found.kind == "file" else ""
        if git_dir and is_repository(git_dir, files):
            return Repository(here, git_dir, _common(git_dir, files))
        if is_repository(here, files):
            return Repository(here, here, _common(here, files))
    return None


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if folder == "/":
            return
        folder = posixpath.dirname(folder)


def _linked(path: str, files: Files) -> str:
    """Where a ``.git`` file leads (gitrepository-layout(5)); empty: nowhere."""
    text = files.text(path) or ""
    if not text.startswith("gitdir: "):
        return ""
    return files.look(absolute(text[8:].rstrip(_ENDS), posixpath.dirname(path))).real


def _common(git_dir: str, files: Files) -> str:
    text = files.text(f"{git_dir}/commondir")
    return files.look(absolute(text.rstrip(_ENDS), git_dir)).real or git_dir if text else git_dir
