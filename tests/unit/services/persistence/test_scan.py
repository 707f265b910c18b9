"""The hunt's own ways: unknown is never ok, a disk that hangs holds up nothing, a baseline is taken once."""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import Agent, AgentId, ContextId, ProcessIdentity, SandboxKind
from console.domain.engine.command import Record
from console.domain.errors import TimedOut
from console.domain.ids import ControlLevel
from console.domain.kill import Receipt, Step, StepName, StepStatus
from console.enforcement.state import EngineState
from console.rollback.persistence.findings import Report
from console.services.hooks.installation import HOOK_FILE, command_for, wrote
from console.services.persistence import scan as hunts
from console.services.persistence.scan import Hunt, host_roots, words_of, writers_of
from console.settings.options import Options, PersistenceOptions
from console.settings.places import Places
from console.sources.kinds import HOOKS
from console.supervisor.verbs import install_hook


def agent(name: str = "a-1", session: str = "c1", **more: Any) -> Agent:
    fields: dict[str, Any] = {"name": name, "parent_id": None, "root_id": AgentId(name), "depth": 1, "context_id": ContextId(session)}
    fields |= {"control_level": ControlLevel.MANAGED, "sandbox": SandboxKind.NONE, "started_at": 1.0}
    return Agent(AgentId(name), **(fields | more))


class World:
    """One hunt, its state directory, and what it said."""

    def __init__(self, folder: Path, **persistence: Any) -> None:
        self.places = Places(folder, folder / "run", "0" * 8, False)
        self.options = Options(persistence=PersistenceOptions(**({"bound_s": 20.0} | persistence)))
        self.state, self.records, self.notices = EngineState(), list[Record](), list[str]()
        self.hunt = Hunt(
            self.places, self.options, lambda: self.state, self.records.append, self.notices.append, wrote=partial(wrote, self.places)
        )
        (self.places.workspaces_dir / "c1").mkdir(parents=True)

    def runs(self, one: Agent) -> Agent:
        """An agent whose process was started."""
        running = replace(one, process=ProcessIdentity(1, 1))
        self.state.agents[one.agent_id] = running
        return running

    async def killed(self, kill_id: str, *agents: str) -> Step:
        async def collected() -> Step:
            return Step(StepName.EVIDENCE, StepStatus.OK, 1.0)

        await self.hunt.after_kill(kill_id, agents, asyncio.create_task(collected()))
        receipt = Receipt(kill_id, "i", "all", "r", "b", 1.0, steps=(Step(StepName.SECOND_LOOK, StepStatus.OK, 500.0, "no stray"),))
        self.receipt = self.hunt.into(receipt)
        return self.receipt.steps[0]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_clean_session_is_ok_and_what_was_added_is_named(world: World) -> None:
    await world.hunt.begin(agent())
    world.runs(agent())
    step = await world.killed("k1", "a-1")
    assert step.status is StepStatus.OK and step.detail.startswith("no stray; places that start things: nothing changed")
    (world.places.workspaces_dir / "c1" / ".envrc").write_text("evil")
    step = await world.killed("k2", "a-1")
    assert step.status is StepStatus.OK and ".envrc (folder environment; runs: your next shell there)" in step.detail
    kept = json.loads((world.places.state_dir / "cases" / "k2" / "persistence.json").read_text())
    assert kept["sessions"][0]["findings"][0]["excerpt"] == "evil"


def install(world: World, program: str, file: Path, *flags: str) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    install_hook.install_arguments(parser)
    install_hook.install_hook(world.places, parser.parse_args([program, f"--settings={file}", "--yes", *flags]))


async def test_our_own_hook_is_no_change_and_anything_else_in_its_file_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    claude, codex = home / ".claude" / "settings.json", home / ".codex" / "hooks.json"
    claude.parent.mkdir(parents=True)
    claude.write_text('{"model": "mine",   "hooks": {}}')
    world = World(tmp_path / "s", home=str(home))

    async def changes() -> set[str]:
        (found,) = await world.hunt.look(["c1"])
        return {one.path.rpartition("/")[2] for one in found.findings}

    await world.hunt.begin(agent())
    install(world, "claude-code", claude)
    install(world, "codex", codex)
    assert await changes() == set(), "both are as this instance writes them"
    ours = claude.read_text()
    for other in (ours.replace("mine", "yours"), ours.replace(str(world.places.hooks_sock), "/tmp/other.sock"), ours + " "):
        claude.write_text(other)
        assert await changes() == {"settings.json"}, other
    claude.write_text(ours)
    claude.chmod(0o700)
    assert await changes() == {"settings.json"}, "it can be executed now"
    claude.chmod(0o600)
    assert await changes() == set()
    install(world, "codex", codex, "--undo")
    assert await changes() == set() and not codex.exists()
    for record in world.places.hooks_dir.glob("record-*.json"):
        record.write_text(json.dumps(json.loads(record.read_bytes()) | {"before": ours, "before_sha256": "", "after_sha256": ""}))
    assert await changes() == {"settings.json"}, "a record that another wrote hides nothing"


@pytest.mark.parametrize("change", ["interpreter", "words"])
async def test_a_command_like_ours_is_a_change(tmp_path: Path, change: str) -> None:
    home = tmp_path / "home"
    file = home / ".codex" / "hooks.json"
    file.parent.mkdir(parents=True)
    world = World(tmp_path / "s", home=str(home))
    await world.hunt.begin(agent())
    command = command_for(world.places, "codex")
    command = replace(command, python="/tmp/python3") if change == "interpreter" else replace(command, hook=tmp_path / "hooks" / HOOK_FILE)
    file.write_bytes(HOOKS["codex"].added(b"", command, "f"))
    (found,) = await world.hunt.look(["c1"])
    assert [one.path for one in found.findings] == [str(file)]


async def test_the_baseline_is_taken_once_and_recorded(world: World) -> None:
    await asyncio.gather(world.hunt.begin(agent("a-1")), world.hunt.begin(agent("a-2")))
    world.runs(agent())
    path = world.places.state_dir / "baselines" / "c1.json"
    before = path.read_bytes()
    (world.places.workspaces_dir / "c1" / ".envrc").write_text("evil")
    again = Hunt(world.places, world.options, lambda: world.state, world.records.append, world.notices.append)
    await again.begin(agent("a-3"))
    assert path.read_bytes() == before
    assert [r.kind for r in world.records] == ["persistence.baseline"]


async def test_a_session_in_which_agents_ran_gets_no_baseline_afterwards(world: World) -> None:
    world.runs(agent("a-0"))
    await world.hunt.begin(agent())
    assert not (world.places.state_dir / "baselines").exists()
    assert "has no baseline" in world.notices[0]
    step = await world.killed("k1", "a-0")
    assert step.status is StepStatus.OK and world.receipt.persistence == "unknown" and "unknown: there is no baseline" in step.detail


async def test_a_baseline_that_cannot_be_kept_stops_no_launch(world: World) -> None:
    (world.places.state_dir / "baselines").write_text("in the way")
    await world.hunt.begin(agent())
    assert "has no baseline" in world.notices[0]


async def test_a_changed_baseline_is_unknown_and_so_is_one_signed_by_another_key(world: World) -> None:
    await world.hunt.begin(agent())
    world.runs(agent())
    for path in world.places.keys_dir.iterdir():
        path.unlink()
    step = await world.killed("k1", "a-1")
    assert step.status is StepStatus.OK and world.receipt.persistence == "unknown" and "not as it was signed" in step.detail


async def test_a_look_cut_by_its_bound_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunts, "PER_SESSION_S", 0.0)
    world = World(tmp_path, bound_s=1e-6)
    await world.hunt.begin(agent())
    world.runs(agent())
    step = await world.killed("k1", "a-1")
    assert step.status is StepStatus.OK and world.receipt.persistence == "unknown" and "out of time" in step.detail


async def test_a_disk_that_hangs_is_unknown_and_the_next_look_does_not_pile_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.hunt.begin(agent())
    world.runs(agent())
    world.options.persistence.bound_s = 0.05
    monkeypatch.setattr(hunts, "DISK_S", 0.05)
    monkeypatch.setattr(hunts, "PER_SESSION_S", 0.0)
    let_go = threading.Event()
    monkeypatch.setattr(Hunt, "_look", lambda *_: let_go.wait(60))
    try:
        step = await world.killed("k1", "a-1")
        assert step.status is StepStatus.OK and world.receipt.persistence == "unknown" and "did not come back" in step.detail
        with pytest.raises(TimedOut, match="before has not come back|did not come back"):
            await world.hunt.look(["c1"])
        assert sum(t.name == "hunt" for t in threading.enumerate()) == 1
    finally:
        let_go.set()
        while any(t.name == "hunt" for t in threading.enumerate()):
            time.sleep(0.01)


@pytest.mark.parametrize("trouble", [RecursionError("maximum recursion depth exceeded"), MemoryError()])
async def test_what_an_agent_made_unreadable_is_unknown_and_the_receipt_is_completed(
    world: World, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    await world.hunt.begin(agent())
    world.runs(agent())

    def hostile(*_: object) -> None:
        raise trouble

    monkeypatch.setattr(Hunt, "_look", hostile)
    step = await world.killed("k1", "a-1")
    assert step.status is StepStatus.OK and world.receipt.persistence == "unknown" and "could not be read" in step.detail
    monkeypatch.setattr(Hunt, "_take", hostile)
    await world.hunt.begin(agent("b-1", "c2"))
    assert "session c2 has no baseline" in world.notices[-1] and "could not be read" in world.notices[-1]


async def test_nothing_of_a_hunt_holds_a_secret_that_this_instance_knows(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.hunt = Hunt(
        world.places,
        world.options,
        lambda: world.state,
        world.records.append,
        world.notices.append,
        lambda t: t.replace("opensesame", "[secret]"),
    )
    await world.hunt.begin(agent())
    world.runs(agent())
    inside = world.places.workspaces_dir / "c1"
    (inside / ".envrc").write_text("x" * 149 + "opensesame\nAuthorization: Bearer hunter2hunter2\n")
    (inside / "opensesame").mkdir()
    (inside / "opensesame" / ".envrc").write_text("https://ann:hunter2@example.org")
    (inside / ".mcp.json").symlink_to("/opensesame/hunter")
    step = await world.killed("k1", "a-1")
    kept = (world.places.state_dir / "cases" / "k1" / "persistence.json").read_text()
    for text in (step.detail, kept, repr(world.hunt.reports), repr(world.records)):
        assert "opens" not in text and "hunter2" not in text
    assert kept.count("[secret]") == 3 and kept.count("[masked") == 2


async def test_a_step_that_failed_is_not_made_better(world: World) -> None:
    world.hunt._words["k"] = words_of([Report("c1", 1.0, 1.0)])
    receipt = Receipt("k", "i", "all", "r", "b", 1.0, steps=(Step(StepName.SECOND_LOOK, StepStatus.FAILED, 1.0, "a stray"),))
    assert world.hunt.into(receipt).steps[0].status is StepStatus.FAILED
    other = replace(receipt, kill_id="other")
    assert world.hunt.into(other) == other


async def test_a_case_folder_keeps_what_it_has(world: World) -> None:
    await world.hunt.begin(agent())
    world.runs(agent())
    folder = world.places.state_dir / "cases" / "k1.2"
    folder.mkdir(parents=True)
    (folder / "persistence.json").write_text("earlier")
    step = await world.killed("k1", "a-1")
    assert "persistence.2.json sha256" in step.detail
    assert (folder / "persistence.json").read_text() == "earlier"


async def test_agents_that_were_only_seen_are_nobodys_session(world: World) -> None:
    world.runs(agent(control_level=ControlLevel.OBSERVED))
    assert (await world.killed("k1", "a-1")).detail == "no stray"


async def test_an_ended_session_is_looked_at_when_its_last_agent_is_gone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunts, "SETTLE_S", 0.01)
    await world.hunt.begin(agent())
    world.runs(agent())
    world.state.live.add(AgentId("a-1"))
    (world.places.workspaces_dir / "c1" / ".envrc").write_text("evil")
    world.hunt.ended("c1")
    assert world.hunt._settling is not None
    await world.hunt._settling
    assert world.hunt.reports == {}
    world.state.live.clear()
    world.hunt.ended("c1")
    await world.hunt._settling
    assert [r.kind for r in world.records] == ["persistence.baseline", "persistence.found"]
    assert ".envrc" in world.records[-1].what and world.records[-1].verdict == "not_proven"
    world.hunt.ended("c1")
    await world.hunt._settling
    assert len(world.records) == 2  # it was looked at since it ended


def test_who_could_have_written(world: World) -> None:
    world.runs(agent("a-1", control_level=ControlLevel.CONTAINED))
    assert not writers_of(world.state, world.options, "c1").saw_host
    world.runs(agent("a-2"))
    assert writers_of(world.state, world.options, "c1").saw_host


def test_an_instance_of_its_own_looks_at_no_host_unless_it_is_named(tmp_path: Path) -> None:
    own = Places(tmp_path, tmp_path / "run", "0" * 8, False)
    roots, left = host_roots(own, Options())
    assert roots == () and len(left) == 2
    roots, left = host_roots(own, Options(persistence=PersistenceOptions(home="/h", system="/s")))
    assert [(r.label, r.path) for r in roots] == [("home:/h", "/h"), ("system", "/s")] and left == ()
    roots, _ = host_roots(own, Options(discover_root="/d"))
    assert [r.path for r in roots] == ["/d"]
    roots, left = host_roots(replace(own, is_default=True), Options())
    assert {"system", f"home:{Path.home()}"} <= {r.label for r in roots} and left == ()
