"""The files that a patch of ``apply_patch`` changes: headers name them, and no other line begins as a header does."""

from __future__ import annotations

_MARKS = {"Add File:": "write", "Update File:": "write", "Delete File:": "delete", "Move to:": "write"}
_OTHERS = ("Begin Patch", "End Patch", "End of File")


def files_of(patch: str) -> tuple[tuple[str, str], ...]:
    """(``write`` or ``delete``, path) of each header. Empty when it is no such patch, or has a header that is not known."""
    found = dict[tuple[str, str], None]()
    # A program trims its lines, so one that only looks like a header counts as one: that asks too often, and never too rarely.
    lines = [line.strip(" \t\r") for line in patch.split("\n")]
    for line in (one for one in lines if one.strip().startswith("***")):
        if not line.isprintable():  # what a program takes for its end is not certain
            return ()
        header = line[3:].strip()
        mark = next((mark for mark in _MARKS if header.startswith(mark)), "")
        path = header.removeprefix(mark).strip()
        if mark and path:
            found[_MARKS[mark], path] = None
        elif header not in _OTHERS:
            return ()
    return tuple(found) if "*** Begin Patch" in lines else ()
