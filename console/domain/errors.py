"""Errors that know their own words: what is wrong and what to do about it, with the documented exit code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every verb."""

    DONE = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    PENDING = 5
    UNREACHABLE = 6
    LATER_STEP = 7
    BEST_EFFORT = 8
    NOT_PROVEN = 9


_CODE_WORDS: dict[int, str] = {
    ExitCode.DONE: "All processes are dead",
    ExitCode.LATER_STEP: "All processes are dead, a later step is not done",
    ExitCode.BEST_EFFORT: "Killed, but not all of it is confirmed",
    ExitCode.NOT_PROVEN: "NOT PROVEN: something may still run",
    ExitCode.PENDING: "The kill went out, nothing is confirmed yet",
}


def code_words(code: int) -> str:
    """What an exit code says of a kill whose receipt cannot be read from here."""
    return _CODE_WORDS.get(code, f"NOT killed (exit {code})")


class ConsoleError(Exception):
    """An error a person can act on. ``what`` says what is wrong, ``remedy`` what to do; both are plain text."""

    exit_code: ExitCode = ExitCode.FAILURE
    http_status: int = 500

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} {self.remedy}".strip()


class UsageProblem(ConsoleError):
    """The request itself is malformed: wrong type, hostile or oversized value, unknown option."""

    exit_code = ExitCode.USAGE
    http_status = 400


class TooLarge(UsageProblem):
    """A body, name or line exceeds its bound."""

    http_status = 413


class NotFound(ConsoleError):
    """What was named does not exist."""

    exit_code = ExitCode.NOT_FOUND
    http_status = 404


class Denied(ConsoleError):
    """Policy, limits or identity refuse the request."""

    exit_code = ExitCode.DENIED
    http_status = 403


class TokenRefused(Denied):
    """A token or key was presented that is not accepted now: forged, expired, revoked, or rotated away."""

    http_status = 401


class Frozen(Denied):
    """The agent is frozen: what was asked for can be done once it is thawed (RFC 4918, 11.3)."""

    http_status = 423


class Conflict(ConsoleError):
    """The world changed since the caller looked: stale generation, changed file, lock held by another."""

    http_status = 409


class AlreadyEnded(Conflict):
    """A kill names an agent that has ended: what was wanted is so (RFC 9110, 410).

    Its code is BEST_EFFORT where nothing held all that the agent started.
    """

    exit_code = ExitCode.DONE
    http_status = 410


class Unconfirmed(Conflict):
    """What would be sent names dangerous operations, and the operator who sends it has not confirmed them (RFC 6585, 3)."""

    exit_code = ExitCode.DENIED
    http_status = 428


class TooMany(ConsoleError):
    """More requests at once, or in a second, than one caller may make."""

    exit_code = ExitCode.DENIED
    http_status = 429


class Killed(ConsoleError):
    """The kill switch is latched: nothing starts, nothing changes until you rearm."""

    exit_code = ExitCode.DENIED
    http_status = 503


class TimedOut(ConsoleError):
    """No answer in time; the outcome is unknown, never assumed good."""

    exit_code = ExitCode.PENDING
    http_status = 504


class Unreachable(ConsoleError):
    """The supervisor or guard did not answer."""

    exit_code = ExitCode.UNREACHABLE
    http_status = 502


class Unavailable(ConsoleError):
    """A part this needs is missing here ("not available, because ...")."""

    http_status = 501


class NotRecorded(ConsoleError):
    """Audit or rollback record could not be written, so the action was not taken (promise 5)."""

    http_status = 507
