"""A short session with a real supervisor: answers of every route, refusals of bad bodies, and what the audit log has of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from console.api.endpoints import ENDPOINTS
from console.killswitch.client.guard_client import GuardClient
from console.settings.options import save_options
from tests.fakes.instance import Instance, until
from tests.golden.normal import merged, shape, text_of, words

HEAVY = frozenset({"GET /api/events", "GET /metrics", "GET /metrics/sessions"})
"""Streams, and what is not JSON."""
BODIES: dict[str, bytes] = {
    "not JSON": b"{no",
    "not UTF-8": b'{"reason": "\xff"}',
    "a list": b"[]",
    "an unknown key": b'{"nosuch": 1}',
    "hostile words": json.dumps({"reason": "\x1b[31m\u202e\x00" * 3, "scope": "x" * 600, "action": "\x07", "id": "../../etc"}).encode(),
    "wrong types": json.dumps({k: {"a": [1e308]} for k in ("reason", "action", "scope", "agent", "argv", "on", "id", "name")}).encode(),
    "nested": b"[" * 2000 + b"]" * 2000,
}
ASK = "v = agent.permission('launch_rocket', 'now'); print('verdict', v['verdict'], flush=True)\ntime.sleep(300)"

WRITE = """
os.makedirs('output', exist_ok=True)
open('output/plan.txt', 'w').write('one')
agent.permission('write_file', 'output/plan.txt')
open('output/plan.txt', 'w').write('two')
agent.usage(iterations=1, tokens=500, tool_calls=1, cost_usd=0.02)
"""


class Wire:
    """Plain requests to operator.sock, as any program may send them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, method: str, path: str, body: bytes | dict[str, Any] | None = None) -> tuple[int, Any]:
        """Status and JSON of the answer."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        with contextlib.closing(connection):
            connection.sock.connect(str(self._path))
            data = json.dumps(body).encode() if isinstance(body, dict) else body
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())


def routes() -> list[tuple[str, str]]:
    """Method and path of each route."""
    return [(row.method, row.path) for row in sorted(ENDPOINTS, key=lambda row: (row.path, row.method))]


def refused(wire: Wire) -> dict[str, Any]:
    """What each route that changes something says to bodies that are wrong."""
    found: dict[str, Any] = {}
    for method, path in routes():
        if method == "GET" or path == "/api/shutdown":
            continue
        asked = path.replace("{verb:str}", "freeze").replace("{id}", "a-00000000")
        said: dict[str, list[str]] = {}
        for name, body in BODIES.items():
            status, answer = wire.ask(method, asked, body)
            view = f"{status} {_answer(answer)}"
            said.setdefault(view, []).append(name)
        found[f"{method} {path}"] = {", ".join(names): view for view, names in said.items()}
    others: dict[str, tuple[str, str, bytes | None]] = {
        "no such route": ("GET", "/api/nosuch", None),
        "a wrong method": ("DELETE", "/api/status", None),
        "a body too large": ("POST", "/api/kill-switch", b"x" * (256 * 1024 + 1)),
        "a hostile id": ("GET", "/api/agents/%1b%5b31m..%2f..", None),
        "no such agent": ("GET", "/api/agents/a-00000000", None),
        "a verb that is none": ("POST", "/api/agents/a-00000000/nosuch", b"{}"),
        "a hostile number": ("GET", "/api/audit?limit=-1", None),
    }
    for name, (verb, path, sent) in others.items():
        status, answer = wire.ask(verb, path, sent)
        found[f"({name})"] = f"{status} {_answer(answer)}"
    return found


def _answer(answer: Any) -> str:
    if isinstance(answer, dict) and set(answer) >= {"error", "remedy", "exit_code"}:
        return f"exit {answer['exit_code']}: {words(answer['error'])} -> {words(answer['remedy'])}"
    return f"accepted: {sorted(answer) if isinstance(answer, dict) else type(answer).__name__}"


class Story:
    """One instance with agents of its own; each act adds an answer."""

    def __init__(self, it: Instance) -> None:
        self.it, self.wire = it, Wire(it.places.operator_sock)
        self.said: dict[str, Any] = {}

    def do(self, name: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Asks, and keeps the answer's shape under ``name``."""
        status, answer = self.wire.ask(method, path, body)
        self.said[name] = {"status": status, "answer": _answer(answer) if status >= 400 else shape(answer)}
        return answer

    def settle(self) -> None:
        """Waits for what comes by itself a moment after a start: the first look of each source, the first test of the kill switch."""

        def is_settled() -> bool:
            status = self.wire.ask("GET", "/api/status")[1]
            is_tested = any(p["measured_ms"] is not None for p in status["armed"]["paths"])
            return all(s["looked_at"] for s in status["sources"]) and is_tested and not status["armed"]["why"]

        until(is_settled, words="sources have looked, and the kill switch was tested and is in no doubt")

    def held(self, count: int) -> None:
        """Waits until the guard has forgotten all agents that ended: it holds ``count``, and a kill of all has that many targets."""
        with contextlib.closing(GuardClient(self.it.places.guard_sock, timeout_s=60)) as guard:
            until(lambda: guard.status()["agents"] == count, words=f"the guard holds {count} agents")

    def recorded(self) -> None:
        """Waits for the guard's own lines, which come into the audit log a moment after its answers."""
        kinds = {"guard.freeze", "guard.thaw", "guard.press", "guard.unlatch", "agent.ended", "kill.rearmed"}
        until(lambda: kinds <= {r["kind"] for r in self.wire.ask("GET", "/api/audit?limit=500")[1]["rows"]}, words="all is recorded")

    def act(self) -> tuple[str, str]:
        """The main POST routes; an agent that lives, and the session of it."""
        it = self.it
        self.settle()
        sleeper = self.do("launch", "POST", "/api/agents", {"argv": ["sleep", "300"], "name": "sleeper", "context_id": "desk"})["id"]
        asker = it.python(ASK, context_id="rocket")
        writer = it.python(WRITE, context_id="plans")
        row = until(lambda: self.wire.ask("GET", "/api/approvals")[1]["waiting"], words="it asks")[0]
        until(
            lambda: '"approval"' in json.dumps(self.wire.ask("GET", f"/api/approvals/{row['id']}")[1]), words="what it did is in the ledger"
        )
        self.read(
            {"{id}": row["id"]},
            ("/api/approvals", "/api/approvals/{id}", "/api/approvals/{id}/draft", "/api/approvals/{id}/rule"),
            "waiting",
        )
        requests = [{"id": row["id"], "digest": row["digest"]}]
        self.do("approve", "POST", "/api/approvals", {"requests": requests, "verdict": "approve", "scope": "session"})
        it.says(asker, "verdict allow")
        until(lambda: it.agent(writer).ended_at is not None, words="it has written")
        can = until(
            lambda: [r for r in self.wire.ask("GET", "/api/rollback")[1]["records"] if r["state"] == "can_restore"], words="a record"
        )
        self.read({"{id}": can[0]["record_id"]}, ("/api/rollback", "/api/rollback/{id}"), "before a restore")
        seen = self.wire.ask("GET", f"/api/rollback/{can[0]['record_id']}")[1]["now_sha256"]
        self.do("restore", "POST", f"/api/rollback/{can[0]['record_id']}/restore", {"reason": "golden", "expect_now_sha256": seen})
        self.read({}, ("/api/ladder/preview", "/api/policy/calls", "/api/fleet", "/api/kill-switch"), "agents live")
        self.read({"{id}": sleeper}, ("/api/agents/{id}",), "it lives")
        for verb in ("freeze", "thaw"):
            self.do(f"{verb} an agent", "POST", f"/api/agents/{sleeper}/{verb}", {"reason": "golden"})
        whole = {"reach": "agent", "target": sleeper}
        for name in ("freeze", "isolate", "kill"):
            self.do(f"preview of {name}", "POST", "/api/ladder/preview", {"action": name, "scope": whole})
        self.do("freeze by the ladder", "POST", "/api/ladder", {"action": "freeze", "scope": whole, "reason": "golden"})
        self.do("thaw by the ladder", "POST", "/api/ladder", {"action": "thaw", "scope": whole, "reason": "golden"})
        self.do("set a limit", "POST", "/api/budgets", {"scope": "session", "key": "desk", "limits": {"cost_usd": 3.0}, "reason": "golden"})
        self.do("dry run on", "POST", "/api/dry-run", {"agent": sleeper, "on": True, "reason": "golden"})
        self.do("explain a call", "POST", "/api/policy/explain", {"tool": "Bash", "argument": "rm -rf /"})
        self.do("try rules", "POST", "/api/policy/backtest", {"add": ["shell(ls:*)"], "to": "allow"})
        self.do("test a URL", "POST", "/api/allowlist/test", {"url": "https://example.com/x"})
        self.do("hold a session", "POST", "/api/contexts/desk/hold", {"reason": "golden"})
        body = {"scope": {"reach": "session", "target": "desk"}, "mode": "NONE", "reason": "golden", "dry_run": True}
        self.do("stricter network", "POST", "/api/network/stricter", body)
        self.do("revoke a token", "POST", f"/api/agents/{asker}/revoke-token", {})
        self.do("end grants", "POST", "/api/approvals/grants/end", {"session": "rocket", "reason": "golden"})
        self.do("kill an agent", "POST", f"/api/agents/{asker}/kill", {"reason": "golden"})
        return sleeper, "desk"

    def read(self, names: dict[str, str], paths: tuple[str, ...], when: str) -> None:
        """GET of each path."""
        for path in paths:
            asked = path
            for name, value in names.items():
                asked = asked.replace(name, value)
            self.do(f"GET {path} ({when})", "GET", asked + QUERIES.get(path, ""))

    def press(self) -> str:
        """Everything is killed, one change is refused, and it is rearmed; the id of the kill."""
        self.settle()
        self.it.launch("sleep", "300", name="second", context_id="desk")
        self.held(2)
        receipt = self.do("panic", "POST", "/api/kill-switch", {"action": "activate", "reason": "golden"})
        until(lambda: self.wire.ask("GET", f"/api/receipts/{receipt['kill_id']}")[1]["complete"], words="the receipt is complete")
        self.read({}, ("/api/kill-switch", "/api/kill-switch/rearm", "/api/fleet"), "killed")
        self.do("a launch while killed", "POST", "/api/agents", {"argv": ["true"]})
        seen = self.wire.ask("GET", "/api/kill-switch/rearm")[1]
        proof = {"operator": "golden", "via": "console", "generation": seen["generation"]}
        typed = seen["to_type"]
        self.do(
            "rearm with a wrong id", "POST", "/api/kill-switch", {"action": "rearm", "reason": "golden", "kill_id": "no", "proof": proof}
        )
        self.do("rearm", "POST", "/api/kill-switch", {"action": "rearm", "reason": "golden", "kill_id": typed, "proof": proof})
        return str(receipt["kill_id"])


QUERIES = {
    "/api/ladder/preview": "?action=freeze&reach=all",
    "/api/budgets/node": "?scope=session&key=desk",
    "/api/policy/calls": "?rule=shell(ls:*)&verdict=allow",
}


def names_for(path: str, agent: str, session: str, kill: str) -> dict[str, str]:
    """What stands for the placeholders of a path."""
    held = {"/api/receipts/": kill, "/api/contexts/": session}
    one = next((value for start, value in held.items() if path.startswith(start)), agent)
    return {"{id}": one, "{agent}": agent, "{seq}": "1", "{program}": "claude-code"}


def audited(wire: Wire) -> dict[str, Any]:
    """Of each kind of record: the keys of its data, verdicts and who."""

    page = wire.ask("GET", "/api/audit?limit=500")[1]
    found: dict[str, dict[str, Any]] = {}
    for row in page["rows"]:
        data = row.get("data") or {}
        found.setdefault(row["kind"], {"shapes": []})["shapes"].append(
            shape({k: v for k, v in row.items() if k != "data"} | {"data": data})
        )
    return {kind: merged(one["shapes"]) for kind, one in sorted(found.items())}


@contextlib.contextmanager
def instance() -> Iterator[Instance]:
    """One that sees no other program of this host."""
    with tempfile.TemporaryDirectory(prefix="g-") as folder, tempfile.TemporaryDirectory(prefix="h-") as home:
        Path(folder).chmod(0o711)
        # A kill in the middle of a self-test has its canary as one more target. After the first test there is none in this hour.
        save_options(Path(folder) / "settings.json", {"canary_s": 3600})
        with Instance(Path(folder), "--discover-root", home, envoy=True) as it:
            yield it


def collect() -> dict[str, str]:
    """The golden files of one instance."""
    with instance() as it:
        story = Story(it)
        agent, session = story.act()
        kill = story.press()
        story.recorded()
        story.settle()
        for row in story.wire.ask("GET", "/api/receipts")[1]["receipts"]:
            if row["exit_code"]:  # pytest shows it when the test fails
                print(json.dumps(story.wire.ask("GET", f"/api/receipts/{row['kill_id']}")[1]))
        for method, path in routes():
            if method == "GET" and f"GET {path}" not in HEAVY:
                story.read(names_for(path, agent, session, kill), (path,), "rearmed")
        rows = audited(story.wire)
        bad = refused(story.wire)
        story.do("shutdown", "POST", "/api/shutdown", {})
    return {"routes.json": text_of(story.said), "refusals.json": text_of(bad), "audit.json": text_of(rows)}
