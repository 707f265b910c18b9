"""Errors know their words, exit code and HTTP status."""

from __future__ import annotations

import pytest

from console.domain import errors
from console.domain.errors import ConsoleError, ExitCode, code_words


def test_the_exit_codes_are_the_documented_ones() -> None:
    assert {c.name: c.value for c in ExitCode} == {
        "DONE": 0,
        "FAILURE": 1,
        "USAGE": 2,
        "NOT_FOUND": 3,
        "DENIED": 4,
        "PENDING": 5,
        "UNREACHABLE": 6,
        "LATER_STEP": 7,
        "BEST_EFFORT": 8,
        "NOT_PROVEN": 9,
    }


def test_an_exit_code_alone_has_words_too() -> None:
    assert len({code_words(code) for code in (0, 5, 7, 8, 9, 1)}) == 6 and "NOT killed (exit 1)" in code_words(1)


def test_an_error_says_what_and_what_to_do() -> None:
    error = ConsoleError("It is broken.", "Fix it.")
    assert (error.what, error.remedy, str(error)) == ("It is broken.", "Fix it.", "It is broken. Fix it.")
    assert str(ConsoleError("It is broken.")) == "It is broken."


KINDS = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, ConsoleError) and k is not ConsoleError]


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_is_a_success_but_an_end_that_was_wanted_and_is_there(kind: type[ConsoleError]) -> None:
    assert (kind.exit_code is ExitCode.DONE) == (kind is errors.AlreadyEnded)
    assert kind.http_status >= 400
    assert kind.__doc__


def test_each_status_names_one_kind() -> None:
    statuses = [k.http_status for k in KINDS]
    assert len(statuses) == len(set(statuses))


def test_while_killed_the_answer_is_503_and_denied() -> None:
    assert (errors.Killed.http_status, errors.Killed.exit_code) == (503, ExitCode.DENIED)
