"""The inbox over a real ledger and the real engine: decided once, on record first, and the asker hears of it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api.policy import approvals as a
from console.domain.agent import AgentId, ContextId, LaunchRequest, ProcessIdentity
from console.domain.calls.approval import Approval, ApprovalState, AskedPart, Grant
from console.domain.calls.permission import Decision, PermissionRequest, Verdict
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import NotFound, NotRecorded, UsageProblem
from console.domain.ids import ControlLevel
from console.enforcement.engine import Engine
from console.ledger.store import Ledger
from console.services.approvals import approval_runner as approving_module
from console.services.approvals import service as desk_module
from console.services.approvals.approval_runner import Approving, open_approvals
from console.services.approvals.service import ApprovalDesk
from console.services.fleet.core import Core, now
from console.services.policy.evaluate import Judged
from tests.fakes.core_ports import NoServices
from tests.fakes.patched import patch

ASK = Judged(
    Decision(Verdict.ASK, "shell(cargo publish:*)", "a rule asks a person"),
    (AskedPart("cargo publish", "ask", "shell(cargo publish:*)", "program"), AskedPart("write /w/x", "ask", "no rule", "file")),
)

APPROVAL = Approval(
    "q-1", AgentId("a"), AgentId("a"), ContextId("c"), PermissionRequest("run", "cargo publish"), "d" * 64, "rule", "why", 1.0, 1e12
)


class World:
    """Core, engine and ledger with the effects of approvals alone."""

    def __init__(self, folder: Path, *, needs_reason: bool = False) -> None:
        self.ledger = Ledger(folder / "ledger.db")
        self.records: list[c.Record] = []
        self.notices: list[str] = []
        self.disk_is_full = False
        self.verdicts: dict[str, Judged | Exception] = {}
        self.core = Core(Engine(), NoServices(self.run))
        scribe = SimpleNamespace(ledger=self.ledger, record=self.records.append, record_first=self.record_first, job=lambda job: job())
        parts: Any = SimpleNamespace(core=self.core, scribe=scribe, notice=lambda text, _level="amber": self.notices.append(text))
        parts.keyring = SimpleNamespace(redactor=SimpleNamespace(redact=lambda text: text.replace("s3cret", "[hidden]")))
        self.approving = Approving(parts.core, parts.scribe, parts.keyring, parts.notice, SimpleNamespace(judge=self.judge))
        self.desk = ApprovalDesk(parts.core, parts.scribe, needs_reason)
        self.tasks: list[asyncio.Task[None]] = []
        for name in ("a", "b"):
            self.core.post(e.LaunchAsked(*now(), AgentId(name), LaunchRequest(argv=("x",), context_id=ContextId("c")), "operator:0"))
            process = ProcessIdentity(abs(hash(name)) % 30000 + 2, 7)
            self.core.post(e.LaunchConfirmed(*now(), AgentId(name), process, "", ControlLevel.MANAGED, True, ""))

    def record_first(self, record: c.Record) -> None:
        if self.disk_is_full:
            raise NotRecorded("the disk is full", "")
        self.records.append(record)

    def judge(self, _agent: object, request: PermissionRequest) -> Judged:
        found = self.verdicts.get(request.argument, ASK)
        if isinstance(found, Exception):
            raise found
        return found

    def run(self, command: c.Command) -> None:
        effects = self.approving
        match command:
            case c.JudgeCall():
                self.task(effects.judged(command))
            case c.KeepApproval():
                self.task(effects.keep(command))
            case c.UseApproval():
                self.task(effects.use(command))
            case c.EndGrants():
                self.task(effects.end_grants(command))
            case c.TakeBackApproval():
                self.task(effects.take_back(command))
            case c.ShowApproval(approval):
                effects.show(approval)
            case c.AnswerPermission(_agent, request_id, decision):
                self.core.settle_answer(request_id, decision)

    def task(self, coroutine: Any) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine))

    async def settle(self) -> None:
        while waiting := [t for t in self.tasks if not t.done()]:
            await asyncio.gather(*waiting)

    async def ask(self, request_id: str, argument: str = "cargo publish", agent: str = "a", **fields: Any) -> asyncio.Future[object]:
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.core.answers[request_id] = future
        self.core.post(e.PermissionAsked(*now(), AgentId(agent), request_id, PermissionRequest("run", argument, **fields)))
        await self.settle()
        return future

    async def decide(self, verdict: Any = "approve", scope: Any = "once", reason: str = "", index: int = 0) -> a.DecideView:
        row = (await self.desk.inbox()).waiting[index]
        body = a.DecideBody(requests=[a.Decided(id=row.id, digest=row.digest)], verdict=verdict, scope=scope, reason=reason)
        view = await self.desk.decide(body, "operator:0")
        await self.settle()
        return view


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    yield made
    await made.settle()
    made.ledger.close()


def kinds(world: World) -> list[str]:
    return [record.kind for record in world.records]


async def test_what_asks_waits_in_the_inbox_with_all_that_is_needed_to_decide(world: World) -> None:
    future = await world.ask("r1", says="publish it")
    assert not future.done()
    view = await world.desk.inbox()
    (row,) = view.waiting
    assert (row.tool, row.argument, row.agent_id, row.session, row.says, view.items) == ("run", "cargo publish", "a", "c", "publish it", 1)
    assert 590 < row.left_s <= 600 and view.median_decide_s is None
    detail = await world.desk.detail(row.id)
    assert [p.rule for p in detail.parts] == ["shell(cargo publish:*)", "no rule"]
    assert [(t.id, t.asks, t.cost_usd) for t in detail.tree] == [("a", True, None)], "nothing told what it spent"
    assert {line.kind: line.level for line in detail.blast}["files"] == "warn"
    assert kinds(world) == ["approval.asked"]


async def test_the_danger_comes_first_in_inbox_and_audit(world: World) -> None:
    why = "destroys: it overwrites what is on a disk"
    part = AskedPart("dd of=/dev/sda", "ask", "danger: write to a device", "danger", why, "destroys")
    world.verdicts["dd of=/dev/sda"] = Judged(Decision(Verdict.ASK, part.rule, part.reason), (part,))
    await world.ask("r1")
    await world.ask("r2", "dd of=/dev/sda")
    rows = (await world.desk.inbox()).waiting
    assert [(row.argument, row.danger, row.danger_rank) for row in rows] == [("dd of=/dev/sda", "destroys", 1), ("cargo publish", "", 9)]
    assert (await world.desk.detail(rows[0].id)).parts[0].danger == "destroys"
    record = world.records[-1]
    assert record.what == f"{why} (danger: write to a device)" and (record.data["danger"], record.data["rank"]) == ("destroys", "1")
    kept = world.ledger.approval(rows[0].id)
    assert kept is not None and kept.danger == "destroys"


async def test_an_approval_is_on_record_and_in_the_ledger_before_the_asker_hears_of_it(world: World) -> None:
    future = await world.ask("r1")
    assert (await world.decide()).results[0].done
    decision = await future
    assert isinstance(decision, Decision) and decision.verdict is Verdict.ALLOW
    assert kinds(world) == ["approval.asked", "approval.approved", "approval.used"]
    (row,) = (await world.desk.inbox()).decided
    assert (row.state, row.decided_by, row.took_s is not None) == ("used", "operator:0", True)


@pytest.mark.parametrize(("given", "told"), [("not on a Friday", "not on a Friday"), ("  ", "no reason given")])
async def test_a_denial_hands_on_its_reason(given: str, told: str, world: World) -> None:
    future = await world.ask("r1")
    await world.decide("deny", reason=given)
    decision = await future
    assert isinstance(decision, Decision) and decision.reason == f"denied by operator:0: {told}"


async def test_where_the_setting_says_so_a_denial_without_a_reason_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, needs_reason=True)
    await world.ask("r1")
    with pytest.raises(UsageProblem, match=r"approvals\.denial_needs_reason"):
        await world.decide("deny", reason="  ")
    view = await world.desk.inbox()
    assert view.denial_needs_reason and len(view.waiting) == 1
    assert (await world.decide("deny", reason="not on a Friday")).results[0].done
    await world.settle()
    world.ledger.close()


async def test_what_cannot_be_recorded_is_not_decided_and_waits_on(world: World) -> None:
    future = await world.ask("r1")
    world.disk_is_full = True
    view = await world.decide()
    assert not view.results[0].done and "not recorded" in view.results[0].words and not future.done()
    world.disk_is_full = False
    await world.decide()
    assert future.done()


async def test_a_use_that_cannot_be_recorded_is_a_denial(world: World) -> None:
    future = await world.ask("r1")
    (row,) = (await world.desk.inbox()).waiting
    use = world.approving.use

    async def when_full(command: c.UseApproval) -> None:
        world.disk_is_full = True
        await use(command)

    patch(world.approving, use=when_full)
    await world.decide()
    decision = await future
    assert isinstance(decision, Decision) and decision.verdict is Verdict.DENY
    approval = world.ledger.approval(row.id)
    assert approval is not None and approval.state == "approved"  # not used: it may still be taken up


async def test_another_digest_or_a_second_decision_changes_nothing(world: World) -> None:
    await world.ask("r1")
    (row,) = (await world.desk.inbox()).waiting
    wrong = a.DecideBody(requests=[a.Decided(id=row.id, digest="0" * 64)], verdict="approve")
    assert "not the one" in (await world.desk.decide(wrong, "operator:0")).results[0].words
    right = a.DecideBody(requests=[a.Decided(id=row.id, digest=row.digest)], verdict="approve")
    await world.desk.decide(right, "operator:0")
    await world.settle()
    late = (await world.desk.decide(right, "operator:1")).results[0]
    assert not late.done and late.words.startswith("it is used already by operator:0")
    missing = a.DecideBody(requests=[a.Decided(id="q-none", digest="0" * 64)], verdict="approve")
    assert (await world.desk.decide(missing, "operator:0")).results[0].words == "there is no such request"


async def test_two_consoles_at_once_one_decides(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    future = await world.ask("r1")
    (row,) = (await world.desk.inbox()).waiting
    one = [a.Decided(id=row.id, digest=row.digest)]
    both = (a.DecideBody(requests=one, verdict="approve"), a.DecideBody(requests=one, verdict="deny", reason="no"))
    views = await asyncio.gather(*(world.desk.decide(body, f"operator:{n}") for n, body in enumerate(both)))
    await world.settle()
    assert sorted(view.results[0].done for view in views) == [False, True] and future.done()


@pytest.mark.parametrize("what", ["kill", "kill one", "expiry", "end"])
async def test_whatever_ends_a_request_while_its_approval_is_written_leaves_nothing_on_disk(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Otherwise a grant stays in the ledger, nobody takes it out, and the next supervisor lets the calls of the session through."""
    at, boot = now()
    events: dict[str, e.Event] = {
        "kill": e.KillStarted(at, boot, "k", None, "r", "b"),
        "kill one": e.KillStarted(at, boot, "k", (AgentId("a"),), "r", "b"),
        "expiry": e.ClockTicked(at, boot + 10_000),
        "end": e.AgentExited(at, boot, AgentId("a"), 0),
    }
    future = await world.ask("r1")
    (row,) = (await world.desk.inbox()).waiting
    change, loop = world.ledger.change_approval, asyncio.get_running_loop()

    async def happens() -> None:
        world.core.post(events[what])
        await world.settle()

    def slowly(approval: Any, was: Any, grant: Any = None) -> bool:
        done = change(approval, was, grant)
        if approval.state == "approved":
            asyncio.run_coroutine_threadsafe(happens(), loop).result(30)
        return done

    monkeypatch.setattr(world.ledger, "change_approval", slowly)
    view = await world.decide(scope="session")
    assert not view.results[0].done and "ended" in view.results[0].words
    decision = await future
    assert isinstance(decision, Decision) and decision.verdict is Verdict.DENY
    assert open_approvals(world.ledger) == ((), ())
    kept = world.ledger.approval(row.id)
    assert kept is not None and kept.state == "void" and "approval.taken_back" in kinds(world)


async def test_a_request_whose_agent_ends_before_it_is_on_disk_is_no_request_after_a_restart(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, started, may_go_on = world.ledger.add_approval, threading.Event(), threading.Event()

    def slowly(approval: Any, boot: str) -> None:
        started.set()
        assert may_go_on.wait(30)
        add(approval, boot)

    monkeypatch.setattr(world.ledger, "add_approval", slowly)
    world.core.post(e.PermissionAsked(*now(), AgentId("a"), "r1", PermissionRequest("run", "cargo publish")))
    while not started.is_set():
        await asyncio.sleep(0.01)
    world.core.post(e.AgentExited(*now(), AgentId("a"), 0))
    await asyncio.sleep(0.2)  # what does not wait its turn is through by now
    may_go_on.set()
    await world.settle()
    assert open_approvals(world.ledger)[0] == ()


async def test_what_a_full_disk_kept_is_taken_back_as_soon_as_it_can_be(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approving_module, "AGAIN_S", 0.01)
    await world.ask("r1")
    await world.decide(scope="session")
    end, tries = world.ledger.end_grants, list[int]()

    def full_twice(*given: Any) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise NotRecorded("the disk is full", "")
        return end(*given)

    monkeypatch.setattr(world.ledger, "end_grants", full_twice)
    world.core.post(e.KillStarted(*now(), "k", None, "r", "b"))
    await world.settle()
    assert open_approvals(world.ledger)[1] == () and len(tries) == 3
    assert [n for n in world.notices if "taken back" in n] == ["what was approved could not be taken back on disk yet: the disk is full"]


async def test_of_two_consoles_the_one_that_was_late_is_on_record_as_late(world: World) -> None:
    await world.ask("r1")
    (row,) = (await world.desk.inbox()).waiting
    one = [a.Decided(id=row.id, digest=row.digest)]
    both = (a.DecideBody(requests=one, verdict="approve"), a.DecideBody(requests=one, verdict="deny", reason="no"))
    await asyncio.gather(*(world.desk.decide(body, f"operator:{n}") for n, body in enumerate(both)))
    await world.settle()
    said = sorted(k for k in kinds(world) if k in ("approval.approved", "approval.denied", "approval.too_late"))
    assert said == ["approval.approved", "approval.denied", "approval.too_late"]


async def test_what_only_the_disk_knows_of_can_be_taken_back_too(world: World) -> None:
    world.ledger.add_approval(replace(APPROVAL, approval_id="q-old"), "boot")
    world.ledger.change_approval(
        replace(APPROVAL, approval_id="q-old", state=ApprovalState.APPROVED),
        ApprovalState.WAITING,
        Grant(ContextId("c"), "d", "q-old", "o", 1.0),
    )
    await world.desk.end_grants(a.EndGrantBody(session="c", reason="enough"), "operator:0")
    assert world.ledger.grants() == []


async def test_what_a_session_was_given_can_be_taken_back(world: World) -> None:
    await world.ask("r1")
    await world.decide(scope="session")
    assert (await world.ask("r2", agent="b")).done()
    assert [(g.session, g.argument) for g in (await world.desk.grants()).grants] == [("c", "cargo publish")]
    await world.desk.end_grants(a.EndGrantBody(session="c", reason="enough"), "operator:0")
    assert not (await world.ask("r3", agent="b")).done()
    assert open_approvals(world.ledger)[1] == ()
    with pytest.raises(NotFound):
        await world.desk.end_grants(a.EndGrantBody(session="c", reason="again"), "operator:0")


async def test_what_cannot_be_judged_is_denied(world: World) -> None:
    world.verdicts["x"] = ValueError("odd")
    decision = await (await world.ask("r1", "x"))
    assert isinstance(decision, Decision) and (decision.verdict, decision.rule) == (Verdict.DENY, "policy")


async def test_a_mistake_of_ours_is_a_denial_too_and_leaves_nobody_waiting(world: World) -> None:
    world.verdicts["x"] = KeyError("a mistake")
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    world.core.answers["r1"] = future
    world.core.post(e.PermissionAsked(*now(), AgentId("a"), "r1", PermissionRequest("run", "x")))
    (task,) = world.tasks
    with pytest.raises(KeyError):
        await task
    decision = await future
    assert isinstance(decision, Decision) and decision.verdict is Verdict.DENY


async def test_what_cannot_be_kept_is_denied_and_said(world: World) -> None:
    world.ledger.close()
    world.ledger.path.unlink()
    world.ledger.path.mkdir()
    decision = await (await world.ask("r1"))
    assert isinstance(decision, Decision) and decision.reason.startswith("not recorded") and world.notices


async def test_after_a_restart_it_waits_on_and_its_asker_takes_it_up(world: World, tmp_path: Path) -> None:
    await world.ask("r1")
    waiting, _ = open_approvals(world.ledger)
    again = World(tmp_path)
    again.core.post(e.ApprovalsRestored(*now(), waiting))
    await again.decide()
    decision = await (await again.ask("r2"))
    assert isinstance(decision, Decision) and decision.verdict is Verdict.ALLOW
    await again.settle()
    again.ledger.close()


async def test_a_known_secret_in_a_request_reaches_no_disk_and_what_cannot_be_shown_whole_again_is_void_after_a_restart(
    world: World, tmp_path: Path
) -> None:
    future = await world.ask("r1", "curl -H s3cret", detail='{"x":"s3cret"}', says="s3cret")
    world.ledger.close()
    assert not any(b"s3cret" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert (await world.decide()).results[0].done and (await future).verdict is Verdict.ALLOW  # type: ignore[attr-defined]
    await world.ask("r2", "curl -H s3cret")
    await world.ask("r3", "curl -H public")
    assert [x.request.argument for x in open_approvals(world.ledger)[0]] == ["curl -H public"]
    assert world.ledger.approval("q-r2").state == "void"  # type: ignore[union-attr]


async def test_a_row_that_somebody_changed_on_disk_is_void_after_a_restart(world: World, tmp_path: Path) -> None:
    await world.ask("r1", "ls")
    with sqlite3.connect(tmp_path / "ledger.db") as db:
        db.execute("update approvals set argument = 'rm -r x'")
    db.close()
    assert open_approvals(world.ledger)[0] == ()


async def test_the_inbox_is_small_however_long_the_requests_are_and_the_detail_whole(world: World) -> None:
    long = "x" * 60_000
    await world.ask("r1", long)
    (row,) = (await world.desk.inbox()).waiting
    assert (row.argument, row.argument_more) == (long[:4096], 60_000 - 4096)
    assert (await world.desk.detail(row.id)).row.argument == long
    assert (await world.decide()).results[0].done
    assert (await world.desk.inbox()).decided[0].argument_more == 60_000 - 4096


async def test_a_tree_of_thousands_is_cut_and_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "TREE_MAX", 0)
    await world.ask("r1")
    (row,) = (await world.desk.inbox()).waiting
    detail = await world.desk.detail(row.id)
    assert detail.tree == [] and detail.tree_left_out == 1
    with pytest.raises(NotFound):
        await world.desk.detail("q-none")


async def test_the_inbox_says_how_much_people_are_asked_and_what_a_rule_could_have_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "COUNTED_S", 0.0)
    assert (await world.desk.inbox()).rule_share is None
    decided = (("make test", "approve"), ("make test", "deny"), ("make doc", "deny"), ("make test", "approve"))
    for number, (argument, verdict) in enumerate(decided):
        await world.ask(f"r{number}", argument)
        await world.decide(verdict, reason="so")
    monkeypatch.setattr(desk_module, "COUNTED_S", 1000.0)
    view = await world.desk.inbox()
    assert (view.questions_per_hour, view.rule_share) == (4.0, 0.5)
    await world.ask("r9", "make test")
    assert (await world.desk.inbox()).rule_share == 0.5, "it is counted again now and then, not at each request"
