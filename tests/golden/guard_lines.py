"""The guard's line protocol: a guard of our own, each operation at each of its two sockets, refusals, and one kill."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from console.domain.guard import LINE_LIMIT
from tests.fakes.instance import ROOT, until
from tests.golden.normal import shape, text_of, words
from tests.leaks import cgroup_places

HOSTILE: dict[str, bytes] = {
    "not JSON": b"{no",
    "a list": b"[]",
    "empty": b"",
    "no operation": b"{}",
    "an operation that is none": b'{"op": "\\u001b[31m\\u202e"}',
    "an operation of a wrong type": b'{"op": {"a": 1}}',
    "nested": b"[" * 1500,
}
FIELDS = ("agent_id", "kind", "control_level", "generation", "pid", "start_ticks", "scope", "cause", "hold_id", "kill_id", "on")
WRONG: dict[str, dict[str, Any]] = {
    "nothing": {},
    "wrong types": {k: {"a": 1e308} for k in FIELDS},
    "hostile words": {
        "agent_id": "../../etc", "scope": ["a\u0000b"], "cause": "\u202e", "hold_id": "x" * 50, "kill_id": "../x", "call": "../x",
        "generation": -1, "pid": -1, "start_ticks": 2**70, "kind": "\u001b[31m", "control_level": "x", "kills": ["x"], "on": "yes",
    },
}  # fmt: skip
DO_WHAT_IS_ASKED = frozenset({"press", "halt", "hold", "quit"})
"""Obeyed however they are worded: a badly worded press still kills."""
OPERATIONS = Path(__file__).with_name("operations.txt")
"""Every operation with the socket it is served on; a test of its own compares it with the guard's table."""


class Line:
    """One connection to a socket of the guard."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, line: bytes) -> Any:
        """The answer to one line; None when the guard hangs up."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as one:
            one.settimeout(60)
            one.connect(str(self._path))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                one.sendall(line + b"\n")
                with one.makefile("rb") as answers:
                    return json.loads(answers.readline() or b"null")
        return None

    def ask(self, op: str, **fields: Any) -> Any:
        """One operation."""
        return self.send(json.dumps({"op": op, **fields}).encode())


def told(answer: Any) -> Any:
    """An answer without what differs between two runs."""
    if answer is None:
        return "(hangs up)"
    if not answer.get("ok"):
        return f"{answer.get('kind')}: {words(answer.get('error', ''))} -> {words(answer.get('remedy', ''))}"
    return shape(answer)


@contextlib.contextmanager
def guard() -> Iterator[tuple[Line, Line]]:
    """The two sockets of one: operators', the supervisor's."""
    instance = secrets.token_hex(4)
    with tempfile.TemporaryDirectory(prefix="g-") as folder:
        run = Path(folder, "run")
        run.mkdir()
        argv = [sys.executable, "-m", "console.killswitch", "--state-dir", folder, "--run-dir", str(run), "--instance", instance]
        # Without a return watch: it goes on for a minute after each kill.
        child = subprocess.Popen([*argv, "--return-watch-s", "0"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            doors = Line(run / "guard.sock"), Line(run / "guard-supervisor.sock")
            until(lambda: _answers(doors[1]) and _answers(doors[0]), words="the guard answers")
            yield doors
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(60)
            for place in cgroup_places():
                for at, _, _ in os.walk(place / f"watchfloor-{instance}", topdown=False):
                    with contextlib.suppress(OSError):
                        Path(at).rmdir()


def _answers(line: Line) -> bool:
    with contextlib.suppress(OSError):
        return bool(line.ask("status"))
    return False


def operations() -> list[tuple[str, str]]:
    """Socket and name of each."""
    return [(line.split(" ")[0], line.split(" ")[1]) for line in OPERATIONS.read_text().split("\n") if line]


def collect() -> dict[str, str]:
    """The golden files of one guard."""
    with guard() as (operator, supervisor):
        lines = {"operator": operator, "supervisor": supervisor}
        found: dict[str, Any] = {"hostile lines": {name: told(operator.send(line)) for name, line in HOSTILE.items()}}
        found["hostile lines"]["a line too long"] = told(operator.send(b"x" * (LINE_LIMIT + 1)))
        found["the supervisor's operations at guard.sock"] = {
            op: told(operator.ask(op)) for door, op in operations() if door == "supervisor" and ("operator", op) not in operations()
        }
        found["wrong fields"] = {
            f"{door} {op}": {name: told(lines[door].ask(op, **fields)) for name, fields in WRONG.items()}
            for door, op in operations()
            if op not in DO_WHAT_IS_ASKED
        }
        found["in order"] = _in_order(operator, supervisor)
    return {"guard.json": text_of(found)}


def _in_order(operator: Line, supervisor: Line) -> dict[str, Any]:
    """A launch, a freeze, a hold, a kill, a panic and a rearm, as the supervisor and an operator ask for them."""
    said: dict[str, Any] = {}

    def note(name: str, answer: Any) -> Any:
        said[f"{len(said) + 1:02} {name}"] = told(answer)
        return answer

    note("heartbeat", supervisor.ask("heartbeat"))
    note("status", operator.ask("status"))
    ticket = note("ticket", supervisor.ask("ticket", agent_id="a-1", kind="process", control_level="managed", pids_max=64))
    with _sleeper() as child:
        Path(ticket["leaf"], "cgroup.procs").write_text(str(child.pid))
        ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        this = {"agent_id": "a-1", "generation": ticket["generation"], "pid": child.pid, "start_ticks": ticks}
        note("confirm with a wrong start", supervisor.ask("confirm", **{**this, "start_ticks": 1}))
        note("confirm", supervisor.ask("confirm", **this))
        note("ticket of the same name", supervisor.ask("ticket", agent_id="a-1", kind="process", control_level="managed"))
        note("procs", supervisor.ask("procs", agent_id="a-1"))
        note("counts", supervisor.ask("counts"))
        # A busy kernel confirms a freeze after the answer.
        note("freeze", operator.ask("freeze", scope=["a-1"], by="golden") | {"frozen": 1, "unconfirmed": {}})
        until(lambda: operator.ask("freezing", scope=["a-1"])["n"] == 0, words="it is frozen")
        note("freezing", operator.ask("freezing", scope=["a-1"]))
        note("freeze for the supervisor's cause at guard.sock", operator.ask("freeze", scope=["a-1"], cause="budget"))
        note("thaw", operator.ask("thaw", scope=["a-1"], by="golden"))
        note("isolate", supervisor.ask("isolate", scope=["a-1"]))
        note("forget while it lives", supervisor.ask("forget", agent_id="a-1"))
        note("quit while an agent lives", supervisor.ask("quit"))
        note("halt of everything", supervisor.ask("halt", scope="all"))
        killed = note("press of one agent", operator.ask("press", scope=["a-1"], reason="golden", by="golden"))
        child.wait(60)
    _finished(operator, killed["kill_id"])
    note("progress", operator.ask("progress", kill_id=killed["kill_id"]))
    note("receipt", operator.ask("receipt", kill_id=killed["kill_id"], offset=0))
    note("confirm of a killed agent", supervisor.ask("confirm", **this))
    note("forget", supervisor.ask("forget", agent_id="a-1"))
    panic = note("press of everything", operator.ask("press", scope="all", reason="golden", by="golden"))
    _finished(operator, panic["kill_id"])
    note("status while killed", operator.ask("status"))
    note("ticket while killed", supervisor.ask("ticket", agent_id="a-2", kind="process", control_level="managed"))
    note("quit while killed", supervisor.ask("quit"))
    state = supervisor.ask("status")
    note("doubts", supervisor.ask("doubts"))
    asked = note("challenge", supervisor.ask("challenge"))
    note("prove with a wrong id", supervisor.ask("prove", kind="typed", kill_id="no", generation=state["generation"], by="golden"))
    proven = note("prove", supervisor.ask("prove", kind="typed", kill_id=asked["to_type"], generation=state["generation"], by="golden"))
    kills = {"generation": state["generation"], "kills": state["kills"], "by": "golden", "reason": "golden"}
    note("unlatch without a proof", supervisor.ask("unlatch", **kills))
    note("unlatch", supervisor.ask("unlatch", **kills, proof=proven.get("proof", "")))
    note("status after it", operator.ask("status"))
    return said


def _finished(line: Line, kill_id: str) -> None:
    until(lambda: line.ask("progress", kill_id=kill_id)["done"], words="the kill ends")


@contextlib.contextmanager
def _sleeper() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "300"])
    try:
        yield child
    finally:
        child.kill()
        child.wait(60)
