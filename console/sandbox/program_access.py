"""Whether an agent's account can reach the program that it is to run, asked before the start: afterwards only exit code 126 would tell."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from console.domain.errors import ConsoleError
from console.sandbox.interface import LaunchSpec
from console.sandbox.shim import first_closed

_WRAPPERS = ("env", "nice", "nohup", "setsid", "stdbuf", "timeout")
"""Programs that become the one that they name."""
_SHELLS = ("sh", "bash", "dash")
_SHEBANG_BYTES = 256
"""execve(2): the kernel reads no more of a script's first line."""


def check_program(spec: LaunchSpec, shown: tuple[str, ...] = ("/",)) -> None:
    """Check that the program, and its script's interpreter, can be reached in the sandbox. Raises ConsoleError that names the folder.

    ``shown``: the folders of the host that the sandbox shows. A program that does not exist is left to execve(2), which reports it.
    """
    given = (str(spec.workspace), *(target for _, target in spec.extra_binds))
    for name in (spec.argv[0], *_wrapped(spec.argv)):
        reasons = [_why_not(path, spec, shown, given) for path in _places(name, spec)]
        # execvp tries each folder of PATH in turn, so one place that can be reached is enough.
        if reasons and all(reasons):
            raise ConsoleError(
                reasons[0],
                "Use a program that every account can run, such as /usr/bin/python3, or install this one outside of home folders.",
            )


def _wrapped(argv: tuple[str, ...]) -> Iterator[str]:
    """The programs that wrappers would run (``env X=1 nice python3``), and that a shell would become (``sh -c 'exec python3'``).

    Only what is plain to see: anything else is left to execve(2), as is what depends on a PATH or folder that they set.
    """
    words = [] if any(word.startswith("PATH=") for word in argv) else list(argv)
    while words and (name := words.pop(0).rpartition("/")[2]) in (*_WRAPPERS, *_SHELLS):
        if name in _SHELLS:
            with contextlib.suppress(ValueError, IndexError):
                inner = shlex.split(words[1]) if words[0] == "-c" else []
                words = inner[1:] if inner[:1] == ["exec"] else []
                yield from (word for word in words[:1] if word.startswith("/") or "/" not in word)
            return
        while words and (words[0].startswith("-") or "=" in words[0] or (words[0][:1].isdigit() and "/" not in words[0])):
            words.pop(0)
        yield from (word for word in words[:1] if word.startswith("/") or "/" not in word)


def _places(name: str, spec: LaunchSpec) -> Iterator[str]:
    """Where execvpe(3) would find the program, in its order; only files that are there."""
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
