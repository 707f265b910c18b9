"""``say``, ``interrupt`` and ``end``: what goes out, what is printed, which code they end with."""

from __future__ import annotations

import io
import sys

import pytest

from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor


def test_a_message_goes_out_as_it_is_and_is_answered(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.say("POST /api/agents/a/message", {"id": "a", "done": "said"})
    assert watchfloor("say", "a", "--", "-n $(id)").out == "a: said\n"
    assert api.asked[-1].body == {"text": "-n $(id)", "dangerous_ok": ""}
    assert watchfloor("say", "a", "x", "--json").json["done"] == "said"


def test_standard_input_is_read_within_bounds(watchfloor: Watchfloor, api: CannedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.say("POST /api/agents/a/message", {"id": "a", "done": "said"})
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe"))
    assert watchfloor("say", "a", "-").code == 0 and api.asked[-1].body == {"text": "from a pipe", "dangerous_ok": ""}
    monkeypatch.setattr(sys, "stdin", io.StringIO("x" * 100_000))
    before = len(api.asked)
    assert watchfloor("say", "a", "-").code == 2 and watchfloor("say", "a", " ").code == 2 and len(api.asked) == before


def test_a_refusal_is_exit_4_and_an_unconfirmed_interrupt_5(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.refuse("POST /api/agents/a/message", 403, "a gets no message: it is frozen.", exit_code=4)
    said = watchfloor("say", "a", "x")
    assert said.code == 4 and "it is frozen" in said.err
    api.refuse("POST /api/agents/a/interrupt", 504, "a did not say that its turn ended.", exit_code=5)
    assert watchfloor("interrupt", "a").code == 5
    api.say("POST /api/agents/a/interrupt", {"id": "\x1b[31ma", "done": "interrupted"})
    assert "\x1b" not in watchfloor("interrupt", "a").out


def test_an_end_is_exit_0_only_when_the_guard_saw_it(watchfloor: Watchfloor, api: CannedApi) -> None:
    for done, code in (("ended", 0), ("runs", 5), ("killed", 4)):
        api.say("POST /api/agents/a/end", {"id": "a", "done": done, "processes": 3, "words": "\x1b[31mwords", "best_effort": "doubt"})
        said = watchfloor("finish", "a", "--reason", "done with it", "--within", "2")
        assert said.code == code and "words" in said.out and "doubt" in said.out and "\x1b" not in said.out
        assert api.asked[-1].body == {"reason": "done with it", "within_s": 2.0}
    assert watchfloor("finish", "a", "--json").json["done"] == "killed"
    before = len(api.asked)
    assert watchfloor("finish", "a", "--within", "601").code == 2 and watchfloor("finish", "a", "--reason", "x" * 501).code == 2
    assert len(api.asked) == before
    api.refuse("POST /api/agents/a/end", 403, "a cannot be asked to end: it is frozen.", exit_code=4)
    assert watchfloor("finish", "a").code == 4
