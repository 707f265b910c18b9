"""Printing for people and for programs. A reader that went away never changes what a verb does or its exit code."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Collection
from typing import Any, Protocol, TextIO

from console.cli.terminal.folding import fold, terminal_columns
from console.cli.terminal.plain import plain
from console.cli.terminal.tables import Table, Text, lines
from console.domain.errors import ConsoleError, UsageProblem
from console.domain.process.account import named_here

SCHEMA_VERSION = 1


class View(Protocol):
    """An answer of the API, which carries a ``schema_version`` of its own."""

    def as_data(self, *, exclude: Collection[str] = ()) -> dict[str, Any]: ...


def emit(data: dict[str, Any]) -> None:
    """One JSON document with ``schema_version``; ASCII only, so hostile text cannot act on a terminal."""
    write(json.dumps({"schema_version": SCHEMA_VERSION, **data}, indent=2, default=str) + "\n")


def emit_view(view: View) -> None:
    """An answer of the API as the document that `emit` makes of it."""
    emit(view.as_data(exclude={"schema_version"}))


def emit_line(data: dict[str, Any]) -> None:
    """One JSON document with ``schema_version`` on one line, for streams."""
    write(json.dumps({"schema_version": SCHEMA_VERSION, **data}, default=str) + "\n")


def say(words: str) -> None:
    """One line of our own words (what agents wrote must have passed ``plain``)."""
    write(words + "\n")


def say_folded(words: str) -> None:
    """The same, folded at the width of a terminal; whole when a program reads."""
    say("\n".join(fold(line, columns() if is_terminal() else None) for line in words.split("\n")))


def show(*things: Text | Table) -> None:
    """Tables and texts; never markup, never emoji, never guessed highlighting."""
    write(rendered(*things))


def rendered(*things: Text | Table) -> str:
    """What `show` writes: in colour for a person whose terminal has it (https://no-color.org)."""
    coloured = is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    room = columns()
    return "".join(line.painted(coloured=coloured) + "\n" for thing in things for line in lines(thing, room))


def note(words: str) -> None:
    """One line on stderr: progress, notices."""
    _write_to(sys.stderr, words + "\n")


def complain(error: ConsoleError) -> None:
    """What is wrong and what to do, on stderr."""
    lines = f"error: {plain(named_here(error.what), 2000)}\n"
    if error.remedy:
        lines += f"  {plain(named_here(error.remedy), 2000)}\n"
    _write_to(sys.stderr, lines)


def words(text: object, style: str = "", limit: int = 200) -> Text:
    """Hostile text as a Text that is never read as markup."""
    return Text(plain(text, limit), style=style)


def write(text: str) -> None:
    """Text to stdout, whatever became of it; kept back after `hold`."""
    if _Held.texts is None:
        _write_to(sys.stdout, text)
    else:
        _Held.texts.append(text)


def hold() -> None:
    """Keeps back what is written from here on, until `release`: its length decides how a person reads it."""
    _Held.texts = []


def release() -> str:
    """What was kept back; what comes now is written at once again."""
    kept, _Held.texts = "".join(_Held.texts or ()), None
    return kept


def is_asked() -> bool:
    """Whether a person can be asked: standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(question: str) -> None:
    """Asks on stderr. Raises KeyboardInterrupt for any answer but yes, and for none."""
    _write_to(sys.stderr, f"{question} [y/N]: ")
    if sys.stdin is None or sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise KeyboardInterrupt


def gone() -> bool:
    """Whether the reader of stdout went away; endless verbs end then."""
    return _Gone.stdout


class _Gone:
    """Remember whether the reader of stdout has closed the pipe."""

    stdout = False


class _Held:
    """What was kept back; None: nothing is."""

    texts: list[str] | None = None


def _write_to(stream: TextIO | None, text: str) -> None:
    if stream is None:  # started with the descriptor closed
        return
    try:
        stream.write(text)
        stream.flush()
    except UnicodeEncodeError:
        _write_to(stream, text.encode("ascii", "backslashreplace").decode())
    except OSError as error:  # a broken pipe, a full disk: the verb goes on, its exit code stays its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout:
            _Gone.stdout = True
            if error.errno != errno.EPIPE:  # who closes a pipe knows it
                note(f"not everything was printed: {error.strerror}")


def is_terminal() -> bool:
    """Whether a person reads, as far as can be known."""
    return sys.stdout is not None and sys.stdout.isatty()


def _width() -> int | None:
    """Wide when a program reads, so that tables are not cut; None: as wide as the terminal."""
    return None if is_terminal() else 160


def columns() -> int:
    """How wide what is shown may be."""
    return _width() or terminal_columns()


def readable(argv: list[str]) -> list[str]:
    """The arguments as text. A reason with other bytes in it is kept with their codes: it must not keep a kill from going out.

    Raises UsageProblem for any other argument that is not valid UTF-8.
    """
    return [_readable(number, argument, argv[number - 2 : number - 1]) for number, argument in enumerate(argv, 1)]


def _readable(number: int, argument: str, before: list[str]) -> str:
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        if before == ["--reason"] or argument.startswith("--reason="):
            return argument.encode(errors="backslashreplace").decode()
        raise UsageProblem(f"Argument {number} ({plain(argument, 60)}) is not valid UTF-8.", "Write it in UTF-8.") from error
    return argument
