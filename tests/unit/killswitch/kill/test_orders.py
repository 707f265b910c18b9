"""One order is claimed once, and a claim of a dead process holds only as long as its receipt says that the work was done."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from console.domain.guard import ANSWER_S
from console.domain.kill import Receipt
from console.killswitch.kernel import processes
from console.killswitch.kill.orders import KEPT_S, claim, is_claimed, order_id, sweep_claims
from console.killswitch.kill.receipt import new_kill_id, write_receipt

KILL = "20260101-000000-aaaaaaaa"


def receipt(*, complete: bool) -> Receipt:
    return Receipt(KILL, "i", "a", "r", "b", 1.0, complete=complete)


def claimed_by(folder: Path, pid: int, ticks: int) -> None:
    (folder / f"order-{KILL}").symlink_to(f"{pid}-{ticks}")


def test_the_second_to_claim_leaves_it_while_the_first_lives(tmp_path: Path) -> None:
    parent = os.getppid()
    claimed_by(tmp_path, parent, processes.start_ticks(parent) or 0)
    assert not claim(tmp_path, tmp_path, KILL)
    assert claim(tmp_path, tmp_path, new_kill_id()), "another order is another claim"


def test_a_claim_is_kept_by_the_one_who_has_it(tmp_path: Path) -> None:
    assert claim(tmp_path, tmp_path, KILL) and claim(tmp_path, tmp_path, KILL)


@pytest.mark.parametrize("complete", [True, False])
def test_the_claim_of_a_dead_process_holds_if_its_receipt_is_complete(tmp_path: Path, complete: bool) -> None:
    claimed_by(tmp_path, os.getppid(), 1)  # the number is another process's by now
    write_receipt(tmp_path, receipt(complete=complete))
    assert claim(tmp_path, tmp_path, KILL) is not complete


def test_where_nothing_can_be_claimed_the_order_is_carried_out(tmp_path: Path) -> None:
    assert claim(tmp_path / "gone", tmp_path, KILL)


def test_only_an_order_that_waited_is_claimed(tmp_path: Path) -> None:
    claimed_by(tmp_path, os.getppid(), processes.start_ticks(os.getppid()) or 0)
    now = time.monotonic()
    assert not is_claimed({"kill_id": KILL, "asked_at": now}, tmp_path, tmp_path)
    assert not is_claimed({"kill_id": KILL}, tmp_path, tmp_path) and not is_claimed({"kill_id": KILL, "asked_at": "x"}, tmp_path, tmp_path)
    assert is_claimed({"kill_id": KILL, "asked_at": now - 2 * ANSWER_S}, tmp_path, tmp_path)


@pytest.mark.parametrize("hostile", [None, 7, "", "../../etc/passwd", "x" * 60, "A B"])
def test_what_is_no_id_is_no_id(hostile: object) -> None:
    assert order_id({"kill_id": hostile}) == ""


def test_old_claims_are_swept_and_nothing_else(tmp_path: Path) -> None:
    claimed_by(tmp_path, 1, 1)
    (tmp_path / "order-of-something-else that is no id").touch()
    sweep_claims(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    os.utime(tmp_path / f"order-{KILL}", (0, time.time() - 2 * KEPT_S), follow_symlinks=False)
    sweep_claims(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["order-of-something-else that is no id"]
