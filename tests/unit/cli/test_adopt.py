"""``watchfloor adopt``: a bare number is refused, what an agent named itself cannot act on the terminal, doubt is no success."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

ITSELF: dict[str, Any] = {
    "pid": 4242,
    "start_ticks": 777,
    "kind": "itself",
    "exe": "/home/x/\x1b[2J\u202eclaude",
    "uid": 1000,
    "command": "claude\r\n\x1b]0;owned\x07 --yes [bold]x[/bold]",
}
SEEN: dict[str, Any] = {
    "agent": "o-1",
    "name": "\x1b[31mx",
    "candidates": [ITSELF, {"pid": 5, "start_ticks": 9, "kind": "orphan", "why_not": "it is the\x1b[2J guard"}],
    "descendants": 3,
    "orphans": 1,
}
DONE: dict[str, Any] = {"agent": "o-1", "moved": 4}
GET = "GET /api/adopt/candidates"


def test_candidates_are_listed_harmless_with_how_to_confirm_one(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say(GET, SEEN)
    said = watchfloor("adopt", "o-1")
    assert said.code == 0 and "4242:777" in said.out and "--pid 4242:777" in said.out and "4 processes come along" in said.out
    assert "1 process stays outside and may be its" in said.out and "a guess" in said.out and "--also PID:START" in said.out
    assert not {"\x1b", "\u202e", "\x07", "\r"} & set(said.out + said.err) and "[bold]x[/bold]" in said.out
    assert [asked.method for asked in api.asked] == ["GET"]
    assert watchfloor("adopt", "o-1", "--json").json["candidates"][0]["pid"] == 4242


def test_one_that_may_not_be_adopted_says_why_and_is_no_success(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say(GET, SEEN | {"why_not": "it is an ancestor\x1b[2J of the supervisor"})
    said = watchfloor("adopt", "o-1")
    assert said.code == 1 and "ancestor" in said.err and "to adopt it" not in said.out and "\x1b" not in said.err


@pytest.mark.parametrize("argv", [("--pid", "4242"), ("--pid", "4242:"), ("--pid", "-1:7"), ("--pid", "4242:777x"), ("--also", "5:9")])
def test_a_process_is_named_by_pid_and_start_or_not_at_all(api: CannedApi, watchfloor: Watchfloor, argv: tuple[str, ...]) -> None:
    assert watchfloor("adopt", "o-1", *argv).code == 2 and api.asked == []


def test_what_is_confirmed_is_sent_as_it_was_shown(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say(GET, SEEN)
    api.say("POST /api/adopt", DONE)
    assert watchfloor("adopt", "o-1", "--pid", "4242:777", "--also", "5:9", "--reason", "mine").code == 0
    sent = {"agent": "o-1", "pid": 4242, "start_ticks": 777, "exe": ITSELF["exe"], "uid": 1000, "reason": "mine"}
    assert api.asked[-1].body == sent | {"also": [{"pid": 5, "start_ticks": 9}]}


@pytest.mark.parametrize("named", ["4242:778", "5:9", "1:1"])
def test_another_process_than_the_agents_own_is_never_sent(api: CannedApi, watchfloor: Watchfloor, named: str) -> None:
    api.say(GET, SEEN)
    said = watchfloor("adopt", "o-1", "--pid", named)
    assert said.code == 1 and [asked.method for asked in api.asked] == ["GET"]


def test_what_stayed_outside_is_said_and_best_effort_is_no_plain_success(api: CannedApi, watchfloor: Watchfloor) -> None:
    api.say(GET, SEEN)
    api.say("POST /api/adopt", DONE | {"left": {"77": "busy\x1b[2J"}, "orphans": 2, "best_effort": "1 left", "frozen": "the disk is full"})
    said = watchfloor("adopt", "o-1", "--pid", "4242:777")
    assert (
        said.code == 8
        and "NOT moved: process 77" in said.err
        and "best effort" in said.err
        and "FROZEN" in said.err
        and "\x1b" not in said.err
    )
