"""What git's index names: files that are tracked, and submodules, whose repositories git runs itself in (gitformat-index(5))."""

from __future__ import annotations

import struct
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from console.policy.files.paths import Files
from console.policy.git.repository import Repository
from console.policy.git.settings import Unreadable, read_settings

INDEX_MAX = 16 * 1024 * 1024
"""Bytes of an index that is read."""
_KEPT_MAX = 8
_MODULE = 0o160000
_SHA1_BYTES, _SHA256_BYTES = 20, 32


@dataclass(frozen=True, slots=True)
class Index:
    """The names in an index, from the top of the worktree. Hostile."""

    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    problem: str = ""
    """Why it could not be read; empty: it was."""
    text: str = field(init=False, compare=False)
    """All names in one, with a slash around each component."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", "\n".join(f"/{name}/" for name in self.names))


_kept: OrderedDict[tuple[str, tuple[int, int], int, int], Index] = OrderedDict()
"""By place, inode, time of change and length of names: git writes a new file each time."""


def index_of(repository: Repository, files: Files) -> Index:
    """The index of a repository; an empty one where there is none."""
    path = f"{repository.git_dir}/index"
    facts = files.look(path)
    if facts.kind == "missing":
        return Index()
    name_bytes = _name_bytes(repository, files)
    key = (path, facts.inode, facts.changed_ns, name_bytes) if facts.inode else None
    if key is not None and key in _kept:
        return _kept[key]
    text = files.text(path, INDEX_MAX)
    found = Index(problem=f"{path} cannot be read")
    if text is not None:
        found = read_index(text.encode("utf-8", "surrogateescape"), name_bytes)
    if key is not None and facts.changed_ns:
        _kept[key] = found
        while len(_kept) > _KEPT_MAX:
            _kept.popitem(last=False)
    return found


def _name_bytes(repository: Repository, files: Files) -> int:
    """How long the names of objects are (git-config(1), extensions.objectFormat)."""
    with suppress(Unreadable):
        for one in read_settings(files.text(f"{repository.common}/config") or ""):
            if one.key == "extensions.objectformat" and one.text.lower() == "sha256":
                return _SHA256_BYTES
    return _SHA1_BYTES


def read_index(data: bytes, name_bytes: int = _SHA1_BYTES) -> Index:
    """Reads versions 2 to 4; what is damaged, or split, is a problem."""
    fixed = 40 + name_bytes
    """Bytes of an entry before its flags."""
    try:
        sign, version, count = struct.unpack_from(">4sII", data)
        if sign != b"DIRC" or version not in (2, 3, 4):
            return Index(problem="the index is of a version that is not known")
        names, modules, at = [], [], 12
        name = b""
        for _ in range(count):
            mode, flags = struct.unpack_from(">I", data, at + 24)[0], struct.unpack_from(">H", data, at + fixed)[0]
            begin = at + fixed + (4 if flags & 0x4000 and version > 2 else 2)
            if version == 4:
                cut, begin = _cut(data, begin)
                end = data.index(0, begin)
                name = name[: len(name) - cut] + data[begin:end]
                at = end + 1
            else:
                end = data.index(0, begin)
                name = data[begin:end]
                at += (end - at + 8) & ~7
            names.append(name.decode("utf-8", "surrogateescape"))
            if mode == _MODULE:
                modules.append(names[-1])
    except (struct.error, ValueError, IndexError):
        return Index(problem="the index is damaged")
    return Index(tuple(names), tuple(modules), "the index is split over files" if b"link" in data[at : at + 4] else "")


def _cut(data: bytes, at: int) -> tuple[int, int]:
    """The number in git's own encoding of varying length (varint.c), and where it ends."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 127)
    return value, at + 1
