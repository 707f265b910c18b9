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


def write(root: Path, trees: dict[str, Path], version: str) -> None:
    """Everything that is generated, into the trees."""
    python = trees["watchfloor"] / HOME / "bin" / "python3"
    said = subprocess.run([str(python), "-sPB", str(HERE / "click_tree.py")], capture_output=True, check=True).stdout
    verbs = json.loads(said)
    share = trees["watchfloor"] / "usr" / "share"
    for name, text in man_pages(verbs, version).items():
        _put(share / "man" / "man1" / f"{name}.1.gz", text)
    _put(share / "bash-completion" / "completions" / "watchfloor", bash(verbs))
    _put(share / "zsh" / "vendor-completions" / "_watchfloor", zsh(verbs))
    _put(share / "fish" / "vendor_completions.d" / "watchfloor.fish", fish(verbs))
    _icons(python, trees["watchfloor-console"])
    _put(trees["watchfloor-guard"] / "usr/share/man/man8/watchfloor-guard.8.gz", _guard_page(version))
    for package in PACKAGES:
        documents = trees[package.name] / "usr" / "share" / "doc" / package.name
        _put(documents / "copyright", _copyright(root, trees[package.name]))
        _put(documents / "changelog.gz", _changelog(package.name, version))


def man_pages(verbs: dict[str, Any], version: str) -> dict[str, str]:
    """Text of each page by its name: the program's, and one for each verb with the verbs below it."""
    pages = {}
    for verb in (verbs, *verbs["below"]):
        is_root = verb is verbs
        name = "watchfloor" if is_root else f"watchfloor-{verb['name']}"
        lines = [f'.TH "{name.upper()}" 1 "{_day()}" "Watchfloor {version}" "Watchfloor"', ".SH NAME"]
        lines += [f"{_roff(name)} \\- {_roff(_first(verb['help']))}", ".SH SYNOPSIS", f".B {_roff(name.replace('-', ' ', 1))}"]
        lines += [f".I {_roff(p['metavar'])}" for p in verb["parameters"] if p["is_argument"]]
        lines += ["[OPTIONS]", *([] if not verb["below"] else ["COMMAND"]), ".SH DESCRIPTION", *_paragraphs(verb["help"])]
        lines += _options(verb)
        if is_root:
            lines += [".SH COMMANDS"]
            for below in verb["below"]:
                lines += [".TP", f".BR watchfloor\\-{_roff(below['name'])} (1)", _roff(_first(below["help"]))]
        else:
            for below in verb["below"]:
                lines += [f'.SH "COMMAND: {_roff(below["name"])}"', *_paragraphs(below["help"]), *_options(below)]
        pages[name] = "\n".join([*lines, *([] if is_root else [".SH SEE ALSO", ".BR watchfloor (1)"])]) + "\n"
    return pages


def _options(verb: dict[str, Any]) -> list[str]:
    lines = [".SH OPTIONS"] if verb["parameters"] else []
    for one in verb["parameters"]:
        words = one["metavar"] if one["is_argument"] else " ".join([", ".join(one["names"]), one["metavar"]]).strip()
        lines += [".TP", f".B {_roff(words)}", _roff(one["help"]) or "See the description."]
    return lines


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


def flags(verb: dict[str, Any]) -> list[str]:
    """The options of a verb as they are typed."""
    return [name for p in verb["parameters"] if not p["is_argument"] for name in p["names"]] + ["--help"]


def words_after(verbs: dict[str, Any]) -> dict[str, list[str]]:
    """What can follow, by the words before: '' for the program, 'verb', 'verb command'."""
    after = {"": [v["name"] for v in verbs["below"]] + flags(verbs)}
    for verb in verbs["below"]:
        after[verb["name"]] = [b["name"] for b in verb["below"]] + flags(verb)
        after |= {f"{verb['name']} {below['name']}": flags(below) for below in verb["below"]}
    return after


def _cases(verbs: dict[str, Any]) -> str:
    return "\n".join(f'    "{key}") words="{" ".join(words)}" ;;' for key, words in words_after(verbs).items())


def bash(verbs: dict[str, Any]) -> str:
    """Completion for bash: a table, so that no program has to start for it."""
    return f"""# bash completion of watchfloor; generated
_watchfloor() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} key= word words=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $word in -*) ;; *) [ "$(wc -w <<<"$key")" -ge 2 ] || key="${{key:+$key }}$word" ;; esac
  done
  while :; do
    case $key in
{_cases(verbs)}
    esac
    [ -z "$words" ] && [ -n "$key" ] || break
    case $key in *' '*) key=${{key% *}} ;; *) break ;; esac
  done
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _watchfloor watchfloor
"""


def zsh(verbs: dict[str, Any]) -> str:
    """Completion for zsh, from the same table."""
    return f"""#compdef watchfloor
# generated
local key= words= word
for word in ${{(@)words_before::=${{words[2,CURRENT-1]}}}}; do :; done
local -a typed; typed=(${{${{(@)words_before}}:#-*}})
key="${{(j: :)typed[1,2]}}"
case $key in
{_cases(verbs).replace("words=", "reply_words=")}
esac
if [[ -z $reply_words && $key == *' '* ]]; then
  key=${{key%% *}}
  case $key in
{_cases(verbs).replace("words=", "reply_words=")}
  esac
fi
compadd -- ${{=reply_words}}
_files
"""


def fish(verbs: dict[str, Any]) -> str:
    """Completion for fish."""
    lines = ["# generated"]
    names = " ".join(v["name"] for v in verbs["below"])
    for verb in verbs["below"]:
        text = _first(verb["help"]).replace("\\", "").replace("'", "")
        lines.append(f"complete -c watchfloor -n 'not __fish_seen_subcommand_from {names}' -f -a {verb['name']} -d '{text}'")
        if verb["below"]:
            inner = " ".join(b["name"] for b in verb["below"])
            seen = f"__fish_seen_subcommand_from {verb['name']}; and not __fish_seen_subcommand_from {inner}"
            lines.append(f"complete -c watchfloor -n '{seen}' -f -a '{inner}'")
        for one in flags(verb):
            if one.startswith("--"):
                lines.append(f"complete -c watchfloor -n '__fish_seen_subcommand_from {verb['name']}' -l {one[2:]}")
    return "\n".join(lines) + "\n"


def _icons(python: Path, tree: Path) -> None:
    """PNGs of every usual size from the one drawing, by the Qt that the package brings."""
    folder = tree / "usr" / "share" / "icons" / "hicolor"
    for size in ICON_SIZES:
        (folder / f"{size}x{size}" / "apps").mkdir(parents=True)
    libraries = tree / HOME / "lib" / "python3" / "dist-packages"
    source, target = folder / "scalable" / "apps" / "watchfloor.svg", folder / "SIZE" / "apps" / "watchfloor.png"
    environment = {**os.environ, "PYTHONPATH": str(libraries), "QT_QPA_PLATFORM": "offscreen"}
    subprocess.run([str(python), "-sPB", "-c", ICONS, str(source), str(target), *map(str, ICON_SIZES)], env=environment, check=True)


def _copyright(root: Path, tree: Path) -> str:
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
