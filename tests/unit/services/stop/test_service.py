"""How the guard's part and the supervisor's part become one receipt."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.credentials.redaction import Redactor
from console.domain.agent import AgentId
from console.domain.engine import event as e
from console.domain.errors import ExitCode, Unreachable
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.domain.verdict import verdict
from console.services.stop import service
from console.services.stop.later_steps import RemoteStep
from console.services.stop.line import StopLine
from console.services.stop.service import StopDesk, _merged
from tests.fakes.daemons import no_daemons
from tests.fakes.patched import patch


def local(*targets: Target, zero: bool = True) -> Receipt:
    steps = tuple(
        Step(n, StepStatus.OK, 1.0) for n in (StepName.LATCH, StepName.REFUSE, StepName.SIGNAL, StepName.ZERO, StepName.SECOND_LOOK)
    )
    return Receipt(
        "k",
        "i",
        "all",
        "r",
        "b",
        1.0,
        verified_zero=zero,
        targets=targets,
        steps=steps,
        ms_total=500.0,
        complete=True,
        connections_state="recorded",
    )


def target(name: str, outcome: Outcome = Outcome.PROVEN_ZERO) -> Target:
    return Target(name, "managed", outcome, 2.0)


def test_steps_stand_in_the_order_of_the_design_and_open_ones_are_pending() -> None:
    merged = _merged(local(), {}, complete=False)
    assert [s.name for s in merged.steps] == list(StepName)
    assert {s.status for s in merged.steps if s.name in (StepName.ROTATE, StepName.REMOTE, StepName.EVIDENCE)} == {StepStatus.PENDING}
    assert verdict(merged).exit_code is ExitCode.DONE and not merged.complete  # pending is not failed


def test_a_failed_later_step_is_seven_and_skipped_is_zero() -> None:
    done = {n: Step(n, StepStatus.OK, 900.0) for n in (StepName.ROTATE, StepName.EVIDENCE)}
    skipped = Step(StepName.REMOTE, StepStatus.SKIPPED, None, "not configured")
    assert verdict(_merged(local(), done | {StepName.REMOTE: skipped}, complete=True)).exit_code is ExitCode.DONE
    failed = Step(StepName.REMOTE, StepStatus.FAILED, 1.0, "failed")
    merged = _merged(local(), done | {StepName.REMOTE: failed}, complete=True)
    assert verdict(merged).exit_code is ExitCode.LATER_STEP
    assert merged.ms_total == 900.0


def test_a_canary_proven_dead_is_nobodys_agent_and_one_that_is_not_stays() -> None:
    merged = _merged(local(target("a-1"), target("canary-1")), {}, complete=True)
    assert [t.agent_id for t in merged.targets] == ["a-1"]
    merged = _merged(local(target("canary-1", Outcome.NOT_PROVEN), zero=False), {}, complete=True)
    assert [t.agent_id for t in merged.targets] == ["canary-1"]
    assert verdict(merged).exit_code is ExitCode.NOT_PROVEN


class Desk:
    """A stop desk whose guard is a folder; ``posted`` is what the engine was told."""

    def __init__(self, folder: Path) -> None:
        self.posted: list[Any] = []
        (folder / "guard" / "receipts").mkdir(parents=True)
        (folder / "keys").mkdir(mode=0o700)
        self.guard_file = folder / "guard" / "receipts" / "k.json"
        places: Any = SimpleNamespace(receipts_dir=folder / "receipts", guard_dir=folder / "guard", keys_dir=folder / "keys")
        self.line = StopLine(places)
        core: Any = SimpleNamespace(post=self.posted.append, hub=SimpleNamespace(publish=lambda *_: None))
        scribe: Any = SimpleNamespace(job=lambda job: job(), record=lambda record: None, audit=SimpleNamespace(head=(0, "")))
        unused: Any = None  # nothing is killed here, only amended
        hunt: Any = SimpleNamespace(into=lambda receipt: receipt)
        self.desk = StopDesk(
            core,
            scribe,
            unused,
            places,
            lambda *_: None,
            self.line,
            unused,
            daemons=no_daemons(),
            hunt=hunt,
            remote=RemoteStep(core, None, ()),
            redact=Redactor().redact_data,
        )

    def amend(self, by_guard: Receipt) -> list[Receipt]:
        self.guard_file.write_text(json.dumps(by_guard.as_json()))
        asyncio.run(self.desk.amend("k"))
        judged, self.posted[:] = [p for p in self.posted if isinstance(p, e.KillJudged)], []
        assert all(p.seal_sha256 for p in judged)
        return [p.receipt for p in judged]


def test_what_the_guard_amends_is_taken_over_sealed_and_judged_again(tmp_path: Path) -> None:
    it = Desk(tmp_path)
    steps = {n: Step(n, StepStatus.OK, 900.0, "ours") for n in (StepName.ROTATE, StepName.REMOTE, StepName.EVIDENCE)}
    first = local(target("a", Outcome.NOT_PROVEN), zero=False)
    kept = _merged(first, steps, complete=True)
    it.desk._put(replace(kept, steps=tuple(replace(s, detail="noted") if s.name is StepName.LATCH else s for s in kept.steps)))
    assert it.amend(first) == [] and verdict(it.desk.receipts()[0]).exit_code is ExitCode.NOT_PROVEN
    (now,) = it.amend(replace(local(target("a")), amended=("a: confirmed dead after the receipt was given, 61.0 s after the kill",)))
    assert now.verified_zero and now.complete and now.amended and verdict(now).exit_code is ExitCode.DONE and it.desk.receipt("k") == now
    assert {s.name: s.detail for s in now.steps}[StepName.EVIDENCE] == "ours" and now.steps[0].detail == "noted"
    assert json.loads((tmp_path / "receipts" / "k.json").read_text())["amended"] and (tmp_path / "receipts" / "k.sealed.json").exists()


def test_a_file_of_before_the_second_look_takes_nothing_from_a_receipt_that_has_one(tmp_path: Path) -> None:
    it = Desk(tmp_path)
    steps = {n: Step(n, StepStatus.OK, 900.0) for n in (StepName.ROTATE, StepName.REMOTE, StepName.EVIDENCE)}
    whole = local(target("a"))
    it.desk._put(_merged(whole, steps, complete=True))
    # A full disk keeps the guard's file as it was at zero; the supervisor had the rest from the guard's memory.
    at_zero = replace(whole, steps=tuple(s for s in whole.steps if s.name is not StepName.SECOND_LOOK), complete=False)
    assert it.amend(at_zero) == []
    kept = it.desk.receipt("k")
    assert kept is not None and kept.verified_zero and verdict(kept).exit_code is ExitCode.DONE


def test_a_receipt_that_is_still_followed_is_not_amended_before_its_time(tmp_path: Path) -> None:
    it = Desk(tmp_path)
    it.desk._put(_merged(local(zero=False), {}, complete=False))
    assert it.amend(local()) == [] and not it.desk.receipts()[0].complete


class Guard:
    """Takes halts once it is there."""

    def __init__(self, away: int = 0) -> None:
        self.away, self.halted, self.asked = away, list[str](), set[str]()

    async def halt(self, ids: list[str], reason: str, kill_id: str) -> str:
        self.asked.add(kill_id)
        self.away -= 1
        if self.away >= 0:
            raise Unreachable("The guard cannot be reached.", "")
        self.halted += ids
        return f"k{len(self.halted)}"


def halted(tmp_path: Path, guard: Guard, ids: list[AgentId], live: set[AgentId]) -> list[str]:
    """Kill ids that began."""
    it, began = Desk(tmp_path), list[str]()
    it.desk._line = guard  # type: ignore[assignment]
    it.desk._core.state = SimpleNamespace(live=live)  # type: ignore[assignment, misc]
    patch(it.desk, began=lambda kill_id, *_: began.append(kill_id))
    asyncio.run(it.desk.halt(tuple(ids), "day limit cost_usd: 5 of 5 (2026-11-22)"))
    return began


def test_a_budget_halts_thousands_by_one_order(tmp_path: Path) -> None:
    guard, ids = Guard(), [AgentId(f"o-{n:016x}") for n in range(1000)]
    assert halted(tmp_path, guard, ids, set(ids)) == ["k1000"] and guard.halted == ids


def test_a_budgets_halt_is_tried_until_the_guard_has_it_and_no_longer_than_somebody_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HALT_REST_S", 0.0)
    guard = Guard(away=50)
    assert halted(tmp_path / "a", guard, [AgentId("a"), AgentId("b")], {AgentId("a")}) == ["k1"] and guard.halted == ["a"]
    assert len(guard.asked) == 1, "one order has one id however often it is tried"
    assert halted(tmp_path / "b", Guard(away=50), [AgentId("a")], set()) == []
