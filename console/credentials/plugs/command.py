"""Programs of the plan: started without a shell and with an environment of their own, fed through standard input, ended in time."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import IO

from console.credentials.plan import Command
from console.credentials.trust import check_program
from console.domain.errors import ConsoleError, TimedOut

END_S = 5.0
"""Seconds after SIGKILL for which a program is waited for. One that lives longer hangs in the kernel, and a waiting thread with it."""
OUTPUT_LIMIT = 64 * 1024
"""Bytes of either stream that are read; a program that prints more is ended."""
# The supervisor's own environment may hold tokens, and its PATH may name folders that agents write.
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended."""

    code: int
    """Exit code; negative: the signal."""
    out: bytes
    err: bytes


def run_command(command: Command, given: bytes, item: str) -> Ran:
    """Runs it with ``given`` on its standard input. Raises ConsoleError when it cannot be run, TimedOut when its time was up.

    Whatever it left in its process group is ended with it.
    """
    check_program(command.argv[0])
    try:
        process = subprocess.Popen(  # noqa: S603 - no shell; the operator's own program, checked above
            command.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={**_ENVIRONMENT, "WATCHFLOOR_ROTATION_ITEM": item},
            # A group of its own, so that whatever it starts can be ended with it.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise ConsoleError(f"{command.argv[0]} cannot be started: {words}.", "Check it by hand.") from error
    try:
        out, err = _converse(process, given, time.monotonic() + command.timeout_s, command)
    finally:
        has_ended = _end_group(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                _hang_up(stream)
    if not has_ended:
        raise TimedOut(f"{command.argv[0]} cannot be ended: it hangs in the kernel.", "See what it waits for.")
    return Ran(process.returncode, out, err)


def _converse(process: subprocess.Popen[bytes], given: bytes, until: float, command: Command) -> tuple[bytes, bytes]:
    """Feeds and listens until it has ended; what it leaves running may hold the pipes open, that is not waited for."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    talk = _Talk(process.stdin, given, {process.stdout: bytearray(), process.stderr: bytearray()})
    with selectors.DefaultSelector() as selector:
        for stream, events in ((process.stdin, selectors.EVENT_WRITE), *((s, selectors.EVENT_READ) for s in talk.heard)):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, events)
        while True:
            over = _has_ended(process)
            # A short wait, because the end of the program is no event here: a process that it left may hold the pipes open.
            for key, _ in selector.select(0 if over else 0.05):
                if not talk.goes_on(key.fileobj):  # type: ignore[arg-type]
                    selector.unregister(key.fileobj)
                    if key.fileobj is process.stdin:
                        _hang_up(process.stdin)  # it waits for the end of what it is told
            if over:
                return bytes(talk.heard[process.stdout]), bytes(talk.heard[process.stderr])
            if any(len(said) > OUTPUT_LIMIT for said in talk.heard.values()):
                raise ConsoleError(f"{command.argv[0]} printed more than {OUTPUT_LIMIT} bytes and was ended.", "Let it print less.")
            if time.monotonic() > until:
                raise TimedOut(
                    f"{command.argv[0]} took longer than {command.timeout_s:g} s and was ended.", "Raise timeout_s, or fix the program."
                )


@dataclass(slots=True)
class _Talk:
    """What is still to be said, and what was heard."""

    stdin: IO[bytes]
    rest: bytes
    heard: dict[IO[bytes], bytearray]

    def goes_on(self, stream: IO[bytes]) -> bool:
        """One stream is ready; False when it is done with."""
        if stream is not self.stdin:
            return _hear(stream, self.heard)
        self.rest = _feed(self.stdin, self.rest)
        return bool(self.rest)


def _hang_up(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        pass  # it never read what was left for it


def _feed(stdin: IO[bytes], rest: bytes) -> bytes:
    try:
        return rest[os.write(stdin.fileno(), rest[:4096]) :] if rest else b""
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return b""  # it does not want to know


def _hear(stream: IO[bytes], heard: dict[IO[bytes], bytearray]) -> bool:
    try:
        said = os.read(stream.fileno(), OUTPUT_LIMIT + 1)
    except BlockingIOError:
        return True
    heard[stream] += said
    return bool(said)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the process has ended, without reaping it. Unreaped it keeps its number, and so its group's (waitid(2), WNOWAIT)."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(process: subprocess.Popen[bytes]) -> bool:
    """End the process group; return whether it is gone."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        return False
    return True
