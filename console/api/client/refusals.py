"""A supervisor's refusal as the error that it is, for the command line and for the window."""

from __future__ import annotations

import json

from console.domain.errors import (
    AlreadyEnded,
    Conflict,
    ConsoleError,
    Denied,
    ExitCode,
    Killed,
    NotFound,
    NotRecorded,
    TimedOut,
    TokenRefused,
    TooLarge,
    TooMany,
    Unavailable,
    Unconfirmed,
    Unreachable,
    UsageProblem,
)

_KINDS: dict[int, type[ConsoleError]] = {
    kind.http_status: kind
    for kind in (
        AlreadyEnded,
        UsageProblem,
        TooLarge,
        NotFound,
        Denied,
        TokenRefused,
        Conflict,
        Killed,
        TimedOut,
        Unreachable,
        Unavailable,
        NotRecorded,
        TooMany,
        Unconfirmed,
    )
}
_KINDS |= {422: UsageProblem, 405: NotFound}


def error_from(status: int, body: bytes) -> ConsoleError:
    """The ConsoleError kind of an answer that is not 2xx; words and exit code are the supervisor's own when it sent them."""
    kind = _KINDS.get(status, ConsoleError)
    try:
        said = json.loads(body)
        if not isinstance(said["error"], str):
            raise TypeError("an error has words")
        error, code = kind(said["error"], str(said.get("remedy", ""))), int(said.get("exit_code", 1))
    except (ValueError, KeyError, TypeError, AttributeError):
        return kind(f"The supervisor answered {status} without saying why.", "watchfloor status shows its state.")
    error.http_status = status
    try:
        # A refusal is never a success, but for one: there is nothing left to kill.
        error.exit_code = ExitCode(code) if kind is AlreadyEnded else ExitCode(code) or ExitCode.FAILURE
    except ValueError:
        error.exit_code = ExitCode.FAILURE
    return error
