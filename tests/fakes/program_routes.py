"""The routes of started programs of the stand-in supervisor: what can be started, worst cases, starts, talking, hooks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import messages as m
from console.api.agents import first_run as fr
from console.api.agents import programs as pm
from console.domain.activity import Entry, Kind
from console.services.launch.programs import TEMPLATES
from tests.fakes.view_answers import refuse, say

if TYPE_CHECKING:
    from tests.fakes.operator_server import FakeSupervisor

NO_PROGRAM = "it was not started as a program that one can talk to (watchfloor run --agent ...)"
HOSTS = ", ".join(f"api-{n}.example.org:443" for n in range(8))


def reach(body: pm.ProgramItem | m.LaunchBody) -> list[pm.ReachView]:
    """As the supervisor words it."""
    line = (
        " ".join(body.argv) if isinstance(body, m.LaunchBody) else f"/usr/local/bin/{body.agent} (2.1.0), model {body.model or 'its own'}"
    )
    boxed, cap = body.sandbox != "none", body.limits.get("cost")
    full = body.network_mode in (None, "FULL")
    files = "its workspace, reads and writes" + ("; nothing else" if boxed else "; reads and writes whatever you may on this machine")
    hosts = "FULL: every host that this machine reaches" if full else f"PROXIED: 12 allowlist entries: {HOSTS}"
    return [
        pm.ReachView(what="program", words=line),
        pm.ReachView(what="files", words=files, amber=not boxed),
        pm.ReachView(what="hosts", words=hosts, amber=full),
        pm.ReachView(what="scopes", words=f"a session of its own; kinds of effects: {', '.join(body.scopes or ['all'])}"),
        pm.ReachView(what="data", words=body.sensitivity),
        pm.ReachView(
            what="cost", words="no limit: it may spend without end" if cap is None else f"{cap:.2f} USD at most", amber=cap is None
        ),
    ]


def first_run(now: float) -> fr.FirstRunView:
    """Claude Code's hook heard, Codex's not installed, no bucket."""
    hook = m.SourceView(source="", available=False, reason="asks before each tool call",
                        can_see="Each tool call before it happens.", can_stop="A call that no rule allows.")  # fmt: skip
    heard = {"source": "hook_claude-code", "available": True, "state": "heard", "looks_in": ["~/.claude/settings.json"],
             "watching": "12 calls", "looked_at": now - 3}  # fmt: skip
    missing = {"source": "hook_codex", "state": "not_installed", "looks_in": ["~/.codex/hooks.json"]}
    looks = [
        m.SourceView(source="agent_sockets", available=True, state="ready", reason="one socket for each agent",
                     watching="0 open", looks_in=["/run/watchfloor/agents"], can_see="What an agent asks and reports by itself.",
                     can_stop="Nothing by itself."),
        hook.replaced(**heard),
        hook.replaced(**missing),
        m.SourceView(source="remote_file", available=False, state="not_configured", reason="the setting is empty",
                     watching="no bucket is set", looks_in=["remote.bucket"], can_see="Orders to kill, from anywhere.",
                     can_stop="Nothing yet: it needs a bucket and keys."),
    ]  # fmt: skip
    defaults = [
        fr.DefaultView(name="Network", words="FULL; stricter with private data", amber=True),
        fr.DefaultView(name="Unknown tool call", words="asks you"),
        fr.DefaultView(name="Cost", words="$5.00 an agent, $20.00 a day"),
        fr.DefaultView(name="Depth and children", words="3 levels, 6 each"),
        fr.DefaultView(name="Rearm after a kill", words="no passphrase set: typed id", amber=True),
        fr.DefaultView(name="Approvals", words="denied by themselves in 10 min"),
    ]
    return fr.FirstRunView(looks=looks, defaults=defaults)


def hook_preview() -> fr.HookPreview:
    """As the supervisor words it."""
    diff = ["--- ~/.claude/settings.json", "+++ ~/.claude/settings.json (new)", " {", '-  "model": "x"', '+  "model": "x",',
            '+  "hooks": {"PreToolUse": [{"matcher": "*"}]}', " }"]  # fmt: skip
    return fr.HookPreview(
        program="claude-code", file="~/.claude/settings.json", changed=True, diff=diff, gaps=["A project can switch it off."]
    )


class FakePrograms:
    """Tests set the fields and read what was asked."""

    def __init__(self, desk: FakeSupervisor) -> None:
        self._desk = desk
        self.view = pm.ProgramsView(
            programs=[pm.ProgramView(agent="claude-code", path="/usr/local/bin/claude", version="2.1.0"),
                      pm.ProgramView(agent="codex", why_not="not available, because there is no codex in the usual places")],
            templates=list(TEMPLATES), memory_free_mib=6144, memory_free_min_mib=1024,
        )  # fmt: skip
        self.previews: list[pm.ProgramItem | m.LaunchBody] = []
        self.started: list[pm.ProgramItem] = []
        self.said: list[tuple[str, str, str]] = []
        self.why_not = ""
        """Of every preview."""
        self.fails = ""
        """Of every start."""
        self.refuse: tuple[int, str] | None = None
        """Of every message and interrupt."""
        self.talks: dict[str, str] = {}
        """Whom one can talk to: why not, or empty."""
        self.ending = pm.EndedView(id="", done="ended", words="no process of it is left")
        """Of every end."""
        self.hook_words = ""
        """Of every agent's detail."""
        self.first_run: fr.FirstRunView | None = first_run(time.time())
        """None: refused."""
        self.hook_preview: fr.HookPreview | None = hook_preview()
        """None: refused."""

    def told(self, detail: m.AgentDetailView) -> m.AgentDetailView:
        """An agent's detail with what this part says of it."""
        why = self.talks.get(detail.agent.id, NO_PROGRAM)
        return detail.replaced(can={**detail.can, "say": why, "interrupt": why, "end": why}, hook=self.hook_words)

    def routes(self) -> list[Route]:
        return [
            Route("/api/programs", self._listed, methods=["GET"]),
            Route("/api/programs", self._start, methods=["POST"]),
            Route("/api/programs/preview", self._preview, methods=["POST"]),
            Route("/api/programs/preview-command", self._preview_command, methods=["POST"]),
            Route("/api/agents/{id}/message", self._message, methods=["POST"]),
            Route("/api/agents/{id}/interrupt", self._interrupt, methods=["POST"]),
            Route("/api/agents/{id}/end", self._end, methods=["POST"]),
            Route("/api/first-run", self._first_run, methods=["GET"]),
            Route("/api/hooks/{program}/preview", self._hook_preview, methods=["GET"]),
        ]

    async def _listed(self, _request: Request) -> Response:
        return say(self.view)

    async def _first_run(self, _request: Request) -> Response:
        return say(self.first_run) if self.first_run else refuse(404, "There is no such route.")

    async def _hook_preview(self, request: Request) -> Response:
        if self.hook_preview is None:
            return refuse(400, "~/.claude/settings.json is not JSON.", "Fix it. Watchfloor left it unchanged.")
        return say(self.hook_preview.replaced(program=request.path_params["program"]))

    def _preview_of(self, body: pm.ProgramItem | m.LaunchBody, agent: str) -> pm.ProgramPreview:
        self.previews.append(body)
        if self.why_not:
            return pm.ProgramPreview(agent=agent, why_not=self.why_not, remedy="End some agents.", exit_code=5)
        return pm.ProgramPreview(agent=agent, reach=reach(body))

    async def _preview(self, request: Request) -> Response:
        body = pm.ProgramsBody.read_json(await request.body())
        return say(pm.ProgramPreviews(items=[self._preview_of(item, item.agent) for item in body.items]))

    async def _preview_command(self, request: Request) -> Response:
        return say(self._preview_of(m.LaunchBody.read_json(await request.body()), "command"))

    async def _start(self, request: Request) -> Response:
        item = pm.ProgramsBody.read_json(await request.body()).items[0]
        self.started.append(item)
        if self.fails:
            return say(pm.ProgramsStarted(items=[pm.StartedView(error=self.fails, remedy="watchfloor doctor", exit_code=6)]))
        agent = m.AgentView(
            id="started-1", name=item.name or item.agent, session="started-1", control_level="managed", sandbox=item.sandbox
        )
        self._desk.upsert(agent)
        view = pm.StartedView(id=agent.id, control_level="managed", network_mode=item.network_mode or "FULL", network_enforced=True)
        return say(pm.ProgramsStarted(items=[view]))

    async def _message(self, request: Request) -> Response:
        return self._talk(request.path_params["id"], "said", pm.SayBody.read_json(await request.body()).text)

    async def _interrupt(self, request: Request) -> Response:
        return self._talk(request.path_params["id"], "interrupted", "")

    async def _end(self, request: Request) -> Response:
        agent_id, body = request.path_params["id"], pm.EndBody.read_json(await request.body())
        self.said.append((agent_id, "end", body.reason))
        return say(self.ending.replaced(id=agent_id))

    def _talk(self, agent_id: str, done: str, text: str) -> Response:
        self.said.append((agent_id, done, text))
        if self.refuse is not None:
            return refuse(self.refuse[0], self.refuse[1], "watchfloor fleet shows its state.")
        if text:
            self._desk.activity.keep(agent_id, [Entry(Kind.MESSAGE, f"said-{len(self.said)}", time.time(), text, who="operator:0")])
        return say(pm.SaidView(id=agent_id, done=done))  # type: ignore[arg-type]
