"""Somebody's own Codex with our hook: skipped in silence until its user trusts it, never called enforced before; then judged like any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from console.sources import codex_stream
from console.supervisor.codex_trust import key_of, trusted_hash, why_skipped
from tests.end2end.test_program_hook_sentences import decide, outputs, waiting
from tests.fakes.instance import ROOT, Instance
from tests.fakes.model_server import Call, ModelServer, Reply, Scene
from tests.fakes.real_programs import codex


def runs(command: str) -> Reply:
    return Reply("", (Call("exec_command", {"cmd": command}),))


SCENES = (
    Scene("UNTRUSTED", runs("touch unjudged.txt"), Reply("Done.")),
    Scene("TRUSTED", runs("cat /etc/shadow"), runs("touch approved.txt"), runs("touch denied.txt"), Reply("Done.")),
)


def verb(state_dir: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "console", "install-hook", "codex", "--state-dir", str(state_dir), *words]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False, timeout=60)


def start_codex(home: Path, url: str, prompt: str) -> subprocess.Popen[bytes]:
    """Codex as somebody starts it, without Watchfloor. The caller waits for it."""
    project = home / "proj"
    project.mkdir(exist_ok=True)
    words = (*codex_stream.WORDS_ONCE, *codex_stream.HELD_BY_SANDBOX, *codex_stream.QUIET, *codex_stream.provider(f"{url}/v1"))
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-of-the-test", "TMPDIR": str(home)}
    with (home / "said").open("ab") as said:
        argv = [str(codex()), *words, "-c", "model=gpt-5.1-codex", prompt]
        return subprocess.Popen(argv, cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)


def give_trust(home: Path) -> None:
    """As Codex writes it when its user approves the hook that it shows."""
    file = home / ".codex" / "hooks.json"
    group = json.loads(file.read_text())["hooks"]["PreToolUse"][0]
    with (file.parent / "config.toml").open("a") as opened:
        opened.write(f'\n[hooks.state.{json.dumps(key_of(file, 0, 0))}]\ntrusted_hash = "{trusted_hash(group, group["hooks"][0])}"\n')


def test_the_real_codex_under_the_rules(state_dir: Path, tmp_path: Path) -> None:
    home, project = tmp_path, tmp_path / "proj"
    (home / ".codex").mkdir()
    assert verb(state_dir, home, "--yes").returncode == 0
    with ModelServer(*SCENES) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        assert start_codex(home, model.url, "UNTRUSTED please").wait(60) == 0
        assert (project / "unjudged.txt").exists() and it.api.hooks().programs == []  # it asked nobody, and we do not pretend
        file = home / ".codex" / "hooks.json"
        assert "has not trusted it" in why_skipped(json.loads(file.read_text()), file)

        give_trust(home)
        assert why_skipped(json.loads(file.read_text()), file) == ""
        session = start_codex(home, model.url, "TRUSTED please")
        try:
            approved = waiting(it, "touch approved.txt")
            assert "Watchfloor: file(read:/etc/shadow)" in outputs(model, "TRUSTED")[0]
            assert not (project / "approved.txt").exists() and it.agent(approved.agent_id).pid == session.pid
            assert it.api.agent(approved.agent_id).hook.startswith("enforced: ")
            decide(it, approved, "approve")
            denied = waiting(it, "touch denied.txt")
            assert (project / "approved.txt").exists()
            decide(it, denied, "deny", "leave it")
            assert session.wait(60) == 0
        finally:
            if session.poll() is None:
                session.kill()
                session.wait()
        assert "leave it" in outputs(model, "TRUSTED")[2] and not (project / "denied.txt").exists()
    model.check()
