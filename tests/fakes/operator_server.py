"""A stand-in for supervisor and guard on unix sockets: the messages of console/api/messages.py over generated fleets.

``FakeHouse(places)`` in a ``with`` block runs in a thread; ``python -m tests.fakes.operator_server --state-dir D`` is a process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from console.api import messages as m
from console.api import rearm as rm
from console.api.records import AccountsView, AccountView
from console.domain.kill import Receipt
from console.services.rearm.service import killed_view
from console.settings.places import Places, find_places, make_run_dir
from console.supervisor.http.asgi import Door
from tests.fakes import gui_fixture as fixture
from tests.fakes.activity_routes import FakeActivity
from tests.fakes.approval_routes import FakeApprovals
from tests.fakes.budget_routes import FakeBudgets
from tests.fakes.guard_socket import FakeGuard
from tests.fakes.pages_routes import FakeRooms
from tests.fakes.policy_routes import FakePolicy
from tests.fakes.program_routes import FakePrograms
from tests.fakes.sandbox_routes import FakeSandboxes
from tests.fakes.settings_routes import FakeSettings
from tests.fakes.stop_routes import FakeStops
from tests.fakes.view_answers import refuse, say

Answer = Callable[[Request], Awaitable[Response]]


def make_fleet(name: str, now: float) -> list[m.AgentView]:
    """``mockup``, ``hostile``, or a number of agents."""
    if name == "mockup":
        return fixture.mockup_agents(now)
    if name == "hostile":
        return fixture.hostile_agents(now)
    return fixture.many_agents(int(name), now)


class FakeSupervisor:
    """State and routes. Tests read ``log`` (what was asked) and set the fields."""

    def __init__(self, agents: list[m.AgentView], guard: FakeGuard) -> None:
        self.agents = {a.id: a for a in agents}
        self.guard = guard
        guard.desk = self
        self.status = fixture.status(time.time())
        self.switch = fixture.kill_switch(time.time())
        killed = fixture.mockup_agents()
        self.receipts: dict[str, Receipt] = {
            row.kill_id: fixture.receipt(killed, proven=row.exit_code != 9, now=row.pressed_at + 124, kill_id=row.kill_id)
            for row in self.switch.receipts
        }
        self.began = time.time()
        self.self_tests = True
        """Whether the paths of a stop are proven again and again; False: what was proven only grows older."""
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.seq = 0
        self.kept: list[tuple[int, str, str]] = []
        self.listeners: set[asyncio.Queue[tuple[int, str, str]]] = set()
        self.names: dict[int, tuple[str, str]] = {}
        """Login and full name of accounts, by number."""
        self.refuse_rearm = ""
        self.rearm_blockers: list[str] = []
        self.rearm_hangs = False
        self.rearm_unread = ""
        """Why what a rearm would release cannot be read."""
        self.generation = 1
        self.passphrase = ""
        self.rooms = FakeRooms(self.tell, time.time())
        """Network, rollback and audit."""
        self.stops = FakeStops(self)
        """The ladder, workspaces, the hunt, rotation."""
        self.boxes = FakeSandboxes(self)
        """Stricter modes, histories of modes."""
        self.activity = FakeActivity(self.tell)
        """What agents did."""
        self.approvals = FakeApprovals(self.tell)
        self.policy = FakePolicy(self.approvals)
        """What waits for a human."""
        self.budgets = FakeBudgets(self)
        """Limits, and what is used of them."""
        self.programs = FakePrograms(self)
        """What can be started, worst cases, talking."""
        self.extra_routes: list[Route] = [
            *self.programs.routes(),
            *self.rooms.routes(),
            *self.boxes.routes(),
            *self.stops.routes(),
            *self.activity.routes(),
            *self.policy.routes(),
            *self.approvals.routes(),
        ]
        self.extra_routes += self.budgets.routes()
        self.configuration: Callable[[], str] = lambda: ""
        """What the status says of the files of the settings."""

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """One delta to everybody (call it on the server's loop)."""
        self.seq += 1
        message = (self.seq, kind, json.dumps(data))
        self.kept = [*self.kept[-499:], message]
        for queue in self.listeners:
            queue.put_nowait(message)

    def upsert(self, *agents: m.AgentView) -> None:
        for agent in agents:
            self.agents[agent.id] = agent
        data = {"upsert": [a.as_data() for a in agents], "remove": [], "spend_today_usd": 412.8, "burn_usd_per_h": 38.2}
        self.tell("agents", data)

    def live(self) -> int:
        """Agents a press would meet."""
        return sum(1 for a in self.agents.values() if a.state != "ended")

    def killing(self, kill_id: str) -> None:
        """What the supervisor tells while the guard kills."""
        self.generation += 1
        self.switch = self.switch.replaced(state="killing", killed=True, kill_id=kill_id)
        self.tell("kill", {"state": "killing"})

    def below(self, agent_id: str) -> list[str]:
        out = [agent_id]
        for at in out:
            out.extend(a.id for a in self.agents.values() if a.parent_id == at and a.id not in out)
        return out

    def routes(self) -> list[Route]:
        routes: list[tuple[str, str, Answer]] = [
            ("GET", "/api/status", self._status),
            ("GET", "/api/accounts", self._accounts),
            ("GET", "/api/fleet", self._fleet),
            ("GET", "/api/agents/{id}", self._agent),
            ("POST", "/api/agents", self._launch),
            ("GET", "/api/kill-switch", self._switch),
            ("GET", "/api/kill-switch/rearm", self._rearm_view),
            ("POST", "/api/passphrase", self._passphrase),
            ("POST", "/api/agents/{id}/again", self._again),
            ("POST", "/api/kill-switch", self._rearm),
            ("GET", "/api/receipts", self._receipts),
            ("GET", "/api/receipts/{id}", self._receipt),
            ("GET", "/api/events", self._events),
            ("GET", "/api/sources", self._sources),
        ]
        return [*self.extra_routes, *(Route(path, answer, methods=[verb]) for verb, path, answer in routes)]

    async def _status(self, request: Request) -> Response:
        return say(self.status.replaced(configuration=self.configuration()))

    async def _accounts(self, request: Request) -> Response:
        uids = [int(uid) for uid in request.query_params["uids"].split(",")]
        return say(AccountsView(accounts=[AccountView(uid, *self.names.get(uid, ("", ""))) for uid in uids]))

    async def _sources(self, request: Request) -> Response:
        return say(fixture.type_sources())

    async def _fleet(self, request: Request) -> Response:
        agents = list(self.agents.values())
        view = fixture.fleet(agents, self.seq) if agents else m.FleetView(seq=self.seq)
        return say(view.replaced(killed=self.switch.killed))

    async def _agent(self, request: Request) -> Response:
        agent = self.agents.get(request.path_params["id"])
        if agent is None:
            return refuse(404, "No such agent.", "watchfloor fleet lists the ids.")
        return say(self.programs.told(fixture.detail(agent, time.time())))

    async def _launch(self, request: Request) -> Response:
        body = m.LaunchBody.read_json(await request.body())
        self.log.append(("launch", "", body.as_data()))
        self.upsert(m.AgentView(id="new-1", name=body.name or "new", session="new-1", control_level="managed", sandbox=body.sandbox))
        return say(m.LaunchedView(id="new-1", control_level="managed", network_mode="PROXIED", network_enforced=True))

    async def _switch(self, request: Request) -> Response:
        if self.self_tests:
            self._prove()
        return say(self.switch)

    def _prove(self) -> None:
        """Every proof is as old as it was at the start."""
        later, self.began = time.time() - self.began, time.time()
        paths = [p.replaced(checked_at=p.checked_at + later if p.checked_at else None) for p in self.switch.paths]
        self.switch = self.switch.replaced(paths=paths)

    async def _rearm(self, request: Request) -> Response:
        body = m.KillSwitchBody.read_json(await request.body())
        self.log.append((body.action, body.kill_id, body.as_data()))
        while self.rearm_hangs:
            await asyncio.sleep(0.02)
        if self.refuse_rearm:
            return refuse(409, self.refuse_rearm, "Release it first: watchfloor remote release")
        proof = body.proof or rm.RearmProof()
        if self.switch.passphrase == "set" and proof.passphrase != self.passphrase:
            return refuse(403, "That is not the passphrase (wrong attempt 1).", "Try again in 1 s")
        if body.kill_id != self.switch.kill_id:
            return refuse(409, f"{body.kill_id!r} is not the latched kill.", "Type the id the banner shows.")
        self.rearmed()
        return say(self.switch)

    def rearmed(self) -> None:
        """By whoever; call it on the server's loop."""
        self.guard.latched, self.guard.kill = False, None
        self.switch = self.switch.replaced(state="armed", killed=False, kill_id="")
        self.tell("kill", {"state": "armed"})

    async def _rearm_view(self, request: Request) -> Response:
        if self.rearm_unread:
            return refuse(503, self.rearm_unread)
        kill_id, made = self.switch.kill_id, self.receipts.get(self.switch.kill_id)
        kills = [killed_view(kill_id, made)] if self.switch.killed else []
        ids = [kill_id] if self.switch.killed else []
        ran = [rm.AgainView(id=t.agent_id, name=self.agents[t.agent_id].name, state="killed") for t in (made.targets if made else ())[:3]]
        state = self.switch.passphrase
        said = rm.RearmView(killed=self.switch.killed, generation=self.generation, kill_ids=ids, kills=kills, passphrase=state)  # type: ignore[arg-type]
        return say(said.replaced(blockers=self.rearm_blockers, was_running=ran))

    async def _passphrase(self, request: Request) -> Response:
        body = rm.PassphraseBody.read_json(await request.body())
        self.log.append(("passphrase", body.action, {}))
        if self.switch.passphrase == "set" and body.old != self.passphrase:
            return refuse(403, "That is not the passphrase (wrong attempt 1).", "Try again in 1 s")
        self.passphrase = body.new
        self.switch = self.switch.replaced(passphrase="set")
        return say(rm.PassphraseView(passphrase="set"))

    async def _again(self, request: Request) -> Response:
        self.log.append(("again", request.path_params["id"], {}))
        return say(m.LaunchedView(id="new-1", control_level="managed", network_mode="PROXIED", network_enforced=True))

    async def _receipts(self, request: Request) -> Response:
        return say(m.ReceiptsView(receipts=self.switch.receipts))

    async def _receipt(self, request: Request) -> Response:
        found = self.receipts.get(request.path_params["id"])
        return JSONResponse(found.as_json()) if found else refuse(404, "No such receipt.")

    async def _events(self, request: Request) -> Response:
        asked = request.headers.get("last-event-id", "")
        return StreamingResponse(self._stream(int(asked) if asked.isdigit() else self.seq), media_type="text/event-stream")

    async def _stream(self, after: int) -> AsyncIterator[str]:
        queue: asyncio.Queue[tuple[int, str, str]] = asyncio.Queue()
        self.listeners.add(queue)
        try:
            yield ": hello\n\n"
            if after > self.seq or (self.kept and after < self.kept[0][0] - 1):
                yield f"id: {self.seq}\nevent: resync\ndata: {{}}\n\n"
            else:
                for seq, kind, data in [k for k in self.kept if k[0] > after]:
                    yield f"id: {seq}\nevent: {kind}\ndata: {data}\n\n"
            while True:
                seq, kind, data = await queue.get()
                yield f"id: {seq}\nevent: {kind}\ndata: {data}\n\n"
        finally:
            self.listeners.discard(queue)

    def killed(self, kill_id: str, proven: bool) -> None:
        """What the supervisor tells after the guard killed everything."""
        made = fixture.receipt(list(self.agents.values()), proven=proven, now=time.time() + 124, kill_id=kill_id)
        self.receipts[kill_id] = made
        now = time.time()
        update = {"state": "killed", "killed": True, "kill_id": kill_id, "reason": made.reason, "by": "operator", "since": now}
        self.switch = self.switch.replaced(**update)
        outcome = {t.agent_id: t.outcome.value for t in made.targets}
        self.upsert(
            *(
                a.replaced(state="killed" if outcome[a.id] == "proven_zero" else "alive_after_kill")
                for a in list(self.agents.values())
                if a.state != "ended"
            )
        )
        self.tell("kill", {"state": "killed", "receipt": made.as_json()})


class FakeHouse:
    """Supervisor and guard on the sockets of ``places``, in a thread of their own."""

    def __init__(self, places: Places, fleet: str = "mockup", *, with_guard: bool = True, guard: FakeGuard | None = None) -> None:
        make_run_dir(places)
        self.places = places
        self.guard = guard or FakeGuard()
        self.supervisor = FakeSupervisor(make_fleet(fleet, time.time()), self.guard)
        self.supervisor.activity.file = places.state_dir / "activity.db"
        self.settings = FakeSettings(places)
        self.supervisor.configuration = lambda: self.settings.desk.trouble
        self.supervisor.extra_routes += self.settings.routes()
        self._with_guard = with_guard
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._ended = asyncio.Event()
        self.rate = 0
        """Agent updates a second that the house makes up by itself."""

    def __enter__(self) -> FakeHouse:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._ready.clear()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.run()), name="fake-house", daemon=True)
        self._thread.start()
        assert self._ready.wait(60), "the fake house did not start"

    def stop(self) -> None:
        if self._thread is not None:
            if self._loop is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(60)
            assert not self._thread.is_alive()
            self._thread = None
        self.supervisor.activity.close()

    def on_loop(self, work: Callable[[], None]) -> None:
        """Runs ``work`` on the server's loop and waits for it."""
        assert self._loop is not None
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(60)

    async def run(self) -> None:
        """Serves until ``stop``, by the product's own door."""
        self._loop = asyncio.get_running_loop()
        self.places.guard_sock.unlink(missing_ok=True)
        app = Starlette(routes=self.supervisor.routes())
        door = Door(self.places.operator_sock, app, accepts=lambda _peer: True)
        guard = await asyncio.start_unix_server(self.guard.serve, str(self.places.guard_sock)) if self._with_guard else None
        pulse = asyncio.create_task(self._pulse())
        try:
            await door.open()
            self._ready.set()
            await self._ended.wait()
        finally:
            pulse.cancel()
            await door.close()
            if guard is not None:
                guard.close()
                await self.guard.close()
            self.places.guard_sock.unlink(missing_ok=True)

    async def _pulse(self) -> None:
        at = 0
        while True:
            await asyncio.sleep(0.05)
            ids = list(self.supervisor.agents)
            for _ in range(int(self.rate * 0.05) if ids else 0):
                agent = self.supervisor.agents[ids[at % len(ids)]]
                at += 1
                self.supervisor.upsert(agent.replaced(cost_usd=(agent.cost_usd or 0.0) + 0.01, last_action=f"step {at}"))


def main() -> None:
    """A process, for screenshots and trying things by hand; ends with Ctrl C or SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state-dir", required=True)
    parser.add_argument("--fleet", default="mockup")
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--killed", choices=("proven", "not-proven"), default=None)
    args = parser.parse_args()
    Path(args.state_dir).mkdir(parents=True, exist_ok=True)
    places = find_places(args.state_dir, create=True)
    house = FakeHouse(places, args.fleet, guard=FakeGuard(proven=args.killed != "not-proven"))
    house.rate = args.rate
    house.start()
    if args.killed:
        house.on_loop(house.guard.press_now)
    print("ready", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()


if __name__ == "__main__":
    main()
