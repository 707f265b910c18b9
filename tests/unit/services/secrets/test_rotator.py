"""Rotations of one supervisor: what cannot be kept, read or found again is said, and never green."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from console.credentials import old_value_check
from console.credentials.api_key import ApiKey
from console.credentials.keyring_store import Store
from console.credentials.marker import LAST, RotationItem
from console.credentials.plan import OWN_ITEMS
from console.credentials.rotation import RotationResult
from console.credentials.tokens import Tokens
from console.domain.kill import StepStatus
from console.services.secrets.readiness import secrets_path
from console.services.secrets.rotation_step import rotate_step, step_of, verdict_of
from console.services.secrets.rotator import Rotator


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state directory with one secret of another program's: a file, whose program reads it."""
    (tmp_path / "program").mkdir(mode=0o700)
    (tmp_path / "state").mkdir(mode=0o700)
    secret, check = tmp_path / "program" / "secret", tmp_path / "program" / "check"
    secret.write_text("old-value-of-mail")
    check.write_text(f'#!/bin/sh\nread value\n[ "$value" = "$(cat {secret})" ]\n')
    check.chmod(0o700)
    write_plan(tmp_path / "state", [{"name": "mail", "kind": "file", "path": str(secret), "verify": command(check)}])
    return tmp_path / "state"


def command(path: Path) -> dict[str, Any]:
    return {"kind": "command", "argv": [str(path)]}


def write_plan(folder: Path, items: list[dict[str, Any]] | str) -> None:
    path = folder / "rotation.json"
    path.write_text(items if isinstance(items, str) else json.dumps({"schema_version": 1, "items": items}))
    path.chmod(0o600)


def started(folder: Path) -> Rotator:
    """As after a start of the supervisor: only what is on disk is known."""
    tokens = Tokens(Store("0123abcd", folder / "keys", backend="file"))
    tokens.ensure()
    made = Rotator(tokens, folder / "rotation.json", folder / "no.sock")
    key = ApiKey(tokens.store)
    made.verifiers = {"door": lambda t: key.accepts(t) or tokens.accepts(t, "operator") or tokens.accepts(t, "agent-service")}
    return made


def light(rotator: Rotator) -> tuple[str, str]:
    view = secrets_path(rotator)
    return view.state, view.detail


def test_a_proven_rotation_is_kept_and_presented_again_by_the_next_process_only(folder: Path) -> None:
    first = started(folder)
    done = first.run(kill_id="k")
    assert done is not None and done.ok and first.again() == [] and light(first)[0] == "proven"
    second = started(folder)
    assert {i.name: i.ok for i in second.again()} == dict.fromkeys([*OWN_ITEMS[:3], "mail"], True) and second.again() == []
    assert light(second) == ("proven", "written and read back")


async def test_a_second_kill_in_the_middle_of_the_presentation_makes_the_first_ones_rotation_no_unknown(folder: Path) -> None:
    """Its epoch kills the token that was just made to be accepted."""
    rotator = started(folder)
    door, left = rotator.verifiers["door"], [1]

    def interrupted(token: str) -> bool:
        if left and rotator.tokens.accepts(token, "operator"):
            left.pop()
            rotator.tokens.raise_epoch()
            rotator.raised += 1
        return door(token)

    rotator.verifiers = {"door": interrupted}
    step = await rotate_step(rotator, True, time.time(), "k")
    assert not left and step.status is StepStatus.OK, step


def test_a_full_disk_after_the_proof_is_said_and_the_rotation_stays_unfinished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    rotator = started(folder)
    monkeypatch.setattr(old_value_check, "save_last", full)
    done = rotator.run(kill_id="k")
    assert done is not None and not done.ok and verdict_of(done) is StepStatus.FAILED and rotator.unfinished()
    assert "cannot be kept" in step_of(rotator, done, 1.0).detail and "No space left" in rotator.view().last_detail
    assert rotator.view().last_ok is False and rotator.view().last_at is not None and light(rotator)[0] == "in_doubt"
    monkeypatch.undo()
    done = rotator.run(left_only=True)
    assert done is not None and done.ok and done.kill_id == "k" and light(rotator)[0] == "proven" and started(folder).again()


@pytest.mark.parametrize("is_lost_while_it_runs", [True, False])
def test_a_lost_record_is_amber_until_the_next_rotation(folder: Path, is_lost_while_it_runs: bool) -> None:
    rotator = started(folder)
    assert light(rotator)[0] == "proven" and rotator.view().last_ok is None, "nothing was ever rotated: nothing is lost"
    rotator.run()
    (folder / "keys" / LAST).unlink()
    if not is_lost_while_it_runs:
        rotator = started(folder)
        shown = {i.name: i for i in rotator.again()}
        assert shown["mail"].ok, "what waits in the store is presented all the same"
        assert not shown["signing-key"].ok and shown["signing-key"].detail.startswith("unknown")
    state, words = light(rotator)
    assert state == "in_doubt" and "the record of the last rotation is lost" in words and rotator.view().last_ok is False
    done = rotator.run()
    assert done is not None and done.ok and light(rotator)[0] == "proven"


def test_a_plan_that_breaks_in_the_middle_lets_nothing_go(folder: Path) -> None:
    rotator, plan = started(folder), (folder / "rotation.json").read_text()
    secret = folder.parent / "program" / "secret"
    check = secret.with_name("check")
    check.chmod(0o600)  # cannot be run
    assert rotator.run(kill_id="k") is not None and rotator.unfinished()
    write_plan(folder, '{"schema_version": 1, "items": [')
    done = rotator.run(kill_id="k")
    assert done is not None and not done.ok and done.let_go == {} and rotator.unfinished()
    assert "the plan cannot be read" in {i.name: i.detail for i in done.items}["mail"]
    check.chmod(0o700)
    write_plan(folder, plan)
    done = rotator.run(kill_id="k")
    assert done is not None and not done.ok, "nobody could look at the old value before the change"
    done = rotator.run(frozenset({"mail"}))
    assert done is not None and all(i.ok for i in done.items) and verdict_of(done) is StepStatus.UNKNOWN


def test_an_item_taken_out_after_a_kill_leaves_its_receipt_amber_and_says_so(folder: Path) -> None:
    rotator = started(folder)
    (folder.parent / "program" / "check").chmod(0o600)
    rotator.run(kill_id="k")
    write_plan(folder, [])
    done = rotator.run()
    assert done is not None and done.kill_id == "k" and verdict_of(done) is StepStatus.UNKNOWN and all(i.ok for i in done.items)
    assert "mail is not proven and never will be: it was taken out of the plan" in step_of(rotator, done, None).detail
    state, words = light(rotator)
    assert state == "in_doubt" and "mail: it was taken out of the plan" in words and not rotator.unfinished()
    # A supervisor that died before it wrote the receipt finishes the kill: no greener.
    after = started(folder).run(kill_id="k")
    assert after is not None and verdict_of(after) is StepStatus.UNKNOWN
    last = rotator.run()
    assert last is not None and last.ok and last.kill_id == "", "a rotation of its own, which amends no receipt"


def test_an_item_that_left_the_plan_before_its_second_presentation_is_shown(folder: Path) -> None:
    started(folder).run(kill_id="k")
    write_plan(folder, [])
    rotator = started(folder)
    assert [i.ok for i in rotator.again()] == [True, True, True, False]
    [gone] = [i for i in rotator.view().items if i.kind == "gone"]
    assert (gone.name, gone.again) == ("mail", "unknown") and "mail" in light(rotator)[1]


def test_what_had_to_be_let_go_makes_no_step_ok() -> None:
    good = RotationItem("a", True, 1.0, "w")
    assert verdict_of(RotationResult((good,), True, "")) is StepStatus.OK
    assert verdict_of(RotationResult((good,), False, "", let_go={"b": "why"})) is StepStatus.UNKNOWN
    bad = RotationItem("c", False, 1.0, "failed: x")
    assert verdict_of(RotationResult((good, bad), False, "", let_go={"b": "why"})) is StepStatus.FAILED
