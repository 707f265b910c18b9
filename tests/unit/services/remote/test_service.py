"""What other hosts wrote into the bucket, as a view: anybody with the bucket's rights wrote it, and no word of it ends the view."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.errors import Conflict
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Survivor, Target
from console.remotekill.document import baseline_document, kill_document
from console.remotekill.keys import init_keys, load_keys, load_signers
from console.remotekill.orders import NO_ORDERS, Found, OrdersRead
from console.services.remote.service import RemoteDesk, _host_view
from console.settings.options import RemoteOptions

HOSTILE: list[Any] = [float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), 1e308, -1, 1e18, True, "1", None, [], {}]


@pytest.mark.parametrize("at", HOSTILE, ids=lambda v: str(v)[:12])
def test_a_moment_that_is_none_is_not_shown(at: Any) -> None:
    view = _host_view("b", {"pressed_at": at, "kill_id": "k"}, "")
    assert view.at is None and view.acknowledged
    assert json.loads(view.to_json())["at"] is None


def test_a_moment_is_shown() -> None:
    assert _host_view("b", {"pressed_at": 1_790_000_000}, "").at == 1_790_000_000.0


def test_words_and_lists_of_another_host_are_bounded() -> None:
    view = _host_view("b" * 5000, {"kill_id": ["x"] * 9999, "survivors": [{}] * 7, "verified_zero": "yes"}, "")
    assert len(view.detail) <= 64 and len(view.host) <= 253
    assert (view.survivors, view.verified_zero) == (7, None)
    assert len(_host_view("b", None, "w" * 5000).detail) <= 500


def test_what_another_host_claims_of_its_kill_is_judged_again() -> None:
    steps = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)
    good = Receipt("k-1", "0a1b2c3d", "all", "why", "who", 1.0, steps=steps, complete=True, verified_zero=True)
    best = replace(good, targets=(Target("a-1", "managed", Outcome.BEST_EFFORT, 1.0),))
    left = replace(good, survivors=(Survivor("a-1", 7, "D", "nfs", "x", "why"),))
    seen = [_host_view("b", made.as_json(), "") for made in (good, best, left)]
    assert [(v.verified_zero, v.exit_code) for v in seen] == [(True, 0), (False, 8), (False, 9)]
    assert [v.short for v in seen[1:]] == ["0 of 1 confirmed dead, 1 best effort", "NOT PROVEN: 1 process is still alive"]
    for hostile in ({"verified_zero": True}, good.as_json() | {"targets": 7}, good.as_json() | {"watch_until": 1e300}):
        assert (_host_view("b", hostile, "").verified_zero, _host_view("b", hostile, "").exit_code) == (None, None)


class Shelf:
    """The bucket of one desk: what lies there is ``body``; ``polled`` is the epoch its poller has seen (None: it has no poller)."""

    def __init__(self, folder: Path, polled: int | None) -> None:
        init_keys(folder / "keys", "fleet")
        self.desk = RemoteDesk(RemoteOptions(bucket="fleet", fleet="fleet"), folder / "keys", folder / "state.json", "one", False)
        self.desk.keys, self._signers = load_keys(folder / "keys"), load_signers(folder / "keys")
        self.body = b""
        self.orders = NO_ORDERS
        self.desk.store = SimpleNamespace(read=self._read, read_orders=lambda first, most: self.orders)  # type: ignore[assignment]
        status = SimpleNamespace(epoch=polled, latched=(), number=3)
        self.desk.poller = SimpleNamespace(status=lambda: status) if polled is not None else None  # type: ignore[assignment]

    def _read(self) -> Any:
        return SimpleNamespace(generation=7, body=self.body, fault="", junk="")

    def unkill(self, epoch: int) -> None:
        self.body = baseline_document(fleet="fleet", epoch=epoch, reason="r", actor="a", issued_at="now", signers=self._signers)

    def kill(self) -> None:
        self.body = kill_document(fleet="fleet", reason="r", actor="a", issued_at="now")


@pytest.mark.parametrize(("epoch", "words"), [(5, ""), (6, ""), (4, "epoch 4, this host knows 5"), (1, "older")])
def test_an_unkill_of_an_older_epoch_does_not_open_a_rearm(tmp_path: Path, epoch: int, words: str) -> None:
    shelf = Shelf(tmp_path, polled=5)
    shelf.unkill(epoch)
    if not words:
        assert shelf.desk.standing() == ""
        return
    with pytest.raises(Conflict, match=words):
        shelf.desk.standing()


@pytest.mark.parametrize("killed", [True, False])
def test_a_process_that_does_not_poll_does_not_know_what_stands(tmp_path: Path, killed: bool) -> None:
    shelf = Shelf(tmp_path, polled=None)
    shelf.kill() if killed else shelf.unkill(9)
    with pytest.raises(Conflict, match="another process still polls"):
        shelf.desk.standing()


def test_a_kill_that_lies_there_stands_whatever_its_epoch(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, polled=5)
    shelf.kill()
    assert shelf.desk.standing().startswith("7:")


def test_an_order_after_the_last_one_known_stands_and_what_cannot_be_read_opens_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, polled=5)
    shelf.unkill(5)
    shelf.orders = OrdersRead((Found(4, 9, b"{}"),))
    assert shelf.desk.standing().startswith("4/9:")
    shelf.orders = OrdersRead(fault="HTTP 503")
    with pytest.raises(Conflict, match="new remote order is not known: HTTP 503"):
        shelf.desk.standing()
    shelf.orders = OrdersRead(fault="HTTP 403")
    assert shelf.desk.standing() == "", "a missing permission is shown and stops nothing"
