"""The second presentation: after a restart every old value is refused once more, and only then forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console.credentials.again import due, keep_result, present_again
from console.credentials.api_key import ApiKey
from console.credentials.keyring_store import Store
from console.credentials.marker import LAST, Again, load_last, olds
from console.credentials.plan import OWN_ITEMS
from console.credentials.rotation import rotate
from console.credentials.tokens import KEYS_NAME, Tokens
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


def test_what_is_kept_holds_no_value(tokens: Tokens, plug: FolderPlug) -> None:
    rotated(tokens, plug)
    path = tokens.store.folder / LAST
    assert path.stat().st_mode & 0o777 == 0o600
    for value in (tokens.store.get(KEYS_NAME), plug.old(), "old-value-1", ApiKey(tokens.store).current()):
        assert value and value not in path.read_text()
