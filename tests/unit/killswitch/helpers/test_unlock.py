"""The helper for a rearm: what it answers, and that a guard takes over nothing of an answer of another shape."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ConsoleError, Denied, Unavailable
from console.killswitch.guard import unlatch
from console.killswitch.guard.unlatch import LONGEST_WAIT_S, Passphrase
from console.killswitch.helpers import passphrase
from console.killswitch.helpers.unlock import answer
from tests.fakes.guard_room import Room, helped

WORDS = "correct horse battery"
NOTE: dict[str, object] = {"sha256": "", "next_sha256": "", "path": "", "wrong": 0, "reset_generation": -1}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passphrase, "N", 2**10)


def test_it_sets_checks_counts_and_resets(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"file": str(tmp_path / "c" / "p"), "folder": str(tmp_path), "note": NOTE, "not_before": 0}
    made = answer(asked | {"op": "change", "new": WORDS, "old": ""})
    assert (made["state"], made["refused"], made["path"]) == ("set", [], str(tmp_path / "c" / "p"))
    wrong = answer(asked | {"op": "check", "given": "wrong wrong"})
    assert wrong["refused"][0] == "Denied" and wrong["note"]["wrong"] == 1 and wrong["state"] == "set"
    assert wrong["not_before"] > time.clock_gettime(time.CLOCK_BOOTTIME)
    assert answer(asked | {"op": "check", "given": WORDS, "not_before": wrong["not_before"]})["refused"][0] == "Denied", "too soon"
    assert answer(asked | {"op": "check", "given": WORDS})["refused"] == []
    gone = answer(asked | {"op": "reset", "generation": 7})
    assert (gone["state"], gone["note"]["reset_generation"]) == ("not_set", 7)


def test_what_the_guard_remembers_makes_a_missing_note_show(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"file": str(tmp_path / "p"), "folder": str(tmp_path), "note": NOTE, "not_before": 0}
    made = answer(asked | {"op": "change", "new": WORDS, "old": ""})
    (tmp_path / "rearm.json").unlink()
    assert answer(asked | {"op": "look", "note": made["note"]})["state"] == "broken"


@pytest.mark.parametrize("op", ["", "unlatch", 5, None])
def test_it_does_nothing_else(tmp_path: Path, op: object) -> None:
    with_op = {"op": op, "file": "", "folder": str(tmp_path), "note": NOTE, "not_before": 0}
    try:
        assert answer(with_op)["refused"][0] == "UsageProblem"
    except ConsoleError:
        pass
    assert list(tmp_path.iterdir()) == []


LIES: list[Callable[[dict[str, Any]], object]] = [
    lambda heard: heard.clear(),
    lambda heard: heard.pop("refused"),
    lambda heard: heard.update(more=1),
    lambda heard: heard.update(state="open"),
    lambda heard: heard.update(state=True),
    lambda heard: heard.update(why=None),
    lambda heard: heard.update(refused=["Denied"]),
    lambda heard: heard.update(refused=["Unlatched", "yes", ""]),
    lambda heard: heard.update(refused=["Denied", 1, ""]),
    lambda heard: heard.update(not_before=-1.0),
    lambda heard: heard.update(not_before=float("nan")),
    lambda heard: heard.update(not_before="soon"),
    lambda heard: heard.update(note=[]),
    lambda heard: heard["note"].update(wrong=True),
    lambda heard: heard["note"].pop("wrong"),
]


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_of_another_shape_opens_nothing_and_leaves_no_trace(
    make_room: Callable[..., Room], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: Callable[[dict[str, Any]], object]
) -> None:
    room = make_room(passphrase_file=tmp_path / "config" / "passphrase")
    room.ask("passphrase", new=WORDS, by="owner")
    room.guard.press("all", "why", "who")
    room.run_threads()
    state, it = room.guard.latch.state, room.desk.unlatching.passphrase
    before = (it.state, it.why, it.note)

    def lying(request: dict[str, Any]) -> dict[str, Any]:
        heard = answer(request)
        lie(heard)
        return heard

    monkeypatch.setattr(unlatch, "ask", helped(lying))
    assert room.unlatch(state.generation, list(state.kills), kind="passphrase", passphrase=WORDS)["kind"] == "Unavailable"
    assert (it.state, it.why, it.note) == before and room.guard.latch.state.latched
    assert it.wait_s() > 0, "it may have been a wrong attempt"
    assert room.journal()[-1] == "rearm_refused"


@pytest.mark.parametrize("heard", [{}, {"doubts": None}, {"doubts": "none"}, {"doubts": [], "more": 1}])
def test_what_may_still_run_is_not_known_from_an_answer_of_another_shape(
    room: Room, monkeypatch: pytest.MonkeyPatch, heard: dict[str, Any]
) -> None:
    room.guard.press("all", "why", "who")
    room.run_threads()
    state = room.guard.latch.state
    proof = room.ask("prove", kind="typed", generation=state.generation, kill_id=state.kills[-1])["proof"]
    monkeypatch.setattr(unlatch, "ask", helped(lambda _: heard))
    refused = room.ask("unlatch", generation=state.generation, kills=list(state.kills), proof=proof)
    assert refused["kind"] == "Unavailable" and room.guard.latch.state.latched and "unlatch" not in room.journal()


def test_no_answer_locks_an_operator_out_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = Passphrase(tmp_path / "p", tmp_path)
    monkeypatch.setattr(unlatch, "ask", helped(lambda asked: answer(asked) | {"not_before": 1e14}))
    it.ask("look")
    assert 0 < it.wait_s() <= LONGEST_WAIT_S


def test_a_file_that_nobody_changed_starts_no_helper(
    make_room: Callable[..., Room], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room(passphrase_file=tmp_path / "config" / "passphrase")
    asked: list[str] = []

    def counted(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["op"])
        return answer(request)

    monkeypatch.setattr(unlatch, "ask", helped(counted))
    room.desk.unlatching.look()
    assert asked == [], "none is set"
    room.ask("passphrase", new=WORDS, by="owner")
    asked.clear()
    for _ in range(3):
        room.desk.unlatching.look()
    assert asked == ["look"]
    file = tmp_path / "config" / "passphrase"
    seen = file.stat()
    file.write_bytes(bytes(reversed(file.read_bytes())))
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # as one does who hides it
    room.desk.unlatching.look()
    assert "cannot be trusted" in room.guard.notices["passphrase"]


def refuses(*_: object) -> dict[str, Any]:
    raise Unavailable("The guard's helper for this (unlock) gave no answer in time.", "")


def test_a_helper_that_does_not_answer_shows_and_is_asked_again(
    make_room: Callable[..., Room], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room(passphrase_file=tmp_path / "config" / "passphrase")
    room.ask("passphrase", new=WORDS, by="owner")

    with monkeypatch.context() as gone:
        gone.setattr(unlatch, "ask", refuses)
        room.desk.unlatching.look()
        assert "could not" in room.guard.notices["passphrase"] or "no answer" in room.guard.notices["passphrase"]
        assert room.ask("status")["rearm"]["passphrase"] == "set"
    room.desk.unlatching.look()
    assert "passphrase" in room.guard.notices, "not each second, and shown until then"
    monkeypatch.setattr(unlatch, "monotonic", lambda: time.monotonic() + unlatch.RETRY_S)
    room.desk.unlatching.look()
    assert "passphrase" not in room.guard.notices


def test_what_a_former_guard_left_is_asked_for_until_it_is_told(
    make_room: Callable[..., Room], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait after wrong attempts: a guard that was started again, and whose first helper gave no answer, has it still."""
    room = make_room(passphrase_file=tmp_path / "config" / "passphrase")
    room.ask("passphrase", new=WORDS, by="owner")
    for _ in range(4):
        room.desk.unlatching.passphrase.not_before = 0.0
        with pytest.raises(Denied):
            room.desk.unlatching.passphrase.ask("check", given="wrong")
    again = unlatch.Passphrase(room.guard.config.passphrase_file, room.guard.config.guard_dir)
    with monkeypatch.context() as gone:
        gone.setattr(unlatch, "ask", refuses)
        again.look_if_changed()
    with pytest.raises(ConsoleError, match="s"):
        again.ask("check", given=WORDS)
    assert again.note["wrong"] == 4 and again.wait_s() > 0
