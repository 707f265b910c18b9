"""A real Codex that is started to be talked to: its hook is trusted, whatever its workspace says, and each call is judged first."""

from __future__ import annotations

from tests.end2end.test_program_hook_sentences import decide, hostile_workspace, outputs, start, waiting
from tests.end2end.test_program_sentences import instance_with, told
from tests.fakes.instance import until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene

CONTEXT = "ctx-talked-to"


def runs(command: str) -> Reply:
    return Reply("", (Call("exec_command", {"cmd": command}),))


SCENE = Scene(
    "TALKCODEX",
    runs("cat /etc/shadow"),
    runs("touch approved.txt"),
    runs("touch denied.txt"),
    Reply("That was it."),
    runs("touch later.txt"),
    Reply("Heard you."),
)


def test_a_codex_that_is_talked_to_is_judged_before_each_call_of_each_turn() -> None:
    with ModelServer(SCENE) as model, instance_with(model, **{"programs.hooks": True}) as it:
        it.choose_profile("strict", "codex")
        workspace = it.state_dir / "workspaces" / CONTEXT
        hostile_workspace(workspace)
        agent_id = start(it, agent="codex", prompt="TALKCODEX please", context_id=CONTEXT, sandbox="none")
        row = waiting(it, "touch approved.txt")
        assert "Watchfloor: file(read:/etc/shadow)" in outputs(model, "TALKCODEX")[0]
        assert row.agent_id == agent_id and not (workspace / "approved.txt").exists()
        decide(it, row, "approve")
        denied = waiting(it, "touch denied.txt")
        assert (workspace / "approved.txt").exists() and "enforced: " in it.api.agent(agent_id).hook
        decide(it, denied, "deny", "leave it")
        until(lambda: any("assistant: That was it." in line for line in told(it, agent_id)), words="its first turn is over")
        until(lambda: any("turn over" in line for line in told(it, agent_id)))
        it.api.say(agent_id, "and once more")
        decide(it, waiting(it, "touch later.txt"), "deny", "not later either")
        until(lambda: any("assistant: Heard you." in line for line in told(it, agent_id)), words="its second turn is over")
        said = outputs(model, "TALKCODEX")
        assert "leave it" in said[2] and "not later either" in said[3]
        assert sorted(path.name for path in workspace.iterdir() if path.suffix == ".txt") == ["approved.txt"]
        assert not (workspace / "planted").exists()
        it.api.kill(agent_id, reason="the test")
