"""The second presentation: after a restart every old value is refused once more, and only then forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.credentials.api_key import ApiKey
from console.credentials.keyring_store import Store
from console.credentials.marker import LAST, Again, load_last, olds
from console.credentials.old_value_check import LOST as LOST_WORDS
from console.credentials.old_value_check import due, keep_result, present_again, stand_in
from console.credentials.plan import OWN_ITEMS
from console.credentials.rotation import rotate
from console.credentials.token_keys import KEYS_NAME
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError
from tests.fakes.plugs import FolderPlug


def honest(tokens: Tokens) -> dict[str, Any]:
    key = ApiKey(tokens.store)
    return {"door": lambda t: key.accepts(t) or tokens.accepts(t, "operator") or tokens.accepts(t, "agent-service")}


@pytest.fixture
def plug(tmp_path: Path) -> FolderPlug:
    return FolderPlug(tmp_path / "services", "webhook", "old-value-1")


def rotated(tokens: Tokens, plug: FolderPlug) -> Tokens:
    """Rotated by one process; the answer is another's, which has only the disk."""
    ApiKey(tokens.store).renew()
    keep_result(tokens, rotate(tokens, honest(tokens), [plug], kill_id="k"), 1.0, "p1")
    return Tokens(Store("0123abcd", tokens.store.folder, backend="file"), clock=tokens._clock)


def test_everything_is_due_until_it_was_refused_twice(tokens: Tokens, plug: FolderPlug) -> None:
    fresh = rotated(tokens, plug)
    assert due(fresh) == [*OWN_ITEMS, "webhook"] and olds(fresh.store, "webhook") == ["old-value-1"]
    shown = present_again(fresh, honest(fresh), [plug])
    assert all(i.ok for i in shown) and [i.name for i in shown] == [*OWN_ITEMS, "webhook"], shown
    assert due(fresh) == [] and olds(fresh.store, "webhook") == [] and olds(fresh.store, "signing-key") == []
    last = load_last(fresh.store.folder)
    assert last is not None and set(last.again.values()) == {Again.REFUSED} and last.again_at is not None and last.kill_id == "k"
    assert present_again(fresh, honest(fresh), [plug]) == []


def test_a_value_that_comes_back_to_life_after_a_restart_is_found(tokens: Tokens, plug: FolderPlug) -> None:
    """The measured fault of others: the new value lived in memory alone."""
    keys = tokens.store.get(KEYS_NAME) or ""
    fresh = rotated(tokens, plug)
    plug.change("", "old-value-1")
    fresh.store.set(KEYS_NAME, keys)
    shown = {i.name: i for i in present_again(fresh, honest(fresh), [plug])}
    assert not shown["webhook"].ok and shown["webhook"].detail.startswith("failed: the old value is still accepted")
    assert not shown["signing-key"].ok and shown["api-key"].ok
    assert set(due(fresh)) == {*OWN_ITEMS[:3], "webhook"} and olds(fresh.store, "webhook") == ["old-value-1"]
    done = rotate(fresh, honest(fresh), [plug], only=frozenset(due(fresh)))
    keep_result(fresh, done, 2.0, "p2")
    assert done.ok and all(i.ok for i in present_again(fresh, honest(fresh), [plug]))


@pytest.mark.parametrize("fault", ["silent", "refuses_all"])
def test_no_answer_leaves_it_due(tokens: Tokens, plug: FolderPlug, fault: str) -> None:
    fresh = rotated(tokens, plug)
    plug.fault = fault
    shown = {i.name: i for i in present_again(fresh, honest(fresh), [plug])}
    assert not shown["webhook"].ok and shown["webhook"].detail.startswith("unknown") and due(fresh) == ["webhook"]
    plug.fault = ""
    assert [i.ok for i in present_again(fresh, honest(fresh), [plug])] == [True] and due(fresh) == []


def test_an_item_that_left_the_plan_is_said(tokens: Tokens, plug: FolderPlug) -> None:
    fresh = rotated(tokens, plug)
    assert "no longer in the plan" in present_again(fresh, honest(fresh), [])[-1].detail


def test_what_was_due_stays_due_after_another_rotation(tokens: Tokens, plug: FolderPlug) -> None:
    fresh = rotated(tokens, plug)
    keep_result(fresh, rotate(fresh, honest(fresh), [], only=frozenset({"api-key"})), 2.0, "p2")
    assert set(due(fresh)) == {*OWN_ITEMS, "webhook"}


def test_without_a_rotation_nothing_is_due_and_damage_is_none(tokens: Tokens) -> None:
    assert due(tokens) == [] and present_again(tokens, honest(tokens), []) == []
    (tokens.store.folder / LAST).write_text('{"at": "x"')
    assert due(tokens) == [] and load_last(tokens.store.folder) is None


def test_nothing_old_to_present_is_unknown_and_stays_due(tokens: Tokens, plug: FolderPlug) -> None:
    """Whoever empties the store makes nothing green."""
    fresh = rotated(tokens, plug)
    for name in ("signing-key", "api-key", "webhook"):
        fresh.store.delete(f"olds.{name}")
    shown = present_again(fresh, honest(fresh), [plug])
    assert [i.name for i in shown] == [*OWN_ITEMS, "webhook"] and all(not i.ok and i.detail.startswith("unknown") for i in shown), shown
    assert "no old key is kept any more" in shown[0].detail and due(fresh) == [*OWN_ITEMS, "webhook"]
    last = load_last(fresh.store.folder)
    assert last is not None and set(last.again.values()) == {Again.UNKNOWN}


def test_a_key_set_other_than_the_one_rotated_to_is_no_proof(tokens: Tokens, plug: FolderPlug) -> None:
    """A backup of the whole store from before the kill: the old key signs again, and nothing old waits beside it."""
    path = tokens.store.folder / "secrets.json"
    backup = path.read_text()
    fresh = rotated(tokens, plug)
    path.write_text(backup)
    shown = {i.name: i for i in present_again(fresh, honest(fresh), [plug])}
    assert not shown["signing-key"].ok and shown["signing-key"].detail.startswith("failed: the key in force is not the one")
    done = rotate(fresh, honest(fresh), [plug], only=frozenset(OWN_ITEMS[:3]))
    keep_result(fresh, done, 2.0, "p2")
    assert {i.name: i.ok for i in present_again(fresh, honest(fresh), [plug])}["signing-key"], "rotated anew it is proven"


def test_a_record_without_the_new_keys_hash_leaves_the_keys_unknown(tokens: Tokens, plug: FolderPlug) -> None:
    fresh = rotated(tokens, plug)
    path = fresh.store.folder / LAST
    kept = json.loads(path.read_text())
    del kept["keys_after"], kept["let_go"]
    path.write_text(json.dumps(kept))
    shown = {i.name: i for i in present_again(fresh, honest(fresh), [plug])}
    assert not shown["signing-key"].ok and "not on record" in shown["signing-key"].detail and shown["webhook"].ok


def test_a_value_set_by_hand_since_then_is_the_new_one(tokens: Tokens, plug: FolderPlug) -> None:
    fresh = rotated(tokens, plug)
    ApiKey(fresh.store).renew()
    plug.change("", "set-by-hand-12")
    assert all(i.ok for i in present_again(fresh, honest(fresh), [plug])) and due(fresh) == []


@pytest.mark.parametrize("damage", [None, "", '{"at": "x"', "[]"])
def test_a_lost_record_is_said_and_what_waits_is_presented_all_the_same(tokens: Tokens, plug: FolderPlug, damage: str | None) -> None:
    fresh, names = rotated(tokens, plug), [*OWN_ITEMS, "webhook"]
    assert stand_in(fresh, names, 2.0, is_expected=True) is None, "nothing is lost"
    path = fresh.store.folder / LAST
    path.unlink() if damage is None else path.write_text(damage)
    lost = stand_in(fresh, names, 2.0, is_expected=False)
    assert lost is not None and lost.ok is False and lost.detail.startswith(LOST_WORDS) and list(lost.again) == names
    shown = {i.name: i for i in present_again(fresh, honest(fresh), [plug], last=lost)}
    assert shown["webhook"].ok and shown["api-key"].ok and "not on record" in shown["signing-key"].detail
    last = load_last(fresh.store.folder)
    assert last is not None and not last.ok and last.detail.startswith(LOST_WORDS) and set(due(fresh)) == set(OWN_ITEMS[:3])
    keep_result(fresh, rotate(fresh, honest(fresh), [plug], only=frozenset({"webhook"})), 3.0, "p2")
    last = load_last(fresh.store.folder)
    assert last is not None and not last.ok and last.detail.startswith(LOST_WORDS), "one item alone does not make it good"
    assert keep_result(fresh, rotate(fresh, honest(fresh), [plug]), 4.0, "p2").ok


def test_a_lost_record_with_nothing_left_to_present(tokens: Tokens) -> None:
    assert stand_in(tokens, OWN_ITEMS, 1.0, is_expected=False) is None
    lost = stand_in(tokens, OWN_ITEMS, 1.0, is_expected=True)
    assert lost is not None and "no old value is left" in lost.detail and present_again(tokens, honest(tokens), [], last=lost) == []
    last = load_last(tokens.store.folder)
    assert last is not None and not last.ok and last.again_at is None, "it stays to be seen"


def test_a_rotation_of_some_names_is_laid_over_the_rest(tokens: Tokens, plug: FolderPlug) -> None:
    fresh = rotated(tokens, plug)
    before = load_last(fresh.store.folder)
    last = keep_result(fresh, rotate(fresh, honest(fresh), [plug], only=frozenset({"api-key"})), 2.0, "p2")
    assert before is not None and {i.name for i in last.items} == {*OWN_ITEMS, "webhook"} and last.ok and last.kill_id == "k"
    assert last.keys_after == before.keys_after != ""
    plug.fault = "breaks"
    assert not keep_result(fresh, rotate(fresh, honest(fresh), [plug]), 3.0, "p2").ok
    (fresh.store.folder / "rotation.json").unlink()
    last = keep_result(fresh, rotate(fresh, honest(fresh), [plug], only=frozenset({"api-key"})), 4.0, "p2")
    assert not last.ok and last.detail.startswith("4 of 5 proven"), "what failed is not forgotten over one that did not"


def test_a_store_that_does_not_forget_is_said(tokens: Tokens, plug: FolderPlug, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = rotated(tokens, plug)

    def refuse(name: str) -> None:
        raise ConsoleError("The keyring is locked.")

    monkeypatch.setattr(fresh.store, "delete", refuse)
    shown = present_again(fresh, honest(fresh), [plug])
    assert all(i.ok and "stays in the store" in i.detail for i in shown) and due(fresh) == []


def test_what_is_kept_holds_no_value(tokens: Tokens, plug: FolderPlug) -> None:
    rotated(tokens, plug)
    path = tokens.store.folder / LAST
    assert path.stat().st_mode & 0o777 == 0o600
    for value in (tokens.store.get(KEYS_NAME), plug.old(), "old-value-1", ApiKey(tokens.store).current()):
        assert value and value not in path.read_text()
