"""``--help``: of the program from the table of verbs alone, of a verb from what its function says. Plain text, at most 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from console.cli.terminal.folding import terminal_columns

if TYPE_CHECKING:
    from console.cli.syntax import Parameter, Verb, Verbs

_WIDEST, _NARROWEST, _LEFT = 78, 50, 30
_KINDS = {str: "TEXT", int: "N", float: "NUMBER"}


def verb_help(path: str, verb: Verb) -> str:
    """Of one verb: usage, what it does, arguments, options."""
    parameters = verb.parameters()
    arguments = [one for one in parameters if one.mark.is_argument]
    parts = [usage(path, " ".join(["[OPTIONS]", *map(_place, arguments)])), paragraphs(verb.help)]
    if arguments:
        parts.append(section("Arguments", [(one.mark.metavar, _words(one)) for one in arguments]))
    options = [(_option(one), _words(one)) for one in parameters if not one.mark.is_argument]
    parts.append(section("Options", [*options, ("-h, --help", "Show this message and exit.")]))
    return "\n".join([*parts, _example(path, verb)])


def family_help(path: str, family: Verbs) -> str:
    """Of a noun: what it is about, and its verbs."""
    rows = [(name, _first_sentence(verb.help)) for name, verb in family.verbs.items()]
    parts = [usage(path, "[OPTIONS] COMMAND [ARGS]..."), paragraphs(family.help)]
    parts += [section("Options", [("-h, --help", "Show this message and exit.")]), section("Commands", rows), _example(path, family)]
    return "\n".join(parts)


def _example(path: str, of: Verb | Verbs) -> str:
    return f"Example:\n  {f'{path} {of.example}'.strip()}\n"


def width() -> int:
    """Columns that help takes."""
    return max(min(terminal_columns(), _WIDEST + 2) - 2, _NARROWEST)


def usage(path: str, words: str) -> str:
    """The first line, folded."""
    lead = f"Usage: {path} "
    return textwrap.fill(words, width(), initial_indent=lead, subsequent_indent=" " * len(lead)) + "\n"


def paragraphs(words: str) -> str:
    """What a docstring says, folded."""
    parts = textwrap.dedent("    " + words).strip().split("\n\n")
    return "\n\n".join(textwrap.fill(" ".join(part.split()), width(), initial_indent="  ", subsequent_indent="  ") for part in parts) + "\n"


def section(title: str, rows: list[tuple[str, str]], least: int = 0) -> str:
    """A headed list of two columns; the first is at least so wide."""
    left = min(max(least, *(len(name) for name, _ in rows)), _LEFT) + 2
    lines = [f"{title}:"]
    for name, words in rows:
        first, *others = textwrap.wrap(" ".join(words.split(" ")), max(width() - left - 2, 10)) or [""]
        lead = f"  {name}".ljust(left + 2)
        if len(name) > left - 2 and first:
            lines.append(f"  {name}")
            lead = " " * (left + 2)
        lines += [(lead + first).rstrip(), *(" " * (left + 2) + line for line in others)]
    return "\n".join(lines) + "\n"


def _first_sentence(words: str) -> str:
    words = " ".join(words.split("\n\n")[0].split())
    return words[: end + 1] if (end := words.find(". ")) >= 0 else words


def _place(one: Parameter) -> str:
    core = one.mark.metavar.removesuffix("...").strip("[] ")
    return (core if one.required else f"[{core}]") + ("..." if one.many else "")


def _option(one: Parameter) -> str:
    names = ", ".join(one.names)
    return names if one.kind is bool else f"{names} {one.mark.metavar or _KINDS.get(one.kind, 'FILE')}"


def _words(one: Parameter) -> str:
    notes = []
    if one.mark.show_default and one.default not in (None, "", False) and one.kind is not bool:
        notes.append(f"default: {one.default}")
    low, high = one.mark.min, one.mark.max
    if low is not None or high is not None:
        notes.append(f"at most {high}" if low is None else f"at least {low}" if high is None else f"{low} to {high}")
    if one.required:
        notes.append("required")
    return "  ".join([*([one.mark.help] if one.mark.help else []), *([f"[{'; '.join(notes)}]"] if notes else [])])


_HEAD = """# Every verb and option

What each verb is for, with examples by task, is in [command line](command-line.md).
A program makes this page from the verbs: `python -m console.cli.helping > docs/reference/verbs.md`.
"""


def page() -> str:
    """The help of every verb as a page of documentation, 80 columns wide."""
    import os

    from console.cli.find import find
    from console.cli.verbs import GROUPS

    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "80"
    try:
        parts = [_HEAD]
        for group, names in GROUPS.items():
            parts.append(f"\n## {group}\n")
            for name in names:
                parts += _entries(f"watchfloor {name}", find(name))
        return "".join(parts)
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _entries(path: str, found: Verb | Verbs) -> list[str]:
    from console.cli.syntax import Verb

    if isinstance(found, Verb):
        return [_entry(path, verb_help(path, found))]
    below = [entry for name, one in found.verbs.items() for entry in _entries(f"{path} {name}", one)]
    return [_entry(path, family_help(path, found)), *below]


def _entry(path: str, words: str) -> str:
    return f"\n### {path}\n\n```\n{words.strip()}\n```\n"


if __name__ == "__main__":
    print(page(), end="")
