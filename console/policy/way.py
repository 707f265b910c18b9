"""How a program goes through a folder that it is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Way:
    """How a program goes through folders."""

    follows: bool = False
    """Links below the folder too (``grep -R``, ``find -L``)."""
    skips: frozenset[str] = frozenset()
    """What it leaves out: ``hidden`` (names with a dot), ``git`` (folders called .git), and the names in the ignore files named here."""
    without: frozenset[str] = frozenset()
    """Names that an option leaves out."""
    depth: int = -1
    """Folders below each other that it enters; -1: all."""
    only: str = ""
    """A pattern (fnmatch) of the names that it touches, with all that lies in a folder by such a name; empty: all."""
    there: bool = False
    """It changes what lies there now, and makes nothing new."""
    shows: str = ""
    """It opens no file, and shows the names that fit this pattern (fnmatch), as ``ls`` and ``find`` do; empty: it opens files."""


WHOLE = Way()
