"""The real Claude Code and Codex, started and talked to: live events, money to the cent, messages, interrupts, caps that stop them.

The model is a scripted one of ours on loopback (tests/fakes/model_server.py); everything else is real.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console.api.agents.programs import ProgramItem, ProgramsBody
from console.api.messages import AllowlistEntryBody
from console.api.records import AuditRow
from console.cli.main import main
from console.domain.errors import Conflict, Denied, Killed
from console.settings.options import save_options
from tests.fakes.egress_world import World
from tests.fakes.instance import Instance, processes_with, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene
from tests.fakes.real_programs import CLAUDE, codex, codex_if_there

HOSTILE = Path(__file__).parents[1] / "fakes" / "hostile_program.py"
ANSWER_USD = 0.0100998
"""What Claude Code itself says that one answer of the script cost, by claude-sonnet-4-5."""
MARK = f"29{secrets.randbelow(10**6):06d}.5"
"""Seconds that a shell of the endless agent sleeps: nobody else's."""
LEAVE = Call("Bash", {"command": f"setsid -f sleep {MARK}", "description": "leave"})
held, turned, left, asked_to_end = (threading.Event() for _ in range(4))
"""What scenes wait for: the interrupted answer; the sub-agent, for its parent's turn to end; the endless one, for us to have seen it; the
last answer, for its end to be asked for."""
SCENES = (
    Scene(
        "TALKTASK",
        Reply("I will look.", (Call("Bash", {"command": "id -u; echo $HOME", "description": "who"}),)),
        Reply("", (Call("Agent", {"description": "count files", "prompt": "SUBTASK count", "subagent_type": "general-purpose"}),)),
        Reply("Started it."),
        Reply("It is back."),
        Reply("Heard you."),
        Reply("After the interrupt.", after=held),
        Reply("After the restart."),
    ),
    Scene(
        "SUBTASK", Reply("", (Call("Bash", {"command": "ls | wc -l", "description": "count"}),)), Reply("There are 0 files.", after=turned)
    ),
    Scene("ENDLESS", Reply("", (LEAVE,)), Reply("", (LEAVE,), after=left), forever=True),
    Scene("ENDTASK", Reply("I look.", (Call("Bash", {"command": "id -u"}),)), Reply("I am through.", after=asked_to_end)),
    Scene("ONCETASK", Reply("", (Call("Bash", {"command": "ls /root /home; pwd", "description": "look"}),)), Reply("That was all.")),
    Scene("CODEXTASK", Reply("I look.", (Call("exec_command", {"cmd": "echo $CODEX_HOME"}),)), Reply("Done."), Reply("Late.", after=held)),
)
MODEL: list[ModelServer] = []
"""The one that the shared instance asks."""
Verb = Callable[..., tuple[int, str, str]]


def settings(folder: Path, **more: Any) -> None:
    given = {
        "environment": {
            "claude-code": {"names": ["ANTHROPIC_BASE_URL"], "secrets": ["ANTHROPIC_API_KEY"]},
            "codex": {"names": ["OPENAI_BASE_URL"], "secrets": ["OPENAI_API_KEY"]},
        },
        "programs.claude_code": str(CLAUDE),
        "programs.codex": str(codex_if_there() or ""),
        "programs.models": {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5.1-codex"},
        "programs.memory_free_min_mib": 0,
        "programs.hooks": False,  # what they call is not what these sentences are about
    }
    save_options(folder / "settings.json", given | more)


@contextmanager
def room() -> Iterator[Path]:
    """A state directory that goes also when a test fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@contextmanager
def instance_with(model: ModelServer, **more: Any) -> Iterator[Instance]:
    """One whose programs ask ``model``; ``more``: its settings."""
    with room() as folder, pytest.MonkeyPatch.context() as patch:
        settings(folder, **more)
        patch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-of-the-test")
        patch.setenv("OPENAI_API_KEY", "sk-of-the-test-and-of-nobody")
        patch.setenv("ANTHROPIC_BASE_URL", model.url)
        patch.setenv("OPENAI_BASE_URL", f"{model.url}/v1")
        with Instance(folder, envoy=True) as instance:
            yield instance
    model.check()


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with ModelServer(*SCENES) as model, instance_with(model) as instance:
        MODEL[:] = [model]
        yield instance


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Verb:
    """A verb of the command line on an instance: exit code, stdout, stderr."""

    def called(it: Instance, *argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        at = argv.index("--") if "--" in argv else len(argv)  # a noun takes no options, its verb does
        code = main([*argv[:at], "--state-dir", str(it.state_dir), *argv[at:]])
        said = capsys.readouterr()
        return code, said.out, said.err

    return called


@pytest.fixture
def verb(it: Instance, run: Verb) -> Verb:
    """On the shared instance."""
    return partial(run, it)


def told(it: Instance, agent_id: str) -> list[str]:
    return [f"{e.kind}: {e.text}" for e in it.api.agent(agent_id).events]


def heard(it: Instance, agent_id: str, word: str) -> list[str]:
    until(lambda: any(word in line for line in told(it, agent_id)), words=f"{word!r} in the events of {agent_id}")
    return told(it, agent_id)


def has_cost(it: Instance, agent_id: str, answers: int, each: float = ANSWER_USD) -> None:
    until(
        lambda: (it.agent(agent_id).cost_usd or 0.0) >= round(answers * each, 6) - 1e-9,
        words=f"{(it.agent(agent_id).cost_usd or 0.0)} of {answers * each}",
    )
    assert it.agent(agent_id).usage["cost_usd"] == pytest.approx(answers * each, abs=1e-9)


def day_has(it: Instance, answers: int) -> None:
    """Fleet, Budgets and the transcripts themselves say the same of today, each answer once."""
    usd = pytest.approx(answers * ANSWER_USD, abs=1e-6)
    until(lambda: it.api.fleet().spend_today_usd == usd, words=lambda: f"{it.api.fleet().spend_today_usd} today")
    until(lambda: it.api.budgets().totals.spend_today_usd == usd, words=lambda: f"{it.api.budgets().totals.spend_today_usd} of the budgets")
    assert it.api.fleet().burn_usd_per_h > 0


def test_a_started_claude_is_heard_live_charged_to_the_cent_told_interrupted_frozen_and_outlives_a_restart(run: Verb) -> None:
    with ModelServer(*SCENES) as model, instance_with(model) as it:
        _talk(it, partial(run, it), model)


def _talk(it: Instance, verb: Verb, model: ModelServer) -> None:
    code, out, err = verb("run", "--agent", "claude-code", "--limit", "cost=1", "--", "TALKTASK please")
    assert code == 0 and "1.00 USD at most" in err and "claude (2." in err and "ANTHROPIC_API_KEY" in err
    agent_id = out.strip()
    heard(it, agent_id, "turn over: Started it.")
    turned.set()
    lines = heard(it, agent_id, "turn over: It is back.")
    text = "\n".join(lines)
    assert "tool_result: done: 65534" in text and f"workspaces/{it.agent(agent_id).session}" in text
    assert "sub-agent started: count files" in text and "sub-agent ended" in text
    has_cost(it, agent_id, 6)  # four of its own, two of the sub-agent
    day_has(it, 6)
    assert verb("say", agent_id, "and now?")[:2] == (0, f"{agent_id}: said\n")
    assert "operator: and now?" in "\n".join(heard(it, agent_id, "turn over: Heard you."))
    assert verb("say", agent_id, "think long")[0] == 0
    heard(it, agent_id, "operator: think long")
    until(lambda: any((a.word, a.turn) == ("TALKTASK", 5) for a in model.asked), words="its model is asked")
    assert verb("interrupt", agent_id)[:2] == (0, f"{agent_id}: interrupted\n")
    heard(it, agent_id, "turn broken off")
    it.api.freeze(agent_id)
    it.state_becomes(agent_id, "frozen")
    code, _, err = verb("say", agent_id, "are you there?")
    assert code == 4 and "frozen" in err
    it.api.thaw(agent_id)
    it.state_becomes(agent_id, "running")
    held.set()
    assert verb("say", agent_id, "go on")[0] == 0
    heard(it, agent_id, "turn over: After the interrupt.")
    has_cost(it, agent_id, 8)
    it.stop()
    it.start()
    assert verb("say", agent_id, "still there?")[0] == 0
    heard(it, agent_id, "turn over: After the restart.")
    has_cost(it, agent_id, 9)
    day_has(it, 9)
    assert sum("operator: and now?" in line for line in told(it, agent_id)) == 1
    it.api.kill(agent_id, reason="the test")
    code, _, err = verb("say", agent_id, "and now?")
    assert code == 4 and "killed (the test)" in err
    kinds = {row.kind: row.verdict for row in it.api.audit().rows if row.kind.startswith("agent.")}
    assert kinds["agent.interrupt"] == "allow" and kinds["agent.message"]


def test_its_budget_halts_it_in_the_middle_and_what_left_its_session_is_proven_gone(it: Instance, verb: Verb) -> None:
    code, out, _ = verb("run", "--agent", "claude-code", "--limit", f"cost={6 * ANSWER_USD:.4f}", "--", "ENDLESS please")
    assert code == 0
    agent_id = out.strip()
    until(lambda: processes_with(MARK), words="a shell of its tool call has left its session")
    left.set()
    it.state_becomes(agent_id, "halted")
    view = it.agent(agent_id)
    assert "cost" in view.state_reason and (view.cost_usd or 0.0) >= 6 * ANSWER_USD - 1e-4
    assert processes_with(MARK) == []
    code, _, err = verb("say", agent_id, "once more")
    assert code == 4 and "halted" in err and "cost" in err


def test_one_that_is_asked_once_in_a_sandbox_sees_only_its_own_and_ends_with_its_answer(it: Instance, verb: Verb) -> None:
    code, out, err = verb("run", "--agent", "claude-code", "--once", "--wait", "--", "ONCETASK please")
    assert code == 0, err
    assert out == "That was all.\n", "the answer alone, for scripts"
    assert "cannot access '/root'" in err and "tool call Bash" in err and '{"type"' not in err and "ended with exit code 0" in err
    assert "sandbox bubblewrap, with the network FULL, because its model answers at http://127.0.0.1:" in err
    agent = it.agent(err.partition("agent ")[2].partition(" runs")[0])
    assert agent.state == "ended" and agent.sandbox == "bubblewrap"
    has_cost(it, agent.id, 2)
    code, _, err = verb("say", agent.id, "more")
    assert code == 4 and "ended" in err


def ends(it: Instance) -> list[AuditRow]:
    return [row for row in it.api.audit().rows if row.kind == "agent.end"]


def test_one_that_is_asked_to_end_finishes_its_turn_and_is_ended_once_the_guard_saw_nobody_of_it(it: Instance, verb: Verb) -> None:
    code, out, _ = verb("run", "--agent", "claude-code", "--", "ENDTASK please")
    assert code == 0
    agent_id = out.strip()
    until(lambda: any((a.word, a.turn) == ("ENDTASK", 1) for a in MODEL[0].asked), words="its model is asked in the middle of its turn")
    it.api.freeze(agent_id)
    it.state_becomes(agent_id, "frozen")
    code, _, err = verb("finish", agent_id)
    assert code == 4 and "frozen" in err
    it.api.thaw(agent_id)
    it.state_becomes(agent_id, "running", "waiting")
    code, out, _ = verb("finish", agent_id, "--within", "0")
    assert code == 5 and "still active: still runs" in out and f"watchfloor kill {agent_id}" in out and "process" in out
    code, _, err = verb("say", agent_id, "one more thing")
    assert code == 4 and "no more comes to it" in err
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(verb, "finish", agent_id, "--reason", "enough", "--within", "120")
        until(lambda: any("enough" in row.what for row in ends(it)), words="it is asked while its turn is under way")
        asked_to_end.set()
        code, out, err = asked.result()
    assert code == 0 and "no process of it is left" in out, out + err
    it.state_becomes(agent_id, "ended")
    assert any("turn over: I am through." in line for line in told(it, agent_id)), "its turn was not broken off"
    code, _, err = verb("finish", agent_id)
    assert code == 4 and "it is ended" in err
    until(lambda: [row.verdict for row in ends(it)].count("deny") == 2, words="both refusals are on record")
    assert any("enough" in row.what for row in ends(it)) and any("no process of it is left" in row.what for row in ends(it))


def test_codex_is_heard_told_interrupted_and_charged(it: Instance, verb: Verb) -> None:
    assert codex()
    held.clear()
    code, out, err = verb("run", "--agent", "codex", "--", "CODEXTASK please")
    assert code == 0 and "no limit" in err
    agent_id = out.strip()
    text = "\n".join(heard(it, agent_id, "turn over: completed"))
    assert "assistant: Done." in text and "/.watchfloor/codex" in text and "session: codex 0." in text
    has_cost(it, agent_id, 2, (12 * 1.25 + 4096 * 0.125 + 77 * 10) / 1e6)
    assert verb("say", agent_id, "think long")[0] == 0
    until(lambda: any((a.word, a.turn) == ("CODEXTASK", 2) for a in MODEL[0].asked), words="its model is asked")
    until(lambda: verb("interrupt", agent_id)[0] == 0, words="its turn has begun, by its own word")
    heard(it, agent_id, "turn broken off: interrupted")
    code, out, err = verb("finish", agent_id, "--within", "120")
    assert code == 0 and "no process of it is left" in out, out + err
    it.state_becomes(agent_id, "ended", "failed")


def test_a_batch_starts_all_or_says_which_item_is_wrong_and_starts_none(it: Instance, verb: Verb, tmp_path: Path) -> None:
    before = len(it.api.fleet().agents)
    file = tmp_path / "batch.jsonl"
    good = {"agent": "claude-code", "prompt": "ONCETASK one", "once": True}
    file.write_text(json.dumps(good) + "\n" + json.dumps(good | {"limits": {"cost": -1}}) + "\n")
    code, out, err = verb("run", "--batch", str(file))
    assert (code, out) == (2, "") and "Item 2" in err and len(it.api.fleet().agents) == before
    file.write_text("- {agent: claude-code, prompt: ONCETASK one, once: true, limits: {cost: 1}}\n- {prompt: 'ONCETASK two', once: true}\n")
    code, out, err = verb("run", "--batch", str(file), "--agent", "claude-code", "--dry-run", "--network", "NONE")
    assert code == 0 and "it cannot answer" in out and "no limit" in out and "1.00 USD" in out and len(it.api.fleet().agents) == before
    code, out, err = verb("run", "--batch", str(file), "--agent", "claude-code", "--json")
    started = [item["id"] for item in json.loads(out)["items"]]
    assert code == 0 and len(started) == 2
    for agent_id in started:
        it.state_becomes(agent_id, "ended")


def test_while_killed_nobody_is_told_anything(it: Instance, verb: Verb) -> None:
    item = ProgramItem(agent="claude-code", prompt="ONCETASK again")
    agent_id = it.api.start_programs(ProgramsBody(items=[item])).items[0].id
    it.api.activate("the test")
    with pytest.raises(Killed):
        it.api.say(agent_id, "hello")
    with pytest.raises(Killed):
        it.api.interrupt(agent_id)
    assert verb("say", agent_id, "hello")[0] == 4
    with pytest.raises(Killed):
        it.api.start_programs(ProgramsBody(items=[item]))
    it.api.rearm("the test goes on")
    with pytest.raises(Denied, match="killed"):
        it.api.say(agent_id, "hello")
    again = it.api.again(agent_id).id
    heard(it, again, "turn over: That was all.")
    it.api.kill(again)


def test_one_that_floods_is_frozen_and_one_that_hears_nothing_is_said_to_and_both_are_proven_gone(run: Verb) -> None:
    with room() as folder:
        settings(folder, **{"programs.claude_code": str(HOSTILE), "programs.output_max_mib": 8})
        with Instance(folder) as it:
            items = [ProgramItem(agent="claude-code", prompt=what, sandbox="bubblewrap") for what in ("flood", "deaf", "deaf")]
            flood, deaf, stays = (one.id for one in it.api.start_programs(ProgramsBody(items=items)).items)
            it.state_becomes(flood, "frozen")
            until(lambda: any("has reached 8 MiB" in notice for notice in it.api.status().notices))
            code, _, err = run(it, "say", flood, "stop it")
            assert code == 4 and "frozen" in err
            heard(it, deaf, "lines were too long")
            code, out, _ = run(it, "finish", stays, "--within", "1")
            assert code == 5 and "still runs: " in out and "nothing was killed" in out and it.agent(stays).state in ("running", "waiting")
            with pytest.raises(Conflict, match="does not read"):
                for _ in range(50):
                    it.api.say(deaf, "x" * 60_000)
            receipt = it.api.activate("the test")
            assert receipt.verified_zero and {t.agent_id for t in receipt.targets} >= {flood, deaf, stays}


@contextmanager
def allowlisted(folder: Path, *options: str) -> Iterator[Instance]:
    """An instance whose programs find their model behind Envoy alone, as ``model.test`` in another network."""
    state = Path(tempfile.mkdtemp())
    state.chmod(0o711)
    world = World(folder)
    try:
        with ModelServer(*SCENES, host="10.99.0.2", netns=world.netns) as inner, pytest.MonkeyPatch.context() as patch:
            patch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-of-the-test")
            patch.setenv("ANTHROPIC_BASE_URL", f"http://model.test:{inner.port}")
            settings(state, **{"egress.netns": str(world.netns), "egress.hosts": {"model.test": ["10.99.0.2"]}})
            with Instance(state, *options, envoy=True) as it:
                until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
                own = {"host": "model.test", "port": inner.port, "private_networks": ["10.99.0.0/24"]}
                it.api.add_entry(AllowlistEntryBody.read({"reason": "tests", "owner": "tests", **own}))
                yield it
                until(lambda: it.api.egress().egress, words="a request is told of once it is over")
                assert {(e.host, e.allowed) for e in it.api.egress().egress} == {(f"model.test:{inner.port}", True)}
            inner.check()
    finally:
        world.stop()
        shutil.rmtree(state)


@pytest.mark.envoy
def test_behind_the_allowlist_it_reaches_its_model_and_asks_nobody_else(tmp_path: Path, run: Verb) -> None:
    with allowlisted(tmp_path) as it:
        item = ProgramItem(agent="claude-code", prompt="ONCETASK go", once=True)
        (one,) = it.api.start_programs(ProgramsBody(items=[item])).items
        assert (one.control_level, one.network_mode, one.network_enforced) == ("contained", "PROXIED", True), "without being asked"
        assert any("model.test" in line.words for line in one.reach) and not [line for line in one.reach if line.what == "sandbox"]
        assert it.agent(one.id).profile_note == ""
        it.state_becomes(one.id, "ended", "failed")
        it.says(one.id, "That was all.")
        until(lambda: it.api.egress(agent_id=one.id).egress, words="a request is told of once it is over")
        code, out, err = run(it, "network", "requests", one.id)
        assert code == 0 and "model.test:" in out and "entry e1" in out, err
        code, out, _ = run(it, "network", "requests", one.id, "--blocked")
        assert code == 0 and out.startswith(f"No refused request of {one.id} is among the newest ")
        assert run(it, "network", "requests", "a-00000000")[0] == 3, "and none of one that there is not"


@pytest.mark.envoy
@pytest.mark.engine
@pytest.mark.long
def test_in_a_container_it_is_heard_and_told_as_well(tmp_path: Path, engine_socket: Path) -> None:
    with allowlisted(tmp_path, "--engine-socket", str(engine_socket)) as it:
        turned.clear()
        item = ProgramItem(agent="claude-code", prompt="TALKTASK go", sandbox="docker", network_mode="PROXIED")
        (one,) = it.api.start_programs(ProgramsBody(items=[item])).items
        heard(it, one.id, "turn over: Started it.")
        turned.set()
        heard(it, one.id, "turn over: It is back.")
        it.api.say(one.id, "and now?")
        heard(it, one.id, "turn over: Heard you.")
        it.api.kill(one.id)
