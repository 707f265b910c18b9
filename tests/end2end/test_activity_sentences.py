"""What an agent did can be read here, live, and after the program swept its own files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.agents.activity import ActivityRow
from tests.fakes.instance import Instance, until

TREE = Path(__file__).parents[1] / "data" / "claude-code" / "projects-tree"
KEY = "sk-live-0123456789abcdef"


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    (folder / ".claude" / "sessions").mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


def rows(it: Instance, agent_id: str, **asked: str) -> list[ActivityRow]:
    return it.api.activity(agent_id, limit=500, **asked).rows  # type: ignore[arg-type]


def test_a_sessions_transcript_is_swept_and_the_feed_still_shows_all_of_it(state_dir: Path, home: Path) -> None:
    main = next(TREE.rglob("ca*.jsonl"))
    projects = home / ".claude" / "projects" / "-home-dev-proj"
    shutil.copytree(main.parent, projects)
    (note,) = projects.rglob("*.meta.json")
    note.write_text(json.dumps(json.loads(note.read_text()) | {"finished": False}))
    program = home / "claude"
    shutil.copy("/bin/sleep", program)
    session = subprocess.Popen([str(program), "300"])
    try:
        ticks = Path(f"/proc/{session.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        body = {"pid": session.pid, "sessionId": main.stem, "cwd": "/home/dev/proj", "procStart": ticks, "status": "busy"}
        (home / ".claude" / "sessions" / f"{session.pid}.json").write_text(json.dumps(body))
        with Instance(state_dir, "--discover-root", str(home)) as it:
            root, sub = until(lambda: sorted(found, key=lambda a: a.depth) if len(found := it.api.fleet().agents) == 2 else [])
            until(lambda: [r for r in rows(it, root.id) if r.text == "All done."] and rows(it, sub.id))
            seen = rows(it, root.id)
            call, verdict, result = (r for r in seen if r.pair == "toolu_fake0001" and r.who != "the program")
            assert (call.tool, verdict.verdict, result.text) == ("Bash", "allow", "1:TODO: x")
            assert "command: grep -n TODO a.txt" in call.text
            assert [r.ref for r in seen if r.kind == "file"] == ["/home/dev/proj/out.txt"]
            assert sub.id in [r.ref for r in seen if r.kind == "spawn"], "its child is a link into the tree"
            until(lambda: round(sum(r.cost_usd or 0 for i in (root.id, sub.id) for r in rows(it, i)), 7) == 0.0706986)
            assert [r.text for r in rows(it, sub.id) if r.kind == "message"][-1] == "Subagent done: 1 file."

            with (projects / main.name).open("a") as file:  # live, hostile
                for text in ("\x1b[31m<b>now\u202e</b>", "x" * 100_000):
                    file.write(json.dumps({"type": "user", "sessionId": "another", "message": {"content": text}}) + "\n")
            until(lambda: rows(it, root.id, query="<B>NOW"))
            [long] = until(lambda: [r for r in rows(it, root.id) if r.left_out])
            assert long.left_out == 100_000 - long.size and len(it.api.activity_entry(root.id, long.seq).row.text) == long.size

            before = [r.as_data() for r in rows(it, root.id)]
            shutil.rmtree(home / ".claude" / "projects")
            until(lambda: "file is gone" in it.api.activity(root.id).words)
            assert [r.as_data() for r in rows(it, root.id)] == before
            it.stop()
            it.start()
            assert [r.as_data() for r in rows(it, root.id)][: len(before)] == before, "kept over a restart, and nothing twice"
    finally:
        session.kill()
        session.wait()


def test_an_agent_of_ours_has_calls_verdicts_files_children_and_the_audit_behind_them(state_dir: Path) -> None:
    state_dir.mkdir(exist_ok=True)
    code = (
        "agent.usage(cost_usd=0.25, tokens=100, action='drafts a plan')\n"
        "print('write', agent.permission('write_file', 'notes.txt')['verdict'], flush=True)\n"
        "print('other', agent.permission('write_file', '/etc/passwd')['verdict'], flush=True)\n"
        "print('child', agent.spawn(['sleep', '300']), flush=True); time.sleep(300)\n"
    )
    with Instance(state_dir) as it:
        agent = it.python(code)
        it.says(agent, "child")
        child = next(a.id for a in it.api.fleet().agents if a.parent_id == agent)
        until(lambda: [r for r in rows(it, agent) if r.kind == "spawn"] and [r for r in rows(it, agent) if r.kind == "file"])
        seen = until(lambda: (found := rows(it, agent)) and [r for r in found if r.verdict == "deny"] and found)
        [spend] = [r for r in seen if r.kind == "spend"]
        assert (spend.cost_usd, spend.tokens, spend.text) == (0.25, 100, "drafts a plan")
        write, other = (r for r in seen if r.kind == "tool_call")
        allowed = next(r for r in seen if r.kind == "verdict" and r.pair == write.pair)
        denied = next(r for r in seen if r.kind == "verdict" and r.pair == other.pair)
        assert (write.text, allowed.verdict, denied.verdict) == ("notes.txt", "allow", "deny")
        record = next(r for r in it.api.audit().rows if r.seq == allowed.audit)
        assert record.kind == "permission" and record.agent_id == agent and record.data["rollback_id"] == allowed.rollback_id
        [file] = [r for r in seen if r.kind == "file"]
        assert (file.ref, file.rollback_id) == ("notes.txt", allowed.rollback_id)
        assert [r.ref for r in seen if r.kind == "spawn"] == [child]
        it.api.freeze(agent)
        until(lambda: [r for r in rows(it, agent, query="freeze") if r.audit])
        it.api.kill(agent, tree=True)
        until(lambda: [r for r in rows(it, agent) if "proven_zero" in r.text])
        assert it.api.activity(agent).output_bytes > 0

        env = {**os.environ, "WATCHFLOOR_STATE_DIR": str(state_dir)}
        argv = [sys.executable, "-m", "console", "activity", agent, "--json", "--filter", "PASSWD", "--kind", "tool_call"]

        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        assert [row["text"] for row in json.loads(done.stdout)["rows"]] == ["/etc/passwd"]
