"""The case folder: what is in it, that its manifest is right, and what the bound and a broken disk make of it."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.credentials.redaction import Redactor
from console.domain.agent import Agent, AgentId, ContextId, ProcessIdentity, SandboxKind
from console.domain.calls.approval import Approval
from console.domain.calls.permission import PermissionRequest
from console.domain.engine import event as e
from console.domain.errors import ConsoleError
from console.domain.ids import ControlLevel
from console.domain.kill import StepStatus
from console.domain.network import EgressRecord
from console.enforcement.state import EngineState
from console.ledger.store import Ledger
from console.services.evidence import case
from console.services.evidence.case import Collected, Evidence, Matter, collect, matter_of, words_of
from console.services.evidence.process_snapshot import AgentSeen, OpenFile, ProcessSeen
from console.services.evidence.snapshot_cache import Witness
from console.settings.options import EvidenceOptions
from console.settings.places import Places

KILL = "20250131-142233-a1b2c3"


class FakeLedger:
    """Egress rows by agent."""

    def __init__(self, *records: EgressRecord) -> None:
        self.records = records

    def egress(self, limit: int = 200, agent_id: str | None = None) -> list[Any]:
        return [SimpleNamespace(record=r) for r in self.records if agent_id in (None, r.agent_id)][:limit]


def request(agent_id: str, at: float) -> EgressRecord:
    return EgressRecord(at, agent_id, "GET", "example.org", "/\udcff", 200, 1, 2, True, "entry e1")


def agent(name: str = "a-1", context: str = "c1") -> Agent:
    made = AgentId(name)
    return Agent(
        made, "n\u202e", None, made, 1, ContextId(context), ControlLevel.MANAGED, SandboxKind.NONE, time.time() - 5, ("x", "\udcff"),
        process=ProcessIdentity(5, 6),
    )  # fmt: skip


def matter(*agents: Agent, **more: Any) -> Matter:
    process = ProcessSeen(5, 1, 6, 1.0, "S", 0, "/x", ("x", "--y"), "/w", (OpenFile(3, "/w/f"),))
    fields: dict[str, Any] = {
        "kill_id": KILL,
        "targets": agents,
        "agents": (*agents, agent("bystander")),
        "pids": {"a-1": 1},
        "seen": {"a-1": AgentSeen(1.0, (process,))},
        "asked": (),
    }
    return Matter(**fields | more)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    made = Places(tmp_path, tmp_path / "run", "0123abcd", False)
    (made.workspaces_dir / "c1").mkdir(parents=True)
    (made.workspaces_dir / "c1" / "f").write_text("changed")
    made.output_dir.mkdir()
    (made.output_dir / "a-1.log").write_bytes(b"y" * 20_000 + b"last words \xff\n")
    return made


def run(places: Places, of: Matter, ledger: FakeLedger | None = None, began: float | None = None, **options: Any) -> Collected:
    chosen = EvidenceOptions(**({"bound_s": 30.0} | options))
    return collect(of, places, cast(Ledger, ledger or FakeLedger()), chosen, time.monotonic() if began is None else began)


def read(places: Places, name: str, folder: str = KILL) -> Any:
    return json.loads((places.state_dir / "cases" / folder / name).read_text())


def test_every_part_is_there_and_the_manifest_vouches_for_it(places: Places) -> None:
    asked = e.PermissionAsked(1.0, 2.0, AgentId("a-1"), "r1", PermissionRequest("write_file", "p" * 9000))
    other = e.PermissionAsked(1.0, 2.0, AgentId("bystander"), "r2", PermissionRequest("x", "y"))
    got = run(places, matter(agent(), asked=(asked, other)), FakeLedger(request("a-1", 3.0), request("bystander", 4.0)))
    folder = places.state_dir / "cases" / KILL
    manifest = read(places, "manifest.json")
    names = {"snapshot.json", "agents.json", "approvals.json", "egress.json", "outputs.json", "workspaces.json"}
    assert {f["name"] for f in manifest["files"]} == names == {p.name for p in folder.iterdir()} - {"manifest.json"}
    for entry in manifest["files"]:
        data = (folder / entry["name"]).read_bytes()
        assert (entry["size"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert got.manifest_sha256 == hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert (manifest["cut"], manifest["failed"], manifest["kill_id"]) == ([], [], KILL)
    assert read(places, "snapshot.json")["agents"]["a-1"]["processes"][0]["cmdline"] == ["x", "--y"]
    assert [(a["agent_id"], a["target"]) for a in read(places, "agents.json")["agents"]] == [("a-1", True), ("bystander", False)]
    assert [len(a["argument"]) for a in read(places, "approvals.json")["open"]] == [case.ARGUMENT]
    assert [r["agent_id"] for r in read(places, "egress.json")["newest_first"]] == ["a-1"]
    assert read(places, "outputs.json")["agents"]["a-1"]["tail"].endswith("last words \\xff\n")
    assert read(places, "outputs.json")["agents"]["a-1"]["size"] == 20_013
    assert read(places, "workspaces.json")["workspaces"][0]["files"][0]["path"] == "f"
    assert got.counts == {
        "agents": 1, "processes": 1, "files": 1, "sockets": 0, "unseen": 0, "approvals": 1, "egress": 1, "outputs": 1, "changed": 1,
    }  # fmt: skip


def test_what_waited_for_a_human_is_in_it_though_the_kill_took_it_away() -> None:
    call = PermissionRequest("shell", "touch x")
    state, victim, other = EngineState(), AgentId("a-1"), AgentId("bystander")
    told: dict[str, Any] = {
        "root_id": victim,
        "context_id": ContextId("c"),
        "request": call,
        "digest": "",
        "rule": "",
        "reason": "",
        "asked_at": 3.0,
    }
    state.approvals.taken += [Approval(f"q-{one}", one, expires_boot=9.0, **told) for one in (victim, other)]
    asked = {"r": e.PermissionAsked(1.0, 2.0, victim, "r", call), "s": e.PermissionAsked(1.0, 2.0, victim, "s", replace(call, tool="x"))}
    core: Any = SimpleNamespace(state=state, asked=asked)
    found = matter_of(core, Witness(5.0, 5), KILL, {victim}).asked
    assert [(one.agent_id, one.request_id, one.at) for one in found] == [(victim, "q-a-1", 3.0), (victim, "s", 1.0)]


def test_only_its_owner_can_read_it(places: Places) -> None:
    run(places, matter(agent()))
    folder = places.state_dir / "cases" / KILL
    assert folder.stat().st_mode & 0o077 == 0
    assert folder.parent.stat().st_mode & 0o077 == 0
    assert all(p.stat().st_mode & 0o077 == 0 for p in folder.iterdir())


def test_a_second_collection_leaves_the_first_as_it_was(places: Places) -> None:
    first = run(places, matter(agent()))
    second = run(places, matter(agent()))
    assert read(places, "manifest.json", f"{KILL}.2")["kill_id"] == KILL
    whole = (places.state_dir / "cases" / KILL / "manifest.json").read_bytes()
    assert hashlib.sha256(whole).hexdigest() == first.manifest_sha256 != second.manifest_sha256


def test_many_targets_are_sifted_from_the_newest_requests(places: Places) -> None:
    agents = tuple(agent(f"a-{n}") for n in range(60))
    run(places, matter(*agents), FakeLedger(*(request(f"a-{n % 90}", float(n)) for n in range(300))))
    found = read(places, "egress.json")["newest_first"]
    assert len(found) == 200 and found == sorted(found, key=lambda r: -r["at"])
    assert {r["agent_id"] for r in found} <= {a.agent_id for a in agents}


def test_at_the_bound_what_is_there_is_kept_and_the_rest_is_named(places: Places) -> None:
    got = run(places, matter(agent()), began=time.monotonic() - 100)
    manifest = read(places, "manifest.json")
    assert manifest["files"] == []
    assert [c["part"] for c in manifest["cut"]] == list(got.cut) == ["snapshot", "agents", "approvals", "egress", "outputs", "workspaces"]
    assert "cut at 2 s: snapshot" in words_of(got, 2.0)


def test_each_workspace_gets_its_share_and_a_cut_one_is_named(places: Places) -> None:
    (places.workspaces_dir / "c2").mkdir()
    for context in ("c1", "c2"):
        for n in range(20):
            (places.workspaces_dir / context / str(n)).write_text("")
    got = run(places, matter(agent("a-1", "c1"), agent("a-2", "c2")), files_max=5)
    assert got.cut == ("workspaces",)
    [cut] = read(places, "manifest.json")["cut"]
    assert "c1: 5 files" in cut["why"] and "c2: 5 files" in cut["why"]
    assert [len(w["files"]) for w in read(places, "workspaces.json")["workspaces"]] == [5, 5]
    assert got.counts["unseen"] == 1
    assert "1 agent whose processes were never read" in words_of(got, 2.0)


def test_a_part_that_breaks_is_a_failure_that_is_named_and_the_others_are_there(places: Places) -> None:
    class Broken(FakeLedger):
        def egress(self, limit: int = 200, agent_id: str | None = None) -> list[Any]:
            raise ConsoleError("the ledger is damaged", "")

    got = run(places, matter(agent()), Broken())
    assert got.failed == ("egress: the ledger is damaged",)
    assert "failed: egress" in words_of(got, 2.0)
    assert len(read(places, "manifest.json")["files"]) == 5


def test_no_part_holds_a_known_secret(places: Places) -> None:
    redactor = Redactor()
    redactor.learn('planted "value" 1')
    shown = replace(agent(), argv=("deploy", '--key=planted "value" 1'))
    collect(matter(shown), places, cast(Ledger, FakeLedger()), EvidenceOptions(), time.monotonic(), redactor.redact_data)
    assert "--key=[secret]" in json.dumps(read(places, "agents.json")), "it was there to be hidden"
    assert "planted" not in "".join(p.read_text() for p in (places.state_dir / "cases").rglob("*") if p.is_file())


def test_an_output_that_is_a_link_is_not_followed(places: Places, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (places.output_dir / "a-1.log").unlink()
    (places.output_dir / "a-1.log").symlink_to(tmp_path / "secret")
    run(places, matter(agent()))
    assert read(places, "outputs.json")["agents"] == {}


@pytest.mark.parametrize("kill_id", ["", "../x", "a/b", ".", "x" * 81, "k\n"])
def test_an_id_that_is_no_kills_makes_no_folder(places: Places, kill_id: str) -> None:
    with pytest.raises(ValueError):
        run(places, matter(agent(), kill_id=kill_id))
    assert not (places.state_dir / "cases").exists()


# --- the step


def evidence_of(places: Places, **options: Any) -> Evidence:
    state = EngineState()
    state.put(agent())
    core: Any = SimpleNamespace(state=state, asked={})
    ledger: Any = FakeLedger()
    return Evidence(core, Witness(), places, ledger, EvidenceOptions(**options), Redactor().redact_data)


async def test_the_step_names_counts_and_the_manifests_hash(places: Places) -> None:
    step = await evidence_of(places).step(KILL, {AgentId("a-1"), AgentId("never-heard-of")}, time.time() - 1)
    digest = hashlib.sha256((places.state_dir / "cases" / KILL / "manifest.json").read_bytes()).hexdigest()
    assert step.status is StepStatus.OK and step.ms is not None and step.ms >= 1000
    assert step.detail.startswith("1 agent, 0 processes") and step.detail.endswith(f"manifest sha256 {digest}")


async def test_nothing_written_is_failed(places: Places) -> None:
    (places.state_dir / "cases").write_text("in the way")
    step = await evidence_of(places).step(KILL, {AgentId("a-1")}, time.time())
    assert step.status is StepStatus.FAILED and "nothing was collected" in step.detail


async def test_a_disk_that_hangs_is_not_waited_for(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "DISK_S", 0.05)
    whole, answers = case.collect, threading.Event()

    def slow(*args: Any) -> Collected:
        assert answers.wait(60)
        return whole(*args)

    monkeypatch.setattr(case, "collect", slow)
    step = await evidence_of(places, bound_s=0.05).step(KILL, {AgentId("a-1")}, time.time())
    answers.set()
    assert step.status is StepStatus.UNKNOWN and "not answered" in step.detail
