"""Folders that git would take for a repository, whatever they are called (setup.c, is_git_directory)."""

from __future__ import annotations

from console.policy.files.walk import Disk


def is_repository(folder: str, files: Disk, coming: str = "") -> bool:
    """Whether git would take a folder for one ; ``coming``: an entry that is about to be made in it."""

    def has(name: str) -> bool:
        return name == coming or files.look(f"{folder.rstrip('/')}/{name}").kind != "missing"

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def repository_around(path: str, files: Disk) -> str:
    """The folder that git takes, or with this path would take, for a repository, at or above the path's folder; empty: none."""
    pieces = path.split("/")
    for at in range(len(pieces) - 1, 0, -1):
        folder = "/".join(pieces[:at]) or "/"
        if is_repository(folder, files, pieces[at]):
            return folder
    return ""
