"""What programs tell of themselves by OpenTelemetry: one agent stays one row, money counts once, and nobody who lies is believed."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.messages import AgentView, SourceView
from console.settings.options import save_options
from console.sources.otlp.book import TelemetryBook
from console.sources.otlp.http import Receiver
from tests.end2end.test_codex_hook_sentences import start_codex
from tests.fakes.instance import ROOT, Instance, free_port, until
from tests.fakes.model_server import Call, ModelServer, Reply, Scene
from tests.fakes.real_programs import start_claude

ANSWER_USD = 0.0100998
CODEX = ROOT / "tests" / "data" / "codex" / "otlp-http-json.jsonl"
TOKEN = "a-token-of-the-test"
last = threading.Event()
SCENES = (
    Scene(
        "MAINTASK",
        Reply("", (Call("Agent", {"description": "count files", "prompt": "SUBTASK", "subagent_type": "general-purpose"}),)),
        Reply("", (Call("Bash", {"command": "ls", "description": "work"}),)),
        Reply("All done.", after=last),
        Reply("Still done."),
    ),
    Scene("SUBTASK", Reply("", (Call("Bash", {"command": "ls", "description": "count"}),)), Reply("None.", after=last)),
)


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    (folder / ".claude").mkdir()
    yield folder
    shutil.rmtree(folder)


def switch_on(state_dir: Path, port: int, token: str = "") -> None:
    digest = hashlib.sha256(token.encode()).hexdigest() if token else ""
    save_options(state_dir / "settings.json", {"otlp.port": port, "otlp.token_sha256": digest})


def settings_of_the_docs(port: int, token: str) -> dict[str, str]:
    """The block that docs/how-to/telemetry.md shows, with a port of ours and shorter pauses."""
    block = (ROOT / "docs" / "how-to" / "telemetry.md").read_text().split("```json", 1)[1].split("```", 1)[0]
    env: dict[str, str] = json.loads(block)["env"]
    env["OTEL_EXPORTER_OTLP_ENDPOINT"] = env["OTEL_EXPORTER_OTLP_ENDPOINT"].replace("4318", str(port))
    env["OTEL_EXPORTER_OTLP_HEADERS"] = env["OTEL_EXPORTER_OTLP_HEADERS"].replace("TOKEN", token)
    return env | {"OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_LOGS_EXPORT_INTERVAL": "500"}


def send(port: int, path: str, body: object, token: str = TOKEN) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def event(session: str, name: str, **said: object) -> dict[str, object]:
    """One event of Claude Code's, as it tells it."""
    kinds: dict[type, str] = {str: "stringValue", int: "intValue", float: "doubleValue"}
    said = {"session.id": session, "event.name": name, **said}
    attributes = [{"key": key, "value": {kinds[type(value)]: value}} for key, value in said.items()]
    return {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [{"logRecords": [{"attributes": attributes}]}]}]}


def seen(it: Instance) -> list[AgentView]:
    return sorted((a for a in it.api.fleet().agents if a.ended_at is None and a.seen_by not in ([], ["otlp"])), key=lambda a: a.depth)


def otlp(it: Instance) -> SourceView:
    return next(one for one in it.api.status().sources if one.source == "otlp")


def test_the_real_claude_code_seen_by_process_transcript_hook_and_telemetry_is_one_row_and_what_only_telemetry_tells_is_another(
    state_dir: Path, home: Path
) -> None:
    port = free_port()
    switch_on(state_dir, port, TOKEN)
    (home / ".claude" / "settings.json").write_text(json.dumps({"env": settings_of_the_docs(port, TOKEN)}))
    argv = [sys.executable, "-m", "console", "install-hook", "claude-code", "--yes", "--state-dir", str(state_dir)]
    subprocess.run(argv, cwd=ROOT, env={**os.environ, "HOME": str(home)}, check=True, timeout=150, stdout=subprocess.DEVNULL)
    session: subprocess.Popen[bytes] | None = None
    with ModelServer(*SCENES) as model, Instance(state_dir, "--discover-root", str(home)) as it:
        try:
            until(lambda: otlp(it).available, words="it listens")
            for line in CODEX.read_text().splitlines()[:4]:
                told = json.loads(line)
                assert send(port, told["path"], told["body"]) == 200
                assert send(port, told["path"], told["body"]) == 200  # an exporter that did not hear the answer says it again
            session = start_claude(home, model.url, "MAINTASK please", "--permission-mode", "bypassPermissions")
            one_row_for_all(it, port, session)
            only_telemetry_tells(it)
        finally:
            last.set()
            if session is not None and session.poll() is None:
                os.killpg(session.pid, signal.SIGKILL)
                session.wait()


def one_row_for_all(it: Instance, port: int, session: subprocess.Popen[bytes]) -> None:
    names = {"claude_code", "processes", "otlp"}
    until(lambda: any(set(a.seen_by) == names for a in seen(it)), words=lambda: f"all see it, {otlp(it).reason}")
    # Told so far: by events and counters, the sub-agent's share in the session's.
    until(
        lambda: [round((a.cost_usd or 0.0) / ANSWER_USD) for a in seen(it)] == [2, 1], words="the session and its sub-agent, as they cost"
    )
    root, _ = seen(it)
    assert root.cost_usd == pytest.approx(2 * ANSWER_USD, abs=1e-6) and root.tree_usage["cost_usd"] == pytest.approx(3 * ANSWER_USD)
    assert (root.pid, root.source, root.metered, root.unlinked) == (session.pid, "claude_code", "after the fact", "")
    assert it.api.hooks().agents[root.id].calls >= 1
    # A lie about it, by somebody who has the token: nothing of the row changes, nor of any sum.
    lie = event(root.seen_session, "api_request", request_id="r", cost_usd=900.0, input_tokens=5, model="claude-lie")
    spent = it.api.fleet().spend_today_usd
    assert (send(port, "/v1/logs", lie), send(port, "/v1/logs", lie, "")) == (200, 401)
    until(lambda: "without the token" in str(it.api.audit(q="telemetry.refused")), words="the refusal is on record")
    now = it.agent(root.id)
    assert (now.cost_usd, now.model, it.api.fleet().spend_today_usd) == (root.cost_usd, root.model, spent)
    # It is killed: telemetry does not keep it, though somebody goes on to tell of it.
    os.killpg(session.pid, signal.SIGKILL)
    session.wait()
    assert send(port, "/v1/logs", lie) == 200
    assert it.state_becomes(root.id, "ended").state_reason == "no longer seen"
    until(lambda: seen(it) == [])
    assert len([a for a in it.api.fleet().agents if a.source != "otlp"]) == 2 and not [
        a for a in seen(it) if a.seen_session == root.seen_session
    ]


def only_telemetry_tells(it: Instance) -> None:
    until(
        lambda: [a for a in it.api.fleet().agents if a.seen_by == ["otlp"] and a.cost_usd], words=f"a row with its cost, {otlp(it).reason}"
    )
    (one,) = [a for a in it.api.fleet().agents if a.seen_by == ["otlp"]]
    assert (one.pid, one.container_id, one.parent_id, one.seen_by, one.seen_status) == (None, "", None, ["otlp"], "unverified")
    assert one.model == "gpt-5.1-codex" and one.cost_usd == pytest.approx(0.005684) and one.metered == "by telemetry"
    assert "no process, session file or transcript" in one.unlinked and "no limit counts it" in one.network_note
    assert it.api.fleet().spend_today_usd == pytest.approx(3 * ANSWER_USD, abs=1e-4)  # of the session that was read alone
    # It can be neither stopped nor adopted: nobody knows which process it is.
    assert "does not know for certain" in it.api.adopt_candidates(one.id).why_not


def test_the_real_codex_tells_what_it_used_with_the_settings_of_the_docs(home: Path) -> None:
    book = TelemetryBook()
    receiver = Receiver(book, 0, hashlib.sha256(TOKEN.encode()).hexdigest())
    receiver.open()
    try:
        block = (ROOT / "docs" / "how-to" / "telemetry.md").read_text().split("```toml", 1)[1].split("```", 1)[0]
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(block.replace("4318", str(receiver.port)).replace("TOKEN", TOKEN))
        with ModelServer(Scene("ONETASK", Reply("Done."))) as model:
            assert start_codex(home, model.url, "ONETASK please").wait(120) == 0
        until(
            lambda: [one for one in book.sessions() if one.usage.tokens],
            words=lambda: f"{book.untold()} {(home / 'said').read_text()[-500:]}",
        )
        (one,) = book.sessions()
        assert (one.usage.tokens, one.usage.iterations, one.model) == (12 + 4096 + 77, 1, "gpt-5.1-codex")
        assert book.refusals() == 0
    finally:
        receiver.close()
