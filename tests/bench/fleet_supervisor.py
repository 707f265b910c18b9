"""What a real supervisor takes of one core while a fleet lives: its own processor time, by /proc/PID/stat, and the guard's beside it.

``python -m tests.bench.fleet_supervisor [--agents 1000] [--seconds 30] [--managed] [--period 10] [--quiet]`` prints a JSON object. Without
``--managed`` the agents are only seen: processes called claude, each with the session file and the transcript that the real program writes,
a tenth of which grow by one priced answer every second (``--quiet``: none). With it they are launched through the supervisor, each in its
own cgroup, and each reports usage every ``--period`` seconds on its own socket: a tenth of them every second. One agent in ten is the real
client (``integrations/client.py``), the others a lighter program that sends the same bytes over one connection that it keeps as the client
does: 1,000 agents take about 11 GiB, two thirds of it their shims. One console listens to the stream. Everything lives in a folder and
an instance of its own, and ends with it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError
from console.sources.processes import ProcessTable
from tests.fakes.instance import Instance, until

SLEEP = shutil.which("sleep") or "/usr/bin/sleep"
BUSY = """
import random
time.sleep(random.random() * PERIOD)
n = 0
while True:
    n += 1
    agent.usage(tokens=100, tool_calls=1, cost_usd=0.001, action=f'step {n}')
    time.sleep(PERIOD)
"""
LIGHT = """
import os, time, _socket
HEAD = b'POST /v1/usage HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n'
sock, n = None, 0
time.sleep(int.from_bytes(os.urandom(2)) / 65536 * PERIOD)
while True:
    n += 1
    body = b'{"tokens": 100, "tool_calls": 1, "cost_usd": 0.001, "action": "step %d"}' % n
    if sock is None:
        sock = _socket.socket(_socket.AF_UNIX)
        sock.connect(os.environ['WATCHFLOOR_AGENT_SOCKET'])
    sock.send(HEAD % len(body) + body)
    got = sock.recv(65536)
    while not got.endswith(b'}'):
        got += sock.recv(65536)
    if not got.startswith(b'HTTP/1.1 200'):
        raise SystemExit(got)
    time.sleep(PERIOD)
"""


class Sessions:
    """Live sessions of a home: a process, a session file and a transcript each."""

    def __init__(self, home: Path, number: int, quiet: bool) -> None:
        self._children: list[subprocess.Popen[bytes]] = []
        self._transcripts: list[Path] = []
        self._home, self._number, self.quiet, self.answers = home, number, quiet, 0

    def __enter__(self) -> Sessions:
        exe = self._home / "claude"
        shutil.copy(SLEEP, exe)
        records, table = self._home / ".claude" / "sessions", ProcessTable()
        records.mkdir(parents=True)
        for at in range(self._number):
            child = subprocess.Popen([str(exe), "1800"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self._children.append(child)
            session, cwd = f"5c41e000-0000-4000-8000-{at:012d}", f"/work/p{at % 50}"
            transcript = self._home / ".claude" / "projects" / cwd.replace("/", "-") / f"{session}.jsonl"
            transcript.parent.mkdir(parents=True, exist_ok=True)
            transcript.touch()
            self._transcripts.append(transcript)
            start = str(table.start_ticks(child.pid))
            record = {"pid": child.pid, "sessionId": session, "cwd": cwd, "procStart": start, "status": "busy", "kind": "interactive"}
            (records / f"{child.pid}.json").write_text(json.dumps(record))
        return self

    def grow(self, beat: int) -> None:
        """One answer more in every tenth transcript."""
        if self.quiet:
            return
        for at in range(beat % 10, self._number, 10):
            self.answers += 1
            usage = {"input_tokens": 12, "output_tokens": 77, "cache_read_input_tokens": 4096, "cache_creation_input_tokens": 0}
            message = {"id": f"msg_{self.answers}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            line = {"type": "assistant", "message": message, "requestId": f"req_{self.answers}", "timestamp": stamp}
            with self._transcripts[at].open("a") as file:
                file.write(json.dumps({**line, "sessionId": self._transcripts[at].stem, "cwd": f"/work/p{at % 50}"}) + "\n")

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait()


def used_s(pid: int) -> float:
    """Processor seconds of a process, its threads in it (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def listener(it: Instance) -> Iterator[list[int]]:
    """A console that hears everything; counts patches and whole views."""
    heard = [0, 0]

    def listen() -> None:
        try:
            for delta in it.api.events():
                heard[0] += len(delta.data.get("patch", ())) if delta.kind == "agents" else 0
                heard[1] += len(delta.data.get("upsert", ())) if delta.kind == "agents" else 0
        except ConsoleError:
            pass  # the supervisor ended

    threading.Thread(target=listen, daemon=True).start()
    yield heard


def measured(it: Instance, seconds: float, sessions: Sessions | None) -> dict[str, Any]:
    """Over so long, from the steady state on."""
    assert it.process is not None
    pids = {"supervisor": it.process.pid, "guard": it.guard_pid()}
    with listener(it) as heard:
        for beat in range(8):
            if sessions is not None:
                sessions.grow(beat)
            time.sleep(1)
        before, began, told = {k: used_s(pid) for k, pid in pids.items()}, time.monotonic(), list(heard)
        beat = 8
        while time.monotonic() - began < seconds:
            if sessions is not None:
                sessions.grow(beat)
            beat += 1
            time.sleep(max(0.0, began + beat - 7 - time.monotonic()))
        took = time.monotonic() - began
        shares: dict[str, Any] = {f"{k}_share_of_a_core": round((used_s(pid) - before[k]) / took, 4) for k, pid in pids.items()}
        fleet = it.api.fleet()
        shares["live"] = sum(a.state in ("running", "starting", "waiting") for a in fleet.agents)
        shares["patches_per_s"] = round((heard[0] - told[0]) / took, 1)
        shares["whole_views_per_s"] = round((heard[1] - told[1]) / took, 1)
        shares["cost_usd"] = round(sum((a.cost_usd or 0.0) for a in fleet.agents), 4)
        return shares


def seen(number: int, seconds: float, quiet: bool) -> dict[str, Any]:
    """A fleet that is only seen."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        Path(folder).chmod(0o711)
        with Sessions(Path(home), number, quiet) as sessions, Instance(Path(folder), "--discover-root", home) as it:
            began = time.monotonic()
            until(lambda: len(it.api.fleet().agents) >= min(number, 1000), 120, "all are seen")
            found = {"all_seen_after_s": round(time.monotonic() - began, 1)} | measured(it, seconds, sessions)
            print(it.places.log_file.read_text()[-500:], file=sys.stderr)
            return found | {"answers_written": sessions.answers}


def start(it: Instance, at: int, period: float) -> None:
    """One agent that reports every ``period`` seconds."""
    if at % 10 == 0:
        it.python(BUSY.replace("PERIOD", str(period)), network_mode="FULL")
    else:
        it.launch("python3", "-I", "-S", "-c", LIGHT.replace("PERIOD", str(period)), network_mode="FULL")


def managed(number: int, seconds: float, period: float) -> dict[str, Any]:
    """A fleet that was launched."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        with Instance(Path(folder)) as it:
            began = time.monotonic()
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda at: start(it, at, period), range(number)))
            found = {"launched_in_s": round(time.monotonic() - began, 1)}
            spent, began = sum(a.usage["tokens"] or 0 for a in it.api.fleet().agents), time.monotonic()
            found |= measured(it, seconds, None)
            told = sum(a.usage["tokens"] or 0 for a in it.api.fleet().agents) - spent
            return found | {"reports_per_s": round(told / 100 / (time.monotonic() - began), 1)}


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--period", type=float, default=10.0, help="seconds between two reports of a managed agent")
    parser.add_argument("--managed", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    out = {"agents": given.agents, "load_before": os.getloadavg()[0]}
    out |= managed(given.agents, given.seconds, given.period) if given.managed else seen(given.agents, given.seconds, given.quiet)
    print(json.dumps(out | {"load_after": os.getloadavg()[0]}, indent=2))


if __name__ == "__main__":
    main()
