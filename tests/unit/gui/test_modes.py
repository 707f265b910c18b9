"""Modes as words, and a session's history as segments of time and lines."""

from __future__ import annotations

import pytest

from console.api.messages import AgentView
from console.api.network import ModeHistoryView
from console.gui.kit.table import words_of
from console.gui.models.fleet import Row
from console.gui.models.modes import is_open, moments, network_chip, oldest_first, segments, spoken
from console.gui.pages.fleet.modes import line_of, more_words, parts_of
from console.gui.pages.network.sandboxes import COLUMNS, holds, matches, why_not_stricter, why_words
from tests.fakes.sandbox_routes import change, history

NOW = 10_000.0


def made(*changes: object, began_at: float | None = 1000.0, **more: object) -> ModeHistoryView:
    fields = {"session": "s", "mode": "NONE", "sensitivity": "PUBLIC", "began_at": began_at, "changes": list(changes)}
    return ModeHistoryView.read(fields | more)


def agent(**more: object) -> AgentView:
    fields = {"id": "a1", "name": "n", "state": "running", "started_at": 1.0, "sandbox": "docker", "control_level": "contained"}
    return AgentView.read(fields | more)


def test_what_nothing_enforces_is_full_and_says_what_was_asked() -> None:
    asked = agent(
        network_mode="FULL", network_asked="NONE", network_note="it shares the host's network", network_why="its session is in NONE"
    )
    assert is_open(asked) and network_chip(asked, long=True).text == "FULL, not enforced"
    wide = asked.replaced(network_asked="FULL", network_mode="FULL", state="running", network_enforced=False)
    assert network_chip(wide, long=True).text == "FULL, not enforced"
    assert network_chip(wide.replaced(state="killed"), long=True).text == "FULL"
    row = Row(asked)
    assert holds(row) == ("Not enforced", "triangle", "warn")
    assert why_words(row) == "NONE is not enforceable here, because it shares the host's network (its session is in NONE)"
    assert not why_not_stricter(row)


@pytest.mark.parametrize(
    ("fields", "word", "refused"),
    [
        ({"network_mode": "FULL", "network_asked": "FULL", "network_enforced": True}, "Not restricted", ""),
        ({"network_mode": "PROXIED", "network_asked": "PROXIED", "network_enforced": True}, "Enforced", ""),
        ({"network_mode": "NONE", "network_asked": "NONE", "network_enforced": True}, "Enforced", "nothing stricter"),
        ({"network_mode": "NONE", "network_asked": "NONE", "network_enforced": True, "isolated": "ann"}, "Enforced", ""),
        ({"control_level": "observed"}, "Not restricted", "only observed"),
        ({"control_level": "managed"}, "Not restricted", ""),
    ],
)
def test_each_mode_has_words_and_whether_it_can_be_stricter(fields: dict[str, object], word: str, refused: str) -> None:
    row = Row(agent(**{"control_level": "contained", **fields}))
    assert holds(row)[0] == word
    assert (refused in why_not_stricter(row)) if refused else not why_not_stricter(row)


def test_all_typed_words_are_looked_for_in_everything_a_row_says() -> None:
    row = Row(agent(network_mode="PROXIED", network_asked="PROXIED", network_enforced=True, network_why="its session holds SECRET data"))
    assert matches(row, "docker proxied secret enforced") and not matches(row, "docker gvisor") and matches(row, "")
    assert "since" in words_of(COLUMNS)(row, "since")


def test_the_strip_is_whole_from_the_start_to_now() -> None:
    found = segments(history("s", NOW), NOW)
    assert [(s.mode, s.enforced) for s in found] == [
        ("FULL", True),
        ("PROXIED", False),
        ("NONE", True),
        ("PROXIED", True),
        ("NONE", True),
    ]
    assert found[0].start == NOW - 7200 and found[-1].end == NOW
    assert all(a.end == b.start for a, b in zip(found, found[1:], strict=False))
    parts = parts_of(found)
    assert sum(p.share for p in parts) == pytest.approx(1.0)
    assert [p.kind for p in parts] == ["open", "open", "closed", "middle", "closed"]
    assert parts[1].tip.startswith("FULL, not enforced (PROXIED was asked for) for ")


def test_what_came_before_the_agent_holds_from_its_start() -> None:
    found = segments(made(change(500.0, "launch", "PROXIED"), change(5000.0, "operator", "NONE")), NOW)
    assert [(s.mode, s.start, s.end) for s in found] == [("PROXIED", 1000.0, 5000.0), ("NONE", 5000.0, NOW)]


@pytest.mark.parametrize("began", [None, 1000.0, 99_999.0])
def test_nothing_ever_happened_or_clocks_are_wrong(began: float | None) -> None:
    [only] = segments(made(began_at=began), NOW)
    assert only.mode == "FULL" and only.end >= only.start
    odd = segments(made(change(1e300, "operator", "NONE"), change(-5.0, "data", "PROXIED"), began_at=began), NOW)
    assert all(s.end >= s.start for s in odd)
    assert parts_of(odd)


def test_a_looser_or_unknown_word_never_loosens_the_strip() -> None:
    found = segments(made(change(2000.0, "operator", "NONE"), change(3000.0, "launch", "PROXIED"), change(4000.0, "x", "WIDE")), NOW)
    assert found[-1].mode == "NONE"


def test_a_proof_stands_with_its_act_and_what_is_not_held_is_amber() -> None:
    lines = [line_of(m, NOW) for m in moments(history("s", NOW))]
    assert [(x.title, x.shape) for x in lines] == [
        ("None", "ban"),
        ("Proxied, reconnected", "dot"),
        ("Isolated", "ban"),
        ("Proxied", "triangle"),
    ]
    assert lines[0].words == "verified in 3.2 ms · root (uid 0): pastes customer records"
    assert lines[3].bad and lines[3].words.startswith(
        "NOT enforceable here: it shares the host's network · CONFIDENTIAL data: customer letters"
    )
    assert "Isolated, by root (uid 0): asks for pastebin, verified" in spoken(moments(history("s", NOW)))


def test_a_proof_alone_is_a_look_again() -> None:
    [only] = moments(made(change(2000.0, "enforced", "NONE", enforced=False, words="the engine hangs")))
    assert (only.words, only.role, only.bad) == ("checked again", "warn", True)


def test_data_that_asked_for_no_mode_is_a_line_and_what_is_left_out_is_counted() -> None:
    view = made(change(2000.0, "data", sensitivity="INTERNAL", words="menu from kitchen", by="agent:a1"), left_out=7)
    [only] = moments(view)
    assert only.title == "Internal data" and "INTERNAL data: menu from kitchen, by agent:a1" in only.words
    assert more_words(view, 1) == "and 7 earlier changes" and not more_words(made(), 1)
    assert oldest_first(view) == view.changes
