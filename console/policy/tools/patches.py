"""The files that a patch changes: one of ``apply_patch``, or one of diff(1) for patch(1) and git. Headers name them."""

from __future__ import annotations

import re

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


_NAMES_MAX = 500
_HEADER = re.compile(r"(?:---|\+\+\+|Index:|(?:rename|copy) (?:from|to)) +([^\t]+?)(?:\t.*)?\Z")
_BOTH = re.compile(r"diff --git (\S+) (\S+)\Z")
_NAME = re.compile(r"[\w.@+,=/-]+\Z")


def targets_of(patch: str) -> tuple[str, ...]:
    """The files that a unified diff may change, with each number of folders taken from the front. Empty: that is not certain.

    A line that only looks like a header counts as one: patch(1) passes over blanks and dashes before it.
    """
    found = dict[str, None]()
    if "\n@@ " not in f"\n{patch}" and "\nrename from " not in patch:
        return ()
    for line in patch.split("\n"):
        bare = re.sub(r"\A(?:\s|- |>)+", "", line.rstrip("\r"))
        if re.match(r"\*\*\* |\d+(?:,\d+)?[acd]\d*|(?:new file )?mode 120000|Prereq:", bare) and not line.startswith(("+", "-", " ")):
            return ()  # another kind of diff, a script for an editor, or a link
        both, one = _BOTH.match(bare), _HEADER.match(bare)
        for name in both.groups() if both else one.groups() if one else ():
            if not _NAME.match(name):
                return ()
            pieces = name.split("/")
            found.update(dict.fromkeys("/".join(pieces[at:]) for at in range(len(pieces)) if name != "/dev/null" and pieces[at:] != [""]))
        if len(found) > _NAMES_MAX:
            return ()
    return tuple(found)
