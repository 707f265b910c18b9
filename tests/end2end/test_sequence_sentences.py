"""Who has read a credential sends nothing out any more: not after a hundred other calls, not through a child, not after a restart."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from console.cli.main import main
from tests.fakes.instance import Instance

ASK = "v = agent.permission({tool!r}, {argument!r}); print({argument!r}, v['verdict'], v['rule'], '-', v['reason'], flush=True)\n"
READ = ASK.format(tool="read_file", argument=".env")
SEND = ASK.format(tool="http_request", argument="https://out.example/")
STAY = "time.sleep(300)"


def test_whoever_read_a_credential_reaches_no_host_however_much_it_does_between(it: Instance) -> None:
    padding = "".join(f"agent.permission('read_file', 'a{number}.txt')\n" for number in range(50))
    agent = it.python(SEND + READ + padding + SEND + ASK.format(tool="shell", argument="curl https://out.example/") + STAY)
    assert "allow" in it.says(agent, "https://out.example/ allow"), "before it read one it may"
    told = it.says(agent, "https://out.example/ deny")
    assert "sequence credential-then-network" in told and f"{agent} reads a credential" in told and "read_file .env" in told
    it.says(agent, "curl https://out.example/ deny sequence")
    assert any("credential-then-network" in words for words in it.agent(agent).taints)
    assert [row.kind for row in it.api.audit(q=agent).rows].count("sequence.step") == 1
    assert it.api.verify_audit().whole


def test_children_companions_and_whoever_comes_after_are_one_and_strangers_are_free(it: Instance) -> None:
    agent = it.python(READ + STAY)
    it.says(agent, ".env allow")
    session = it.agent(agent).session
    below = it.python(SEND + STAY, parent_id=agent, context_id=f"{session}-b")
    companion = it.python(ASK.format(tool="read_file", argument="handed-over.txt") + SEND + STAY, context_id=session)
    stranger = it.python(SEND + STAY)
    for one in (below, companion):
        assert f"{agent} reads a credential" in it.says(one, "https://out.example/ deny")
    it.says(stranger, "https://out.example/ allow")
    assert not it.agent(stranger).taints
    it.api.kill(agent, reason="respawn")
    after = it.python(SEND + STAY, context_id=session)
    it.says(after, "https://out.example/ deny sequence")


def test_a_supervisor_that_crashes_forgets_nothing(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        first = it.python(READ + "while not os.path.exists('go'): time.sleep(0.1)\n" + SEND + STAY)
        it.says(first, ".env allow")
        session = it.agent(first).session
        gone = it.python(READ, context_id="gone")
        it.says(gone, ".env allow")
        it.stop(signal.SIGKILL)
        it.start()
        (it.places.workspaces_dir / session / "go").touch()
        it.says(first, "https://out.example/ deny sequence")
        assert it.agent(first).taints
        it.says(it.python(SEND + STAY, context_id="gone"), "https://out.example/ deny sequence")


def test_no_approval_lets_it_through_and_nobody_is_asked_for_one(it: Instance) -> None:
    agent = it.python(READ + ASK.format(tool="send_email", argument="to boss@out.example") + STAY)
    it.says(agent, "to boss@out.example deny sequence")
    assert not [row for row in it.api.approvals().waiting if row.agent_id == agent]


def test_a_pattern_of_ones_own_holds_from_the_next_call_on_and_a_broken_file_changes_nothing(
    it: Instance, capsys: pytest.CaptureFixture[str]
) -> None:
    file = it.state_dir / "sequences.yaml"
    steps = "[{name: reads it, any: [{action: read, paths: ['**/export.csv']}]}, {name: writes, any: [{action: write}]}]"
    file.write_text(f"watchfloor_sequences: 1\npatterns: [{{name: no-write-after-export, why: exports stay, steps: {steps}}}]\n")
    read, write = ASK.format(tool="read_file", argument="export.csv"), ASK.format(tool="write_file", argument="out.txt")
    it.says(it.python(read + write + STAY), "out.txt deny sequence no-write-after-export")
    assert main(["policy", "sequences", "--state-dir", str(it.state_dir)]) == 0
    assert "no-write-after-export" in capsys.readouterr().out
    file.write_text("watchfloor_sequences: 1\npatterns: [&a [*a]]\n")
    assert main(["policy", "sequences", "--state-dir", str(it.state_dir)]) == 1
    assert "anchors" in capsys.readouterr().out
    it.says(it.python(read + write + STAY), "out.txt deny sequence no-write-after-export")
    file.write_text("watchfloor_sequences: 1\n")
    it.says(it.python(read + write + STAY), "out.txt allow")
