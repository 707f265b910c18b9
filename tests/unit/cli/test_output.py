"""``watchfloor agent output``: what an agent wrote, harmless for a terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

ROUTE = "GET /api/agents/a-1/output"
HOSTILE = "\x1b]0;owned\x07\x1b[2Jred \u202ex\n"


def wrote(api: CannedApi, *pieces: str, live: bool = False) -> None:
    """The first answer says how long it is; the others are what is there."""
    total, at, answers = sum(map(len, pieces)), 0, list[Any]()
    for piece in ("", *pieces, ""):
        at += len(piece)
        view = {"text": piece, "offset": at, "total": total, "live": live, "exit_code": None if live else 0}
        answers.append((200, json.dumps(view).encode()))
    api.answers[ROUTE] = answers


def test_the_last_lines_are_shown_and_nothing_of_them_acts_on_the_terminal(api: CannedApi, watchfloor: Watchfloor) -> None:
    wrote(api, "one\ntw", f"o\nthree\n{HOSTILE}")
    said = watchfloor("agent", "output", "a-1", "-n", "3")
    assert said.code == 0 and said.out == "two\nthree\n\\e]0;owned\\x07\\e[2Jred \\u202ex\n"
    wrote(api, "one\ntwo\n", live=True)
    assert watchfloor("agent", "output", "a-1", "-n", "1", "--json").json["text"] == "two\n"


def test_an_output_that_is_followed_ends_with_its_agent(api: CannedApi, watchfloor: Watchfloor) -> None:
    wrote(api, "one\n", "two\n", "three\n")
    said = watchfloor("agent", "output", "a-1", "--follow")
    assert said.code == 0 and said.out == "one\ntwo\nthree\n"


def test_where_nothing_is_recorded_it_says_where_to_look(api: CannedApi, watchfloor: Watchfloor) -> None:
    wrote(api)
    said = watchfloor("agent", "output", "a-1")
    assert said.code == 0 and said.out == "" and "watchfloor activity a-1" in said.err


@pytest.mark.parametrize("source", ["watchfloor", "claude_code"])
def test_an_agent_is_shown_with_where_to_read_what_it_wrote(api: CannedApi, watchfloor: Watchfloor, source: str) -> None:
    wrote(api, "a secret of its own\n")
    api.say("GET /api/agents/a-1", {"agent": {"id": "a-1", "name": "x", "source": source, "cwd": "/w/s"}, "argv": ["sh"]})
    said = watchfloor("agent", "show", "a-1")
    assert "folder /w/s" in said.out and "a secret" not in said.out, "what it wrote is shown where it is asked for"
    assert ("watchfloor agent output a-1\n" in said.out) is (source == "watchfloor")
