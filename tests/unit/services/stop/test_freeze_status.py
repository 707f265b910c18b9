"""Whoever the guard does not name is asked for again; whom it does not say anything of is not frozen."""

from __future__ import annotations

from typing import Any

from console.domain.errors import TimedOut
from console.services.stop.freeze_status import unconfirmed


def test_all_are_named_however_few_the_guard_names_at_once() -> None:
    doubted = {f"a{n}" for n in range(0, 500, 7)}

    def call(op: str, scope: list[str]) -> dict[str, Any]:
        found = [i for i in scope if i in doubted]
        return {"unconfirmed": dict.fromkeys(found[:10], "why"), "n": len(found)}

    assert unconfirmed(call, [f"a{n}" for n in range(500)]) == dict.fromkeys(doubted, "why")


def test_a_guard_that_does_not_say_confirms_nobody() -> None:
    def call(op: str, scope: list[str]) -> dict[str, Any]:
        raise TimedOut("The guard did not answer in time.", "")

    found = unconfirmed(call, ["a", "b"])
    assert set(found) == {"a", "b"} and "not known" in found["a"]
