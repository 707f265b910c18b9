"""Sentences about the webhook, on a real supervisor and guard: an independent library verifies what a receiver got."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from console.api.alerts import WebhookBody
from tests.end2end.conftest import Say
from tests.fakes.instance import ROOT, Instance, free_port, until
from tests.fakes.standing import short_folder, standing_instance
from tests.fakes.webhook_receiver import Receiver, raw_receiver, receiving

HOSTILE = 'x"}\r\nwebhook-id: forged\r\n\r\n<b>\x1b]0;owned\x07\u202e{{7*7}}'
ASKS = "agent.permission('launch_rocket', '\\x1b[2J<img src=x>')\ntime.sleep(300)"
SPENDS = "agent.usage(tokens=500, cost_usd=0.25)\ntime.sleep(300)"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with standing_instance("--discover-root", str(tmp_path_factory.mktemp("home"))) as instance:
        yield instance


@pytest.fixture
def receiver(it: Instance) -> Iterator[Receiver]:
    with receiving() as made:
        yield made
        it.api.remove_webhook()


def secret_of(it: Instance, receiver: Receiver) -> str:
    view = it.api.set_webhook(WebhookBody(url=receiver.url))
    assert view.secret.startswith("whsec_")
    return view.secret


def alert(receiver: Receiver, secret: str, event: str) -> dict[str, Any]:
    """The one alert of this kind; fails when there are two."""
    (found,) = until(lambda: [one for one in receiver.alerts(secret) if one["event"] == event], words=event)
    assert found["schema_version"] == 1 and found["time"].endswith("Z") and found["host"] and len(found["instance"]) == 8
    return found


def test_set_test_status_and_remove_as_a_person_types_them(it: Instance, watchfloor: Say) -> None:
    assert watchfloor("webhook", "status")[:2] == (0, "no webhook is set: watchfloor webhook set URL\n")
    assert watchfloor("webhook", "test")[0] == 3 and watchfloor("webhook", "remove")[0] == 3
    assert watchfloor("webhook", "set", "http://example.com/")[0] == 2
    with receiving() as receiver:
        code, said, _ = watchfloor("webhook", "set", receiver.url)
        assert code == 0 and f"http://127.0.0.1:{receiver.port}/[hidden]" in said and "hidden-token" not in said
        secret = next(word for word in said.split() if word.startswith("whsec_"))
        code, said, _ = watchfloor("webhook", "test")
        assert code == 0 and "delivered, answered 204" in said
        assert receiver.events(secret) == ["test"]
        for words in (("webhook", "status"), ("status",), ("webhook", "status", "--json"), ("status", "--json")):
            _, said, told = watchfloor(*words)
            assert "/[hidden]" in said and secret not in said + told and "hidden-token" not in said + told
        receiver.status = 500
        code, said, _ = watchfloor("webhook", "test")
        assert code == 1 and "500" in said
        assert watchfloor("webhook", "remove")[0] == 0
    assert watchfloor("webhook", "status")[0] == 0
    kinds = [row.kind for row in it.api.audit(limit=50).rows]
    assert "webhook.set" in kinds and "webhook.removed" in kinds
    kept = b"".join(path.read_bytes() for path in it.state_dir.rglob("*") if path.is_file() and path.name != "secrets.json")
    assert secret.encode() not in kept and b"hidden-token" not in kept and b"a-hidden-path" not in kept


def test_a_secret_of_the_operators_own_is_read_from_a_file_and_not_shown(it: Instance, watchfloor: Say, tmp_path: Path) -> None:
    secret = "whsec_" + "QUJD" * 10
    file = tmp_path / "secret"
    file.write_text(f"{secret}\n")
    file.chmod(0o600)
    with receiving() as receiver:
        code, said, told = watchfloor("webhook", "set", receiver.url, "--secret-file", str(file))
        assert code == 0 and secret not in said + told
        assert watchfloor("webhook", "test")[0] == 0 and receiver.events(secret) == ["test"]
        it.api.remove_webhook()


def test_an_approval_and_a_limit_arrive_with_hostile_names_as_plain_data(it: Instance, receiver: Receiver) -> None:
    secret = secret_of(it, receiver)
    agent = it.python(ASKS, name=HOSTILE)
    found = alert(receiver, secret, "approval_waiting")
    facts = found["facts"]
    assert facts["agent_id"] == agent and facts["name"] == HOSTILE and facts["tool"] == "launch_rocket"
    assert facts["approval_id"] == it.api.approvals().waiting[0].id and "\x1b[2J<img src=x>" in facts["argument"]
    spender = it.python(SPENDS, name=HOSTILE, limits={"tokens": 400})
    found = alert(receiver, secret, "limit_reached")
    assert found["facts"]["agents"] == [{"agent_id": spender, "name": HOSTILE}] and found["facts"]["limit"] == "tokens"
    for headers, body in receiver.got:
        assert body.isascii() and all(32 <= byte < 127 for byte in body)
        assert all("forged" not in value and "owned" not in value for value in headers.values())
        assert headers["webhook-id"] == json.loads(body)["id"]


def test_readiness_lost_is_one_alert(it: Instance, receiver: Receiver) -> None:
    secret = secret_of(it, receiver)
    until(lambda: (it.api.status().armed or it).state == "armed", words="ready")  # type: ignore[union-attr]
    guard = it.living_guard()
    os.kill(guard, signal.SIGSTOP)
    try:
        found = alert(receiver, secret, "readiness_lost")
    finally:
        os.kill(guard, signal.SIGCONT)
    assert found["facts"]["why"] and all(isinstance(words, str) for words in found["facts"]["why"])
    until(lambda: (it.api.status().armed or it).state == "armed", words="ready again")  # type: ignore[union-attr]
    assert receiver.events(secret).count("readiness_lost") == 1


def test_an_agent_reaches_neither_the_webhook_nor_its_secret(it: Instance, receiver: Receiver) -> None:
    secret = secret_of(it, receiver)
    knock = (
        "import socket\n"
        "def knock(path, request):\n"
        "    with socket.socket(socket.AF_UNIX) as s:\n"
        "        s.settimeout(60)\n"
        "        try: s.connect(path)\n"
        "        except OSError as error: return type(error).__name__\n"
        "        s.sendall(request + b' HTTP/1.1\\r\\nHost: localhost\\r\\ncontent-length: 2\\r\\n\\r\\n{}')\n"
        "        return s.recv(200).split(b' ')[1].decode()\n"
        f"operators = {str(it.places.operator_sock)!r}\n"
        "asked = [b'GET /api/webhook', b'POST /api/webhook', b'POST /api/webhook/test', b'POST /api/webhook/remove']\n"
        "print('knocked', *[knock(p, r) for p in (agent.path, operators) for r in asked], 'done', flush=True)\n"
        "time.sleep(300)"
    )
    answers = it.says(it.python(knock), "done").split("knocked", 1)[1].split()[:8]
    assert set(answers[:4]) <= {"404", "403", "405"}, answers
    assert set(answers[4:]) <= {"403", "FileNotFoundError", "PermissionError", "ConnectionRefusedError"}, answers
    assert receiver.events(secret) == [] and it.api.webhook().url
    for path in (it.state_dir / "webhook.json", it.places.keys_dir / "secrets.json"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_what_a_dead_receiver_missed_is_delivered_after_a_restart_under_the_same_id() -> None:
    with short_folder() as folder, receiving() as first:
        port = first.port
        with Instance(folder) as it:
            secret = it.api.set_webhook(WebhookBody(url=first.url)).secret
            first.status = 503
            agent = it.python(ASKS)
            until(lambda: it.api.webhook().trouble, words="the receiver refuses it")
            view = it.api.webhook()
            assert view.waiting == 1 and view.waiting_since and time.time() - view.waiting_since < 90 and "503" in view.trouble
            assert it.api.status().alerts.webhook.waiting == 1
            assert any("The webhook takes no alerts" in line for line in it.api.status().notices)
            it.stop()
            missed = {headers["webhook-id"] for headers, _ in first.got}
            first.status = 204
            first.got.clear()
            it.start()
            found = alert(first, secret, "approval_waiting")
            assert missed == {found["id"]} and found["facts"]["agent_id"] == agent and port == first.port
            until(lambda: it.api.webhook().waiting == 0, words="nothing waits any more")
            assert not list((folder / "webhook").glob("*.json"))


def test_a_panic_is_an_alert_with_its_reason_as_plain_data() -> None:
    with short_folder() as folder, receiving() as receiver, Instance(folder) as it:
        secret = it.api.set_webhook(WebhookBody(url=receiver.url)).secret
        it.python("time.sleep(300)", name=HOSTILE)
        it.hasty.activate(HOSTILE)
        found = alert(receiver, secret, "panic")
        assert found["facts"]["reason"] == HOSTILE and found["facts"]["agents_running"] == 1


def test_a_kill_waits_for_no_receiver_that_hangs() -> None:
    with short_folder() as folder, raw_receiver() as port, Instance(folder) as it:
        it.api.set_webhook(WebhookBody(url=f"http://127.0.0.1:{port}/"))
        asking = it.python(ASKS)
        until(lambda: it.api.approvals().waiting, words="an alert hangs at the receiver")
        receipt = it.hasty.activate("a test")
        assert receipt.verified_zero and it.agent(asking).state == "killed"
        assert it.api.webhook().waiting >= 1 and not it.api.webhook().delivered_at


def test_the_receiver_of_the_documents_accepts_an_alert_and_refuses_a_forged_one(it: Instance) -> None:
    page = (ROOT / "docs" / "how-to" / "alerts.md").read_text()
    port = free_port()
    code = page.split("```python\n", 1)[1].split("```", 1)[0].replace("8787", str(port))
    assert len([line for line in code.splitlines() if line.strip()]) < 16
    secret = it.api.set_webhook(WebhookBody(url=f"http://127.0.0.1:{port}/")).secret
    environment = os.environ | {"WEBHOOK_SECRET": secret}
    shown = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=shown, stderr=subprocess.DEVNULL, text=True) as receiver:
        try:
            assert receiver.stdout is not None
            until(lambda: it.api.test_webhook().delivered, words="it listens")
            assert '"event":"test"' in receiver.stdout.readline()
            forged = {"webhook-id": "panic-1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
            assert httpx.post(f"http://127.0.0.1:{port}/", content=b"{}", headers=forged, trust_env=False).status_code == 401
            assert "refused" in receiver.stdout.readline()
        finally:
            receiver.kill()
            it.api.remove_webhook()
