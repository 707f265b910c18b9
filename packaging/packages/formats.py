"""What differs between deb, rpm and Arch packages: how a dependency is written, some places, and what a script is told."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from packages import libraries
from packages.describe import CannotBuild

FORMATS = ("deb", "rpm", "archlinux")
OTHER_NAMES = {"passwd": ("shadow-utils", "shadow"), "iproute2": ("iproute", "iproute2"), "procps": ("procps-ng", "procps-ng")}
OTHER_NAMES |= {"python3": ("python3", "python"), "libxcb-cursor0": ("xcb-util-cursor", "xcb-util-cursor")}
"""Packages that are called otherwise than on Debian: for rpm as Fedora has them, then Arch."""
STEPS = {
    "rpm": {
        "postinst": "set -- configure",
        "prerm": 'if [ "$1" = 0 ]; then set -- remove; else set -- upgrade; fi',
        "postrm": 'if [ "$1" = 0 ]; then set -- remove; else set -- upgrade; fi',
    },
    "archlinux": {"postinst": "set -- configure", "prerm": "set -- remove", "postrm": "set -- remove"},
}
"""rpm tells a script how many versions will be left, pacman tells it a version: what dpkg would say instead. Neither of them purges."""
PLACES = {"/usr/share/zsh/vendor-completions/": "/usr/share/zsh/site-functions/"}
"""Debian's own places, and where the others look."""


def needed(kind: str, sonames: set[str]) -> list[str]:
    """What brings the shared libraries, as the format names it."""
    return {"deb": libraries.packages_of, "rpm": libraries.sonames_of, "archlinux": libraries.arch_packages_of}[kind](sonames)


def relation(kind: str, debian: str) -> str:
    """A dependency that is written as Debian does: ``name (>= 1.2)``."""
    if kind == "deb":
        return debian
    found = re.fullmatch(r"(\S+)(?: \((>?=) (\S+)\))?", debian)
    if found is None:
        raise CannotBuild(f"{debian!r} is no dependency")
    name, sign, number = found.groups()
    name = OTHER_NAMES.get(name, (name, name))[kind != "rpm"]
    space = " " if kind == "rpm" else ""
    return f"{name}{space}{sign}{space}{number}" if sign else name


def place(kind: str, debian: str) -> str | None:
    """Where a file is installed that Debian has at ``debian``; None: only Debian has it."""
    if kind == "deb":
        return debian
    if debian.startswith("/usr/share/lintian"):
        return None
    if kind == "archlinux" and debian.startswith("/usr/sbin/"):
        return debian.replace("sbin", "bin", 1)  # there /usr/sbin is a link
    for before, after in PLACES.items():
        debian = debian.replace(before, after)
    return debian


def scripts(kind: str, found: dict[str, Path], work: Path) -> dict[str, str]:
    """The package's scripts by nfpm's name for them. Those of other formats are written to ``work``, and are told what dpkg would say."""
    if kind == "deb":
        return {name: str(file) for name, file in found.items()}
    made: dict[str, str] = {}
    for name, file in found.items():
        draft = work / f"{file.name}.{kind}"
        first, _, rest = file.read_text().partition("\n")
        draft.write_text(f"{first}\n{STEPS[kind][file.suffix[1:]]}\n{rest}")
        made[name] = str(draft)
    return made


def check(kinds: Iterable[str]) -> None:
    """CannotBuild for a format that is not known."""
    for kind in kinds:
        if kind not in FORMATS:
            raise CannotBuild(f"format {kind[:20]!r} is not one of {', '.join(FORMATS)}")
