"""What other hosts wrote into the bucket, as a view: anybody with the bucket's rights wrote it, and no word of it ends the view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.supervisor.remote import _host_view

HOSTILE: list[Any] = [float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), 1e308, -1, 1e18, True, "1", None, [], {}]


@pytest.mark.parametrize("at", HOSTILE, ids=lambda v: str(v)[:12])
def test_a_moment_that_is_none_is_not_shown(at: Any) -> None:
    view = _host_view("b", {"pressed_at": at, "kill_id": "k"}, "")
    assert view.at is None and view.acknowledged
    assert json.loads(view.model_dump_json())["at"] is None


def test_a_moment_is_shown() -> None:
    assert _host_view("b", {"pressed_at": 1_790_000_000}, "").at == 1_790_000_000.0


def test_words_and_lists_of_another_host_are_bounded() -> None:
    view = _host_view("b" * 5000, {"kill_id": ["x"] * 9999, "survivors": [{}] * 7, "verified_zero": "yes"}, "")
    assert len(view.detail) <= 64 and len(view.host) <= 253
    assert (view.survivors, view.verified_zero) == (7, None)
    assert len(_host_view("b", None, "w" * 5000).detail) <= 500
