"""What is generated from the product itself: man pages, completions, icons; and the copyright and changelog that Debian asks for."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packages.describe import HOME, MAINTAINER, PACKAGES
from packages.sbom import wheels

HERE = Path(__file__).resolve().parent
COMPLETIONS = {
    "bash": "bash-completion/completions/watchfloor",
    "zsh": "zsh/vendor-completions/_watchfloor",
    "fish": "fish/vendor_completions.d/watchfloor.fish",
}
"""Where each shell looks for what a package brings."""
ICON_SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512)
ICONS = """
import sys
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
source, target, *sizes = sys.argv[1:]
for size in map(int, sizes):
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(source).render(painter, QRectF(0, 0, size, size))
    painter.end()
    assert image.save(target.replace("SIZE", f"{size}x{size}"))
"""


def write(trees: dict[str, Path], version: str) -> None:
    """Everything that is generated, into the trees; the completions are the product's own."""
    python = trees["watchfloor"] / HOME / "bin" / "python3"
    said = subprocess.run([str(python), "-sPB", str(HERE / "verb_tree.py")], capture_output=True, check=True).stdout
    verbs = json.loads(said)
    share = trees["watchfloor"] / "usr" / "share"
    for name, text in man_pages(verbs, version).items():
        _put(share / "man" / "man1" / f"{name}.1.gz", text)
    completions = trees["watchfloor"] / HOME / "lib/python3/dist-packages/console/cli/completions"
    for shell, place in COMPLETIONS.items():
        _put(share / place, (completions / f"watchfloor.{shell}").read_text())
    _icons(python, trees["watchfloor-console"])
    _put(trees["watchfloor-guard"] / "usr/share/man/man8/watchfloor-guard.8.gz", _guard_page(version))
    for package in PACKAGES:
        documents = trees[package.name] / "usr" / "share" / "doc" / package.name
        _put(documents / "copyright", _copyright(trees[package.name]))
        _put(documents / "changelog.gz", _changelog(package.name, version))


def man_pages(verbs: dict[str, Any], version: str) -> dict[str, str]:
    """Text of each page by its name: the program's, and one for each verb with the verbs below it."""
    pages = {}
    for verb in (verbs, *verbs["below"]):
        is_root = verb is verbs
        name = f"watchfloor-{verb['name']}".removesuffix("-")
        lines = [f'.TH "{name.upper()}" 1 "{_day()}" "Watchfloor {version}" "Watchfloor"', ".SH NAME"]
        lines += [f"{_roff(name)} \\- {_roff(_first(verb['help']))}", ".SH SYNOPSIS", f".B {_roff(name.replace('-', ' ', 1))}"]
        lines += [f".I {_roff(p['words'])}" for p in verb["parameters"] if p["is_argument"]]
        lines += ["[OPTIONS]", *([] if not verb["below"] else ["COMMAND"]), ".SH DESCRIPTION", *_paragraphs(verb["help"])]
        lines += _options(verb)
        if is_root:
            lines += [".SH COMMANDS"]
            for below in verb["below"]:
                lines += [".TP", f".BR watchfloor\\-{_roff(below['name'])} (1)", _roff(_first(below["help"]))]
        else:
            for below in verb["below"]:
                lines += [f'.SH "WATCHFLOOR {_roff(below["name"].upper())}"', *_paragraphs(below["help"]), *_options(below)]
                lines += _example(below)
            lines += _example(verb)
        pages[name] = "\n".join([*lines, *([] if is_root else [".SH SEE ALSO", ".BR watchfloor (1)"])]) + "\n"
    return pages


def _options(verb: dict[str, Any]) -> list[str]:
    lines = [".SH OPTIONS"] if verb["parameters"] else []
    for one in verb["parameters"]:
        lines += [".TP", f".B {_roff(one['words'])}", _roff(one["help"]) or "See the description."]
    return lines


def _example(verb: dict[str, Any]) -> list[str]:
    return [".PP", "Example:", ".PP", f".B watchfloor {_roff(verb['name'])} {_roff(verb['example'])}".rstrip()]


def _guard_page(version: str) -> str:
    return (HERE / "watchfloor-guard.8").read_text().replace("@DAY@", _day()).replace("@VERSION@", version)


def _paragraphs(words: str) -> list[str]:
    return [line for part in words.strip().split("\n\n") for line in (".PP", _roff(" ".join(part.split())))]


def _first(words: str) -> str:
    return words.strip().split("\n\n")[0].split(". ")[0].replace("\n", " ").rstrip(".") or "see below"


def _roff(words: str) -> str:
    """Text that roff takes as text."""
    text = " ".join(words.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _icons(python: Path, tree: Path) -> None:
    """PNGs of every usual size from the one drawing, by the Qt that the package brings."""
    folder = tree / "usr" / "share" / "icons" / "hicolor"
    for size in ICON_SIZES:
        (folder / f"{size}x{size}" / "apps").mkdir(parents=True)
    libraries = tree / HOME / "lib" / "python3" / "dist-packages"
    source, target = folder / "scalable" / "apps" / "watchfloor.svg", folder / "SIZE" / "apps" / "watchfloor.png"
    environment = {**os.environ, "PYTHONPATH": str(libraries), "QT_QPA_PLATFORM": "offscreen"}
    subprocess.run([str(python), "-sPB", "-c", ICONS, str(source), str(target), *map(str, ICON_SIZES)], env=environment, check=True)


def _copyright(tree: Path) -> str:
    """Our licence, and by name the licence of everything that the package brings."""
    lines = ["Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/", "Upstream-Name: Watchfloor", "", "Files: *"]
    lines += [
        "Copyright: the Watchfloor developers",
        "License: Apache-2.0",
        " On Debian systems the full text is in",
        " /usr/share/common-licenses/Apache-2.0.",
    ]
    parts = wheels(tree)
    if parts:
        lines += ["", "Comment:", f" Below /{HOME} this package brings the following, each under its own licence;"]
        lines += [" their texts lie beside them in the folders *.dist-info.", " ."]
        lines += [
            f" {p['name']} {p['version']}: {p.get('licenses', [{'license': {'name': 'see its folder'}}])[0]['license']['name']}"
            for p in parts
        ]
    if (tree / HOME / "bin").is_dir():
        lines += [" ", " The interpreter is Python, copied from Debian; PSF-2.0, see /usr/share/doc/python3/copyright."]
    return "\n".join(lines).replace("\n \n", "\n .\n") + "\n"


def _changelog(name: str, version: str) -> str:
    at = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    return (
        f"{name} ({version}) unstable; urgency=medium\n\n  * The changes are listed in the project's changelog.\n\n -- {MAINTAINER}  {at}\n"
    )


def _day() -> str:
    return datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).strftime("%Y-%m-%d")


def _put(file: Path, text: str) -> None:
    """Writes it, compressed when its name says so: without a moment in it, so that two builds are equal."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0) if file.suffix == ".gz" else text.encode())
