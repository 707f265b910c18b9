"""The routes behind the sandboxes of the stand-in supervisor: stricter modes with their dry run, and histories of modes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import messages as m
from console.api import network as s
from console.api.agents.adopt import AdoptBody, AdoptedView, Candidate, CandidatesView
from tests.fakes.view_answers import refuse, say

if TYPE_CHECKING:
    from tests.fakes.operator_server import FakeSupervisor

SEVERITY = {"FULL": 0, "PROXIED": 1, "NONE": 2}


def change(at: float, cause: str, mode: str = "", **more: object) -> s.ModeChangeView:
    """One line of a history."""
    return s.ModeChangeView.read({"at": at, "cause": cause, "mode": mode, **more})


def history(session: str, now: float) -> s.ModeHistoryView:
    """A session that began open, learnt something, was cut and given back, and was tightened by a person."""
    changes = [
        change(now - 240, "enforced", "NONE", by="supervisor", enforced=True, ms=3.2),
        change(now - 240, "operator", "NONE", by="operator:0", words="operator:0: pastes customer records"),
        change(now - 900, "enforced", "PROXIED", by="supervisor", enforced=True),
        change(now - 900, "reconnected", "PROXIED", by="operator:0", words="looked at it"),
        change(now - 1500, "enforced", "NONE", by="supervisor", enforced=True),
        change(now - 1500, "isolated", "NONE", by="operator:0", words="asks for pastebin"),
        change(now - 4000, "enforced", "PROXIED", by="supervisor", enforced=False, words="it shares the host's network"),
        change(
            now - 4000, "data", "PROXIED", by="agent:inbox-reader", words="customer letters from crm", sensitivity="CONFIDENTIAL"
        ),
    ]  # fmt: skip
    return s.ModeHistoryView(
        session=session, mode="NONE", sensitivity="CONFIDENTIAL", began_at=now - 7200, changes=changes, registrations=12, left_out=0
    )


class FakeSandboxes:
    """Tests set ``refuse``, ``open_ends`` and ``histories``, and read ``asked``."""

    def __init__(self, desk: FakeSupervisor) -> None:
        self._desk = desk
        self.asked: list[s.StricterBody] = []
        self.adopting = AdoptedView(agent="", moved=3)
        self.adopted: list[AdoptBody] = []
        self.candidates = CandidatesView(
            agent="",
            candidates=[
                Candidate(
                    pid=4711,
                    start_ticks=99,
                    kind="itself",
                    exe="/usr/bin/node",
                    uid=1000,
                    command="claude <b>--resume</b>",
                    cgroup="/user.slice",
                ),
                Candidate(pid=4712, start_ticks=100, kind="descendant", exe="/bin/sh", uid=1000, command="sh -c make"),
                Candidate(pid=4800, start_ticks=150, kind="orphan", exe="/usr/bin/python3", uid=1000, command="python3 & watch.py"),
            ],
            descendants=2,
            orphans=1,
        )
        self.registered: list[s.RegisterDataBody] = []
        self.refuse: tuple[int, str] | None = None
        self.refuse_history: tuple[int, str] | None = None
        self.why_not = ""
        self.open_ends: dict[str, str] = {}
        """Agents nothing would hold, and why."""
        self.histories: dict[str, s.ModeHistoryView] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/api/network/stricter", self._stricter, methods=["POST"]),
            Route("/api/adopt/candidates", self._candidates, methods=["GET"]),
            Route("/api/adopt", self._adopt, methods=["POST"]),
            Route("/api/network/private-data", self._register, methods=["POST"]),
            Route("/api/contexts/{id}/modes", self._modes, methods=["GET"]),
        ]

    async def _stricter(self, request: Request) -> Response:
        body = s.StricterBody.read_json(await request.body())
        self.asked.append(body)
        if self.refuse is not None:
            return refuse(self.refuse[0], self.refuse[1], "Look at it again.")
        named = self._desk.agents[body.scope.target]
        meant = [a for a in self._desk.agents.values() if a.session == named.session and a.state != "ended"]
        agents = [self._switched(a, body) for a in meant]
        if not body.dry_run:
            self._desk.upsert(*(self._tightened(a, body) for a in meant))
        verified = sum(a.verified for a in agents)
        return say(
            s.StricterView(
                dry_run=body.dry_run,
                mode=body.mode,
                sensitivity=named.sensitivity,
                session=named.session,
                sessions=[named.session],
                sessions_total=1,
                agents=agents,
                agents_total=len(agents),
                switched=len(agents),
                verified=verified,
                not_enforceable=len(agents) - verified,
                ms=4.2,
                words=f"Session {named.session} is in {body.mode}: {verified} of {len(agents)} agents verified, in 4 ms.",
                why_not=self.why_not if body.dry_run else "",
            )
        )

    async def _candidates(self, request: Request) -> Response:
        return say(self.candidates.replaced(agent=request.query_params["agent"]))

    async def _adopt(self, request: Request) -> Response:
        body = AdoptBody.read_json(await request.body())
        self.adopted.append(body)
        if self.refuse is not None:
            return refuse(self.refuse[0], self.refuse[1], "Look at it again.")
        self._desk.upsert(self._desk.agents[body.agent].replaced(control_level="adopted"))
        return say(self.adopting.replaced(agent=body.agent))

    async def _register(self, request: Request) -> Response:
        body = s.RegisterDataBody.read_json(await request.body())
        self.registered.append(body)
        if self.refuse is not None:
            return refuse(self.refuse[0], self.refuse[1], "Look at it again.")
        named = self._desk.agents[body.scope.target]
        mode = {"CONFIDENTIAL": "PROXIED", "SECRET": "NONE"}.get(body.sensitivity, named.network_mode)
        stricter = s.StricterBody.read({"scope": body.scope.as_data(), "mode": mode, "reason": body.reason})
        switched = [self._switched(named, stricter)] if SEVERITY[mode] > SEVERITY[named.network_mode] else []
        if not body.dry_run and switched:
            self._desk.upsert(self._tightened(named, stricter))
        return say(
            s.StricterView(
                dry_run=body.dry_run, mode=mode, sensitivity=body.sensitivity, session=named.session, sessions_total=1, agents=switched,
                switched=len(switched), not_enforceable=sum(not a.verified for a in switched), ms=3.0,
                words=f"Session {named.session} is in {mode}, in 3 ms.", why_not=self.why_not if body.dry_run else "",
            )
        )  # fmt: skip

    def _switched(self, agent: m.AgentView, body: s.StricterBody) -> s.SwitchedAgent:
        note = self.open_ends.get(agent.id, "")
        return s.SwitchedAgent(
            id=agent.id, name=agent.name, session=agent.session, before=agent.network_mode, mode=body.mode,
            verified=not note, switched=True, note=note,
        )  # fmt: skip

    def _tightened(self, agent: m.AgentView, body: s.StricterBody) -> m.AgentView:
        note = self.open_ends.get(agent.id, "")
        new = {"network_asked": body.mode, "network_mode": "FULL" if note else body.mode, "network_enforced": not note}
        why = {"network_note": note, "network_why": f"operator:0: {body.reason}", "network_since": time.time()}
        return agent.replaced(**new | why)

    async def _modes(self, request: Request) -> Response:
        if self.refuse_history is not None:
            return say(m.ErrorView(error=self.refuse_history[1]), self.refuse_history[0])
        session = request.path_params["id"]
        return say(self.histories.get(session) or history(session, time.time()))
