"""Whether an agent's account can reach the program that it is to run, asked before the start: afterwards only exit code 126 would tell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from console.domain.errors import ConsoleError
from console.sandbox.interface import LaunchSpec
from console.sandbox.shim import first_closed

_SHEBANG_BYTES = 256
"""execve(2): the kernel reads no more of a script's first line."""


def check_program(spec: LaunchSpec, shown: tuple[str, ...] = ("/",)) -> None:
    """Raises ConsoleError that names the folder when no place of the program, or of its script's interpreter, can be reached.

    ``shown``: the folders of the machine that the sandbox shows. A program that is nowhere is left to execve(2), which says so.
    """
    given = (str(spec.workspace), *(target for _, target in spec.extra_binds))
    reasons = []
    for path in _places(spec):
        reason = _why_not(path, spec, shown, given)
        if not reason:
            return
        reasons.append(reason)
    if reasons:
        raise ConsoleError(
            reasons[0],
            "Use a program that every account can run, such as /usr/bin/python3, or install this one outside of home folders.",
        )


def _places(spec: LaunchSpec) -> Iterator[str]:
    """Where execvpe(3) would find the program, in its order; only files that are there."""
    name = spec.argv[0]
    if "/" in name:
        found = [spec.workspace / name]
    else:
        found = [Path(folder) / name for folder in spec.env.get("PATH", os.defpath).split(":") if folder.startswith("/")]
    yield from (str(path) for path in found if os.access(path, os.X_OK) and path.is_file())


def _why_not(path: str, spec: LaunchSpec, shown: tuple[str, ...], given: tuple[str, ...]) -> str:
    """Why the sandbox cannot run this file; empty: nothing speaks against it."""
    for file in (path, os.path.realpath(path), *_interpreter(path)):
        if any(_is_below(file, folder) for folder in given):
            continue
        if not any(_is_below(file, folder) for folder in shown):
            return f"{file} cannot be run: this sandbox does not show it."
        closed = first_closed(file, spec.uid, spec.gid)
        if closed:
            return f"{file} cannot be run: the agents' account (uid {spec.uid}) may not enter {closed}."
    return ""


def _interpreter(path: str) -> Iterator[str]:
    """The program that a script names in its first line, and where it really lies."""
    try:
        with Path(path).open("rb") as file:
            first = file.read(_SHEBANG_BYTES).split(b"\n", 1)[0]
    except OSError:
        return
    if first.startswith(b"#!") and (words := first[2:].split()):
        name = Path(os.fsdecode(words[0]))
        if name.is_absolute() and name.is_file():
            yield from (str(name), os.path.realpath(name))


def _is_below(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)
