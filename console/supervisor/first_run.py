"""What is told before the first agent: agent sockets, hooks and the kill file as they are found, and what holds until told otherwise."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.agents.first_run import DefaultView, FirstRunView, FoundProgram, SelfTestView
from console.api.armed import ArmedView
from console.api.messages import SourceView
from console.api.policy.hooks import HooksView, ProgramHook
from console.domain.amounts import cap_usd
from console.domain.errors import ConsoleError
from console.domain.network import Sensitivity, mapping_of
from console.policy.rules.last_good import Kept
from console.sandbox.programs import installed_at
from console.services.hooks.installation import SHOWN_MAX, preview
from console.services.policy.service import PolicyDesk
from console.services.routes.responses import Handlers, answer
from console.settings.options import Options
from console.settings.places import Places
from console.sources.home_dirs import read_foreign
from console.sources.hook_settings import cannot_run
from console.sources.interface import ONLY_OURS
from console.sources.kind import Lacks
from console.sources.kinds import HOOKS, KINDS
from console.supervisor.agent_door import AgentDoors
from console.supervisor.follow import Follower

NEVER = "no call has reached the supervisor yet"
_PATHS = ("proven", "in_doubt", "not_configured", "unavailable")


class FirstLook:
    """Collect what a first run shows. Everything is read again at each question."""

    def __init__(
        self,
        places: Places,
        options: Options,
        *,
        rules: Callable[[], Kept],
        heard: Callable[[], HooksView],
        armed: Callable[[], ArmedView],
        sockets: Callable[[], int],
        passphrase: Callable[[], str] = lambda: "unknown",
    ) -> None:
        self._places, self._options, self._rules = places, options, rules
        self._heard, self._armed, self._sockets, self._passphrase = heard, armed, sockets, passphrase

    async def view(self) -> FirstRunView:
        """On the loop; files are read beside it."""
        heard = {hook.program: hook for hook in self._heard().programs}
        hooks = await asyncio.to_thread(lambda: [hook_look(program, Path.home(), heard.get(program)) for program in HOOKS])
        programs = await asyncio.to_thread(self._programs)
        looks = [self._agent_sockets(), *hooks, self._remote_file()]
        return FirstRunView(
            looks=looks,
            defaults=[*defaults(self._options, self._rules()), rearm_takes(self._passphrase())],
            programs=programs,
            programs_note="" if self._looks_outside() else ONLY_OURS,
        )

    def _looks_outside(self) -> bool:
        return self._places.is_default or bool(self._options.discover_root)

    def _programs(self) -> list[FoundProgram]:
        """Where sources look: in a home that is named, else in our own; programs on PATH belong to no home that is named."""
        if not self._looks_outside():
            return []
        named = self._options.discover_root
        return found_programs(Path(named or Path.home()), "" if named else os.environ.get("PATH", ""))

    def _agent_sockets(self) -> SourceView:
        folder, number = self._places.agents_dir, self._sockets()
        ready = os.access(folder, os.W_OK | os.X_OK)
        return SourceView(
            source="agent_sockets",
            available=ready,
            state="ready" if ready else "broken",
            reason="one socket for each agent",
            watching=f"{number} open" if ready else "no socket can be made: the folder cannot be written to",
            looks_in=[_shown(folder)],
            can_see="What an agent asks and reports by itself: approvals, spawns, usage; LangGraph, A2A and the small client speak it.",
            can_stop="Nothing by itself. Who asks is told by the kernel, never by what it says.",
            looked_at=time.time(),
        )

    def _remote_file(self) -> SourceView:
        remote = self._options.remote
        path = next((p for p in self._armed().paths if p.name == "remote"), None)
        state = path.state if path is not None and path.state in _PATHS else "unknown"
        lease = "stop" if remote.lease == "stop" else "alarm only"
        there = [f"{remote.bucket}/{remote.key}"] if remote.bucket else ["remote.bucket"]
        return SourceView(
            source="remote_file",
            available=state == "proven",
            state=state,
            reason=f"read every {remote.poll_s:g} s at most; unreadable for 60 s: {lease}" if remote.bucket else "the setting is empty",
            watching=path.detail if path is not None else "",
            looks_in=there,
            can_see="Orders to kill, from anywhere, for many hosts at once.",
            can_stop="Everything here, with proof." if remote.bucket else "Nothing yet: it needs a bucket and keys.",
            looked_at=(path.checked_at or 0.0) if path is not None else 0.0,
        )


def found_programs(home: Path, path: str) -> list[FoundProgram]:
    """Every kind of agent that is installed for this account or wrote something in it. Blocks for a moment."""
    found = []
    for kind in KINDS:
        at = next(iter(installed_at(kind.program.name, home, path)), "")
        folders = () if isinstance(kind.transcripts, Lacks) else tuple(home / one.home for one in kind.transcripts.own)
        wrote = next((folder for folder in folders if folder.is_dir()), None)
        if at or wrote is not None:
            source = "" if isinstance(kind.transcripts, Lacks) else kind.transcripts.source
            there = _shown(wrote) if wrote is not None else ""
            found.append(
                FoundProgram(kind=kind.name, title=kind.program.title, source=source, path=_shown(Path(at)) if at else "", wrote=there)
            )
    return found


def hook_look(program: str, home: Path, heard: ProgramHook | None) -> SourceView:
    """Whether our hook stands in this user's settings, and whether it was heard: only then it is ticked. Blocks."""
    file = home / HOOKS[program].place
    state, why = _hook_state(program, file)
    calls = heard.calls if heard is not None else 0
    if state == "installed" and calls:
        state = "heard"
    return SourceView(
        source=f"hook_{program}",
        available=state == "heard",
        state=state,
        reason="asks before each tool call",
        watching=f"{calls:,} {'call' if calls == 1 else 'calls'}" if calls and state != "broken" else why or NEVER,
        looks_in=[_shown(file)],
        can_see="Each tool call before it happens.",
        can_stop="A call that no rule allows; watchfloor install-hook shows the diff first.",
        looked_at=heard.last_at if heard is not None and calls else 0.0,
    )


def _hook_state(program: str, file: Path) -> tuple[str, str]:
    """(state, why)."""
    try:
        found = read_foreign(file, SHOWN_MAX)
        if not found.whole:
            return "unreadable", f"{_shown(file)} is larger than {SHOWN_MAX} bytes"
        hook = HOOKS[program]
        command = hook.installed(found.data, str(file))
        if not command:
            return "not_installed", ""
        if broken := cannot_run(command):
            return "broken", f"{broken}; install it again"
        skipped = hook.why_skipped(found.data, file)
    except FileNotFoundError:
        return ("not_installed", "") if file.parent.is_dir() else ("no_program", f"{_shown(file.parent)} is not there")
    except ConsoleError as error:
        return "unreadable", error.what
    except OSError as error:
        return "unreadable", f"{_shown(file)} cannot be read: {error.strerror or error}"
    return ("skipped", skipped) if skipped else ("installed", "")


def defaults(options: Options, rules: Kept) -> list[DefaultView]:
    """What holds for an agent whose start names nothing else, as the settings say."""
    modes = mapping_of(options.network.modes)
    usual = modes.of(Sensitivity.PUBLIC)
    stricter = any(modes.of(level) is not usual for level in Sensitivity)
    agent, day = options.budgets.agent.get("cost"), options.budgets.day.get("cost")
    caps = [f"{cap_usd(cap)} {whose}" for cap, whose in ((agent, "an agent"), (day, "a day")) if cap is not None]
    spawn = options.spawn
    return [
        DefaultView(
            name="Network", words=f"{usual}; stricter with private data" if stricter else str(usual), amber=not usual.is_restricted
        ),
        _unknown_call(options, rules),
        DefaultView(name="Cost", words=", ".join(caps) or "no limit is set", amber=not caps),
        DefaultView(name="Depth and children", words=f"{spawn.max_depth} levels, {spawn.max_children} each"),
        DefaultView(name="Approvals", words=f"denied by themselves in {_span(options.approvals.ttl_s)}"),
    ]


def rearm_takes(passphrase: str) -> DefaultView:
    """What it takes to release a kill: before the first one is when a person can still choose it in peace."""
    words = {
        "set": "takes your passphrase",
        "not_set": "no passphrase set: typed id",
        "broken": "passphrase cannot be checked",
    }
    return DefaultView(name="Rearm after a kill", words=words.get(passphrase, "not known yet"), amber=passphrase != "set")


def _unknown_call(options: Options, rules: Kept) -> DefaultView:
    if rules.settings is None:
        return DefaultView(name="Unknown tool call", words=f"denied, as every call: {rules.problem}", amber=True)
    if not options.programs.hooks:
        return DefaultView(name="Unknown tool call", words="not checked: programs.hooks is off", amber=True)
    return DefaultView(name="Unknown tool call", words="asks you")


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def _shown(path: Path) -> str:
    """Below the home with a tilde; bytes that are no text replaced."""
    text = str(path).encode("utf-8", "replace").decode()
    home = str(Path.home())
    return f"~{text[len(home) :]}" if text.startswith(f"{home}/") else text


def first_run_routes(places: Places, options: Options, policy: PolicyDesk, doors: AgentDoors, follower: Follower) -> Handlers:
    """GET /api/first-run and GET /api/hooks/{program}/preview, which read; POST /api/kill-switch/test, which kills what it started."""
    look = FirstLook(
        places,
        options,
        rules=lambda: policy.kept,
        heard=lambda: doors.hooks.view(),
        armed=follower.armed,
        sockets=doors.count,
        passphrase=lambda: str((follower.guard_status.get("rearm") or {}).get("passphrase", "unknown")),
    )

    async def first_run(_request: Request) -> Response:
        return answer(await look.view())

    async def hook_preview(request: Request) -> Response:
        return answer(await asyncio.to_thread(preview, places, request.path_params["program"]))

    async def tested(_request: Request) -> Response:
        flight = await follower.self_test.asked()
        return answer(SelfTestView(proven=flight.proven, words=flight.words, ms=flight.ms))

    return {
        ep.SELF_TEST: tested,
        ep.FIRST_RUN: first_run,
        ep.HOOK_PREVIEW: hook_preview,
    }
