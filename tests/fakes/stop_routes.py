"""The ladder, workspaces, the hunt and rotation of the stand-in supervisor: previews that count, acts that change the fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from console.api import ladder as la
from console.api import messages as m
from console.api import persistence as p
from console.api import secrets as ro
from console.api.agents import sessions as w
from console.api.agents.daemons import DaemonView
from console.domain.ladder import Reach, Scope
from tests.fakes import gui_fixture as fixture
from tests.fakes.view_answers import refuse, say

if TYPE_CHECKING:
    from tests.fakes.operator_server import FakeSupervisor

SHARED = "it shares the host's network, so its own traffic cannot be cut"


def _named(scope: la.ScopeBody) -> str:
    return ",".join((scope.target, *scope.others))


class FakeStops:
    """Tests set ``refuse`` (status, words), ``fails`` (agent -> why not), and the views."""

    def __init__(self, house: FakeSupervisor) -> None:
        self.house = house
        self.daemons: list[DaemonView] = []
        """What a kill says of programs outside that host its sessions."""
        self.refuse: tuple[int, str] | None = None
        self.hanging: set[str] = set()
        """Targets whose preview is answered once they are taken out."""
        self.refuse_act: tuple[int, str] | None = None
        self.fails: dict[str, str] = {}
        self.notes: list[str] = []
        self.contexts: list[w.ContextView] = []
        self.reports: list[p.PersistenceReport] = []
        self.rotation = ro.RotationView()
        self.rotation_refused = ""

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/api/ladder/preview", self._preview, methods=["POST"]),
            Route("/api/ladder", self._act, methods=["POST"]),
            Route("/api/contexts", self._contexts, methods=["GET"]),
            Route("/api/contexts/{id}/{verb:str}", self._on_context, methods=["POST"]),
            Route("/api/persistence", self._persistence, methods=["GET"]),
            Route("/api/rotation", self._rotation, methods=["GET"]),
            Route("/api/rotation", self._rotate, methods=["POST"]),
        ]

    # --- the ladder

    def _members(self, scope: la.ScopeBody) -> list[m.AgentView]:
        agents, targets = self.house.agents, (scope.target, *scope.others)
        meant: dict[str, Callable[[], list[str]]] = {
            "agent": lambda: list(targets),
            "tree": lambda: [one for target in targets for one in self.house.below(target)],
            "session": lambda: [a.id for a in agents.values() if a.session in targets],
        }
        ids = meant.get(scope.reach, lambda: list(agents))()
        return [agents[i] for i in ids if i in agents and agents[i].state not in ("ended", "killed")]

    def _treat(self, action: str, agent: m.AgentView) -> tuple[str, str]:
        if agent.control_level == "observed":
            return "excluded", "it is only observed: Watchfloor did not start it"
        if action == "thaw" and "operator" not in agent.causes:
            return "excluded", "no operator froze it"
        if action == "reconnect" and not agent.isolated:
            return "excluded", "no operator isolated it"
        if action == "isolate" and agent.isolated:
            return "excluded", f"it is isolated already ({agent.isolated})"
        if action == "isolate" and not agent.network_enforced:
            return "best_effort", SHARED
        return ("best_effort", agent.best_effort) if agent.best_effort and action == "kill" else ("certain", "")

    def preview(self, body: la.LadderBody) -> la.LadderPreview:
        """As the supervisor makes it."""
        view = la.LadderPreview(action=body.action, reach=body.scope.reach, target=_named(body.scope), words="", counted_s=0.1)
        view.undone_by = {"freeze": "thaw", "isolate": "reconnect"}.get(body.action, "")
        for agent in self._members(body.scope):
            kind, why = self._treat(body.action, agent)
            level = view.counts.setdefault(agent.control_level, {})
            level[kind] = level.get(kind, 0) + 1
            named = {"certain": view.acts, "best_effort": view.best_effort, "excluded": view.excluded}[kind]
            if len(named) < la.NAMED:
                named.append(la.LadderAgent(id=agent.id, name=agent.name, control_level=agent.control_level, why=why))
            else:
                view.unnamed += 1
            if kind != "excluded":
                view.processes += agent.pids
                view.egress += agent.network_mode != "NONE"
        number = sum(c.get("certain", 0) + c.get("best_effort", 0) for c in view.counts.values())
        view.words = (
            f"{body.action} of {Scope(Reach(body.scope.reach), body.scope.target, tuple(body.scope.others)).words()}: {number} agents."
        )
        view.why_not = "" if number else f"{body.action} stops no agent."
        view.outside = "8 agents could give work to other programs of this host: that is not covered." if body.action == "kill" else ""
        view.daemons = self.daemons if body.action == "kill" else []
        return view

    async def _preview(self, request: Request) -> Response:
        body = la.LadderBody.read_json(await request.body())
        while self.hanging.intersection((body.scope.target, *body.scope.others)):
            await asyncio.sleep(0.02)
        if self.refuse is not None:
            return refuse(*self.refuse, "Look at the fleet.")
        return say(self.preview(body))

    async def _act(self, request: Request) -> Response:
        body = la.LadderBody.read_json(await request.body())
        self.house.log.append((body.action, _named(body.scope) or body.scope.reach, {"reach": body.scope.reach, "reason": body.reason}))
        if self.refuse_act is not None:
            return refuse(*self.refuse_act, "Rearm first.")
        members = self._members(body.scope)
        treated = {a.id: self._treat(body.action, a) for a in members}
        acting = [a for a in members if treated[a.id][0] != "excluded" and a.id not in self.fails]
        why = f"operator:0: {body.reason}" if body.reason else "operator:0"
        changed: dict[str, dict[str, object]] = {
            "freeze": {"state": "frozen", "causes": ["operator"]},
            "thaw": {"state": "running", "causes": []},
            "isolate": {"network_mode": "NONE", "network_enforced": True, "isolated": why},
            "reconnect": {"network_mode": "PROXIED", "isolated": ""},
            "kill": {"state": "killed", "network_mode": "NONE"},
        }
        self.house.upsert(*(a.replaced(**changed[body.action]) for a in acting))
        if body.action == "kill":
            kill_id = f"k-{len(self.house.receipts):04d}"
            made = fixture.receipt(acting, proven=True, now=time.time() + 124, kill_id=kill_id)
            self.house.receipts[made.kill_id] = made
            return JSONResponse(made.as_json())
        excluded = {i: words for i, (kind, words) in treated.items() if kind == "excluded"}
        failed = {i: words for i, words in self.fails.items() if i in treated}
        return say(m.ActView(agents=[a.id for a in acting], failed=failed, excluded=excluded, notes=self.notes))

    # --- workspaces

    def _contexts_view(self) -> w.ContextsView:
        return w.ContextsView(contexts=self.contexts, used=sum(c.bytes for c in self.contexts), capacity=50 << 30, maximum=20 << 30)

    async def _contexts(self, _request: Request) -> Response:
        return say(self._contexts_view())

    async def _on_context(self, request: Request) -> Response:
        body = w.ContextActBody.read_json(await request.body())
        verb, name = request.path_params["verb"], request.path_params["id"]
        self.house.log.append((f"context-{verb}", name, {"reason": body.reason}))
        found = next((c for c in self.contexts if c.context_id == name), None)
        if found is None:
            return refuse(404, "There is no such workspace.")
        if verb == "delete" and (found.agents_live or found.hold):
            return refuse(409, "It is held, or agents live in it.", "Release it first.")
        if verb == "delete":
            self.contexts = [c for c in self.contexts if c is not found]
        else:
            hold = f"operator:0: {body.reason}" if verb == "hold" else ""
            self.contexts = [c.replaced(hold=hold) if c is found else c for c in self.contexts]
        return say(self._contexts_view())

    # --- the hunt and the secrets

    async def _persistence(self, _request: Request) -> Response:
        return say(p.PersistenceView(reports=self.reports))

    async def _rotation(self, _request: Request) -> Response:
        return refuse(503, self.rotation_refused) if self.rotation_refused else say(self.rotation)

    async def _rotate(self, request: Request) -> Response:
        body = ro.RotationBody.read_json(await request.body())
        self.house.log.append(("rotate", "", {"reason": body.reason}))
        self.rotation = self.rotation.replaced(last_at=time.time(), last_ok=True, unfinished=False)
        return say(self.rotation)
