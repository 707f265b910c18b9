"""Somebody's own Codex with our hook: skipped in silence until its user trusts it, never called enforced before; then judged like any."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console.settings.options import save_options
from console.sources.codex import stream as codex_stream
from console.sources.codex.trust import key_of, trusted_hash, why_skipped
from tests.end2end.test_hook_sentences import hook_of
from tests.end2end.test_program_hook_sentences import decide, outputs, waiting
from tests.fakes.instance import PATIENCE_S, ROOT, Instance, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene
from tests.fakes.real_programs import codex


def runs(command: str, after: threading.Event | None = None) -> Reply:
    return Reply("", (Call("exec_command", {"cmd": command}),), after=after)


below, away = threading.Event(), threading.Event()
SCENES = (
    Scene("UNTRUSTED", runs("touch unjudged.txt"), Reply("Done.")),
    Scene(
        "TRUSTED",
        runs("cat /etc/shadow"),
        runs("ls"),
        runs("touch approved.txt"),
        runs("touch denied.txt"),
        Reply("", (Call("spawn_agent", {"message": "BELOW please"}, "multi_agent_v1"),)),
        Reply("Done.", after=below),
        forever=True,  # it is asked once more when the sub-agent has ended
    ),
    Scene("BELOW", runs("touch below.txt"), Reply("Looked.")),
)
ENDED = Scene(
    "ENDED", runs("touch ended.txt"), runs("touch killed.txt"), runs("touch past.txt"), runs("touch cut.txt"), runs("ls"), Reply("Done.")
)
NOBODY = Scene("NOBODY", runs("ls"), runs("touch unasked.txt"), Reply("Done."))
LATE = Scene("LATE", runs("touch late.txt"), runs("ls", after=away), Reply("Done."))


def verb(state_dir: Path, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "console", "install-hook", "codex", "--state-dir", str(state_dir), *words]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=False, timeout=150)


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


@contextmanager
def trusted(state_dir: Path, home: Path, *scenes: Scene, trust: bool = True) -> Iterator[ModelServer]:
    """A home with our hook, which its user has trusted, and a model."""
    for event in (below, away):
        event.clear()  # the sentence before has set them at its end
    (home / ".codex").mkdir()
    assert verb(state_dir, home, "--yes").returncode == 0
    if trust:
        give_trust(home)
    try:
        with ModelServer(*scenes) as model:
            yield model
        model.check()
    finally:
        for event in (below, away):
            event.set()


@contextmanager
def session(home: Path, model: ModelServer, prompt: str) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody's Codex, ended with the test."""
    made = start_codex(home, model.url, prompt)
    try:
        yield made
    finally:
        if made.poll() is None:
            made.kill()
            made.wait()


@contextmanager
def strict_instance(state_dir: Path, home: Path) -> Iterator[Instance]:
    """One that asks before Codex writes anything."""
    with Instance(state_dir, "--discover-root", str(home)) as it:
        it.choose_profile("strict", "codex")
        yield it


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_the_real_codex_under_the_rules(state_dir: Path, tmp_path: Path) -> None:
    project = tmp_path / "proj"
    with trusted(state_dir, tmp_path, *SCENES, trust=False) as model, Instance(state_dir, "--discover-root", str(tmp_path)) as it:
        it.choose_profile("strict", "codex")
        assert start_codex(tmp_path, model.url, "UNTRUSTED please").wait(PATIENCE_S) == 0
        assert (project / "unjudged.txt").exists() and it.api.hooks().programs == []  # it asked nobody, and we do not pretend
        file = tmp_path / ".codex" / "hooks.json"
        assert "has not trusted it" in why_skipped(json.loads(file.read_text()), file)
        give_trust(tmp_path)
        assert why_skipped(json.loads(file.read_text()), file) == ""
        judged(it, tmp_path, model)
    assert not (project / "denied.txt").exists() and not (project / "below.txt").exists()


def judged(it: Instance, home: Path, model: ModelServer) -> None:
    """One session of a Codex whose hook is trusted."""
    project = home / "proj"
    with session(home, model, "TRUSTED please") as codex:
        # deny and allow: a rule says so, and the model is told which.
        approved = waiting(it, "touch approved.txt")
        said = outputs(model, "TRUSTED")
        assert "Watchfloor: file(read:/etc/shadow)" in said[0] and "Watchfloor" not in said[1]

        # ask: it waits, nothing happens, then it happens once, or not.
        assert not (project / "approved.txt").exists() and it.agent(approved.agent_id).pid == codex.pid
        assert it.api.agent(approved.agent_id).hook.startswith("enforced: ")
        decide(it, approved, "approve")
        denied = waiting(it, "touch denied.txt")
        assert (project / "approved.txt").exists()
        decide(it, denied, "deny", "leave it")

        # what a sub-agent asks is the sub-agent's.
        asked = waiting(it, "touch below.txt")
        assert asked.agent_id != approved.agent_id and it.agent(asked.agent_id).parent_id == approved.agent_id
        decide(it, asked, "deny", "not you")
        until(lambda: outputs(model, "BELOW"), words="the sub-agent was told")
        below.set()
        assert codex.wait(PATIENCE_S) == 0
        assert "not you" in outputs(model, "BELOW")[0] and "leave it" in outputs(model, "TRUSTED")[3]


def test_a_hook_or_a_supervisor_that_is_ended_in_the_middle_blocks_codex(state_dir: Path, tmp_path: Path) -> None:
    project = tmp_path / "proj"
    with (
        trusted(state_dir, tmp_path, ENDED) as model,
        strict_instance(state_dir, tmp_path) as it,
        session(tmp_path, model, "ENDED please") as codex,
    ):
        row = waiting(it, "touch ended.txt")
        os.kill(until(lambda: hook_of(codex.pid)), signal.SIGTERM)
        waiting(it, "touch killed.txt")
        os.kill(until(lambda: hook_of(codex.pid)), signal.SIGKILL)

        # Codex itself goes on when the shell that runs a hook is killed. That cannot be held here: it is said.
        waiting(it, "touch past.txt")
        shell = parent_of(until(lambda: hook_of(codex.pid)))
        assert shell != codex.pid
        os.kill(shell, signal.SIGKILL)
        waiting(it, "touch cut.txt")
        assert (project / "past.txt").exists()
        until(lambda: "ended before its answer" in it.api.agent(row.agent_id).hook, words="it is said")

        it.stop(signal.SIGKILL)
        assert codex.wait(PATIENCE_S) == 0
        said = outputs(model, "ENDED")
        assert "the hook was ended" in said[0] and "no call without an allow" in said[1] and "Watchfloor: " in said[3]
        assert "no supervisor answers" in said[4]
        it.start()
    assert [path.name for path in project.iterdir()] == ["past.txt"]


def test_no_supervisor_and_nobody_who_decides_block_codex(state_dir: Path, tmp_path: Path) -> None:
    project = tmp_path / "proj"
    state_dir.mkdir(exist_ok=True)
    save_options(state_dir / "settings.json", {"approvals.ttl_s": 5})
    with trusted(state_dir, tmp_path, NOBODY, LATE) as model:
        assert start_codex(tmp_path, model.url, "NOBODY please").wait(PATIENCE_S) == 0  # none was ever started
        assert all("no supervisor answers" in one for one in outputs(model, "NOBODY")) and len(outputs(model, "NOBODY")) == 2
        with strict_instance(state_dir, tmp_path) as it, session(tmp_path, model, "LATE please") as codex:
            until(lambda: outputs(model, "LATE"), words="its time is over")  # and it asks no more until ``away``
            assert "not answered within 5 s" in outputs(model, "LATE")[0] and it.api.approvals().waiting == []
            it.stop()
            away.set()
            assert codex.wait(PATIENCE_S) == 0 and "no supervisor answers" in outputs(model, "LATE")[1]
            it.start()
    assert not list(project.iterdir())
