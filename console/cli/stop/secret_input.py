"""Reading a passphrase: from a terminal without echo, a file, a descriptor, or a pipe. Never from an argument or the environment."""

from __future__ import annotations

import getpass
import os
import resource
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from console.cli.syntax import Option
from console.domain.errors import Denied, UsageProblem

MOST = 1024
"""Bytes looked at; a passphrase has at most 256."""
Fd = Annotated[int | None, Option("--passphrase-fd", metavar="N", min=0, help="Read the passphrase from this descriptor.")]
File = Annotated[str | None, Option("--passphrase-file", metavar="FILE", help="Read the passphrase from the first line of this 0600 file.")]


def is_person() -> bool:
    """Return whether a person can type here: both stdin and stdout are terminals."""
    return all(stream is not None and not stream.closed and stream.isatty() for stream in (sys.stdin, sys.stdout))


def no_core() -> None:
    """Switch core dumps off: what is typed here must not reach a file when the process crashes (core(5))."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0")


def read_passphrase(prompt: str, fd: int | None = None, file: str | None = None) -> str:
    """The passphrase, or "" when nothing was given. UsageProblem when a source cannot be read."""
    no_core()
    if fd is not None and file is not None:
        raise UsageProblem("--passphrase-fd and --passphrase-file exclude each other.", "Give one.")
    if fd is not None:
        return _line(_from_fd(fd))
    if file is not None:
        return _line(_from_file(file))
    if is_person():
        return hidden(prompt)
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    return _line(sys.stdin.buffer.readline(MOST))


def hidden(prompt: str) -> str:
    """What a person types without echo, or "" after Ctrl-D."""
    try:
        return getpass.getpass(prompt)
    except EOFError:
        return ""


def typed(prompt: str) -> str:
    """What a person types with echo; Denied without one."""
    if not is_person():
        raise Denied("This takes a person at a terminal.", "Run it in a terminal.")
    try:
        return input(prompt).strip()
    except EOFError:
        return ""


def _from_fd(fd: int) -> bytes:
    try:
        with os.fdopen(os.dup(fd), "rb") as source:
            return source.readline(MOST)
    except OSError as error:
        raise UsageProblem(f"Descriptor {fd} cannot be read: {error.strerror}.", "Open it for the command: 3<FILE.") from error


def _from_file(name: str) -> bytes:
    try:
        with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as source:
            seen = os.fstat(source.fileno())
            if stat.S_ISREG(seen.st_mode) and seen.st_mode & 0o077:
                raise UsageProblem(f"{name[:200]} can be read by others.", "chmod 600 it, and change the passphrase if it leaked.")
            return source.readline(MOST)
    except OSError as error:
        raise UsageProblem(f"{name[:200]} cannot be read: {error.strerror}.", "Name a 0600 file with the passphrase.") from error


def _line(raw: bytes) -> str:
    try:
        return raw.split(b"\n", 1)[0].removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise UsageProblem("The passphrase is not valid UTF-8.", "Write it in UTF-8.") from error
