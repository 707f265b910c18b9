"""Who may rearm, and that a kill wins over every release, in every order (K8)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.domain.guard import encode
from console.killswitch.guard import unlatch
from console.killswitch.guard.unlatch import newest
from console.killswitch.helpers import passphrase
from console.killswitch.store.atomic_file import write_whole
from console.killswitch.store.journal import read_journal
from tests.fakes.guard_room import Room

WORDS = "correct horse battery"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passphrase, "N", 2**10)


@pytest.fixture
def locked(make_room: Callable[..., Room], tmp_path: Path) -> Room:
    """A room with a passphrase."""
    room = make_room(passphrase_file=tmp_path / "config" / "passphrase")
    assert room.ask("passphrase", new=WORDS, by="owner")["passphrase"] == "set"
    return room


def pressed(room: Room, times: int = 1) -> tuple[int, list[str]]:
    for _ in range(times):
        room.guard.press("all", "why", "who")
    room.run_threads()
    return room.guard.latch.state.generation, list(room.guard.latch.state.kills)


def lines(room: Room, kind: str) -> list[dict[str, Any]]:
    return [line for line in read_journal(room.guard.journal.path) if line["kind"] == kind]


def test_the_newest_kill_is_what_is_typed() -> None:
    assert newest(["20250101-000000-aaaaaaaa", "20240101-000000-bbbbbbbb"]) == "20240101-000000-bbbbbbbb", "the latch's order, no clock's"
    assert newest(["20250101-000000-aaaaaaaa", "latch-unreadable"]) == "20250101-000000-aaaaaaaa"
    assert newest(["latch-unreadable"]) == "latch-unreadable" and newest([]) == ""


def test_without_a_proof_nothing_is_released(room: Room) -> None:
    generation, kills = pressed(room)
    for proof in ("", "0" * 32, kills[0]):
        assert room.ask("unlatch", generation=generation, kills=kills, proof=proof)["kind"] == "Denied"
    assert room.ask("prove", kind="because", generation=generation)["kind"] == "Denied"
    assert room.guard.latch.state.latched and "unlatch" not in room.journal()


def test_without_a_passphrase_the_typed_id_is_enough_and_a_note_says_so(room: Room) -> None:
    generation, kills = pressed(room, 2)
    assert room.unlatch(generation, kills, kind="typed", kill_id=kills[0])["kind"] == "Denied"
    answer = room.unlatch(generation, kills, kind="typed", kill_id=kills[1])
    assert answer["ok"] and answer["proof"] == "typed" and "No passphrase is set" in answer["note"]
    [line] = lines(room, "unlatch")
    assert (line["proof"], line["by"], line["reset_while_killed"]) == ("typed", "owner", False)


def test_with_a_passphrase_only_it_or_a_signature_opens(locked: Room) -> None:
    generation, kills = pressed(locked)
    assert locked.unlatch(generation, kills)["kind"] == "Denied", "the typed id alone"
    assert locked.unlatch(generation, kills, kind="passphrase", passphrase="wrong wrong")["kind"] == "Denied"
    assert locked.guard.latch.state.latched
    locked.desk.unlatching.passphrase.not_before = 0.0
    answer = locked.unlatch(generation, kills, kind="passphrase", passphrase=WORDS)
    assert answer.get("proof") == "passphrase" and not answer["note"], answer
    generation, kills = pressed(locked)
    nonce = locked.ask("challenge")["nonce"]
    assert locked.unlatch(generation, kills, kind="signature", nonce=nonce)["proof"] == "signature"


def test_a_nonce_is_good_once_for_one_state_and_not_for_ever(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    generation, _ = pressed(room)
    nonce = room.ask("challenge")["nonce"]
    assert room.ask("prove", kind="signature", generation=generation, nonce=nonce)["ok"]
    assert room.ask("prove", kind="signature", generation=generation, nonce=nonce)["kind"] == "Denied"
    assert room.ask("prove", kind="signature", generation=generation, nonce="0" * 32)["kind"] == "Denied"
    old = room.ask("challenge")["nonce"]
    generation, _ = pressed(room)
    assert room.ask("prove", kind="signature", generation=generation, nonce=old)["kind"] == "Denied"
    late = room.ask("challenge")["nonce"]
    monkeypatch.setattr(unlatch, "monotonic", lambda: 1e9)
    assert room.ask("prove", kind="signature", generation=generation, nonce=late)["kind"] == "Denied"


def test_a_proof_is_for_one_generation_once_and_for_a_while(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    generation, kills = pressed(room)
    stale = room.ask("prove", kind="typed", generation=generation, kill_id=kills[-1])["proof"]
    generation, kills = pressed(room)
    assert room.ask("unlatch", generation=generation, kills=kills, proof=stale)["kind"] == "Denied"
    late = room.ask("prove", kind="typed", generation=generation, kill_id=kills[-1])["proof"]
    with monkeypatch.context() as clock:
        clock.setattr(unlatch, "monotonic", lambda: 1e9)
        assert room.ask("unlatch", generation=generation, kills=kills, proof=late)["kind"] == "Denied"
    good = room.ask("prove", kind="typed", generation=generation, kill_id=kills[-1])["proof"]
    assert room.ask("unlatch", generation=generation, kills=kills, proof=good)["ok"]
    generation, kills = pressed(room)
    assert room.ask("unlatch", generation=generation, kills=kills, proof=good)["kind"] == "Denied"


def test_wrong_attempts_are_journalled_shown_from_the_third_on_and_slow_down(locked: Room) -> None:
    generation, kills = pressed(locked)
    for _ in range(3):
        assert "wrong-passphrase" not in locked.guard.notices
        locked.unlatch(generation, kills, by="mallory (uid 7, pid 9)", kind="passphrase", passphrase="wrong wrong")
        locked.desk.unlatching.passphrase.not_before = 0.0
    assert "3 wrong passphrases" in locked.guard.notices["wrong-passphrase"]
    refused = lines(locked, "rearm_refused")
    assert [r["wrong"] for r in refused] == [1, 2, 3] and {r["by"] for r in refused} == {"mallory (uid 7, pid 9)"}
    assert "wrong wrong" not in locked.guard.journal.path.read_text() + str(locked.guard.notices)
    locked.start()
    assert locked.ask("status")["rearm"] == {"passphrase": "set", "wrong": 3, "wait_s": 4.0}
    locked.desk.unlatching.passphrase.not_before = 0.0
    assert locked.unlatch(generation, kills, kind="passphrase", passphrase=WORDS)["ok"]
    assert "wrong-passphrase" not in locked.guard.notices


def test_a_passphrase_is_on_no_disk_but_as_its_hash(locked: Room, tmp_path: Path) -> None:
    generation, kills = pressed(locked)
    locked.unlatch(generation, kills, kind="passphrase", passphrase=WORDS)
    locked.ask("passphrase", new="another passphrase", old=WORDS, by="owner")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert WORDS.encode() not in data and b"another passphrase" not in data, path


def test_a_broken_file_shows_and_refuses_until_the_owner_resets(locked: Room) -> None:
    generation, kills = pressed(locked)
    Path(locked.desk.unlatching.passphrase.path).unlink()
    locked.desk.unlatching.look()
    assert "cannot be trusted" in locked.guard.notices["passphrase"] and locked.ask("status")["rearm"]["passphrase"] == "broken"
    for proof in ({"kind": "typed", "kill_id": kills[-1]}, {"kind": "passphrase", "passphrase": WORDS}):
        answer = locked.unlatch(generation, kills, **proof)
        assert answer["kind"] == "Denied" and "reset" in answer["remedy"]
    assert locked.ask("passphrase", reset=True, kill_id="", by="owner")["kind"] == "Denied", "while killed it takes the typed id"
    assert locked.ask("passphrase", reset=True, kill_id=kills[-1], by="owner")["while_killed"] is True
    assert locked.ask("status")["rearm"]["reset_while_killed"] is True and "passphrase" not in locked.guard.notices
    assert locked.unlatch(generation, kills)["ok"]
    assert lines(locked, "unlatch")[-1]["reset_while_killed"] is True and [x["what"] for x in lines(locked, "passphrase")][-1] == "reset"


def test_setting_and_resetting_is_journalled_first(locked: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("console.killswitch.store.journal.write_all", full)
        assert locked.ask("passphrase", reset=True, by="owner")["kind"] == "NotRecorded"
        assert locked.ask("passphrase", new="another passphrase", old=WORDS, by="owner")["kind"] == "NotRecorded"
    locked.desk.unlatching.passphrase.ask("check", given=WORDS)


def test_the_longest_passphrases_and_the_fullest_latch_fit_into_lines(room: Room) -> None:
    long = '"\\' * 128
    encode({"op": "passphrase", "new": long, "old": long, "by": "x" * 100})
    wide = "\U0001f600" * 64
    encode({"op": "passphrase", "new": wide, "old": wide, "by": "x" * 100})
    kills = [f"20250101-000000-{n:08x}" for n in range(100)]
    encode({"op": "unlatch", "generation": 10**12, "kills": kills, "by": "x" * 100, "reason": "y" * 200, "proof": "0" * 32})


def test_an_operators_socket_has_none_of_it(room: Room) -> None:
    for op in ("challenge", "prove", "unlatch", "passphrase"):
        with pytest.raises(Exception, match="no operation"):
            room.desk.find(op, "operator")


# --- K8: a kill wins over a release, in every order ----------------------------------------------------------------------


@contextmanager
def a_room() -> Iterator[Room]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        room = Room(Path(folder), patch)
        try:
            yield room
        finally:
            room.close()


class Operator:
    """One console that rearms: looks, proves, releases; each a step of its own."""

    def __init__(self) -> None:
        self.generation, self.kills, self.to_type, self.proof = -1, [""], "", ""

    def look(self, room: Room) -> None:
        seen = room.ask("challenge")
        self.generation, self.to_type, self.kills = seen["generation"], seen["to_type"], list(room.ask("status")["kills"])

    def prove(self, room: Room) -> None:
        answer = room.ask("prove", kind="typed", generation=self.generation, kill_id=self.to_type, by="b")
        self.proof = answer.get("proof", self.proof)

    def release(self, room: Room) -> bool:
        return bool(room.ask("unlatch", generation=self.generation, kills=self.kills, by="b", proof=self.proof)["ok"])


STEPS = st.sampled_from(["press", "carry out", "restart", *(f"{who} {what}" for who in "bc" for what in ("look", "prove", "release"))])


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=14))
def test_whatever_the_order_a_release_holds_only_for_the_state_it_looked_at(steps: list[str]) -> None:
    with a_room() as room:
        operators = {"b": Operator(), "c": Operator()}
        latched, generation = False, 0
        for step in ("press", *steps):
            if step == "press":
                room.guard.press("all", "why", "a")
                latched, generation = True, generation + 1
            elif step == "carry out":
                room.run_threads()
            elif step == "restart":
                room.run_threads()
                room.start()
                room.guard.finish_kills()
                room.run_threads()
                generation = room.guard.latch.state.generation
            else:
                who, what = step.split()
                operator = operators[who]
                if what != "release":
                    getattr(operator, what)(room)
                elif operator.release(room):
                    assert latched and operator.generation == generation, "a release of what was not looked at"
                    assert all(kill.is_done for kill in room.guard.kills.values())
                    latched = False
            assert room.guard.latch.state.latched is latched, step
        room.run_threads()
        room.start()
        assert room.guard.latch.state.latched is latched, "and so it is on disk"


@pytest.mark.parametrize("where", ["journal", "disk", "proof"])
def test_a_press_in_the_middle_of_a_release_wins(room: Room, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    generation, kills = pressed(room)
    pressed_in_between: list[str] = []

    def first(then: Callable[..., Any]) -> Callable[..., Any]:
        """A press, then what was called."""

        def called(*args: Any, **more: Any) -> Any:
            if not pressed_in_between:
                pressed_in_between.append(room.guard.press("all", "now", "a").order.kill_id)
            return then(*args, **more)

        return called

    if where == "journal":
        monkeypatch.setattr(room.guard.journal, "append", first(room.guard.journal.append))
    elif where == "disk":
        monkeypatch.setattr("console.killswitch.store.latch.write_whole", first(write_whole))
    else:
        monkeypatch.setattr(room.desk.unlatching.passphrase, "ask", first(room.desk.unlatching.passphrase.ask))
    answer = room.unlatch(generation, kills)
    assert not answer["ok"] and pressed_in_between and room.guard.latch.state.latched
    assert set(room.guard.latch.state.kills) >= {*kills, *pressed_in_between}
    room.run_threads()
    monkeypatch.undo()


def test_a_press_after_the_release_holds(room: Room) -> None:
    generation, kills = pressed(room)
    assert room.unlatch(generation, kills)["ok"]
    room.guard.press("all", "again", "a")
    room.run_threads()
    assert room.guard.latch.state.latched and room.unlatch(generation, kills)["kind"] == "Conflict"
