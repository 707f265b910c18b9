"""The ladder of stops, carried out: one plan for preview and act; what tightens acts first, what loosens is recorded first."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from console.api import ladder as v
from console.api import messages as m
from console.domain.agent import Agent, AgentId, AgentState, ProcessIdentity
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.errors import AlreadyEnded, Conflict, ConsoleError, ExitCode, Killed, NotFound, NotRecorded
from console.domain.ids import ControlLevel
from console.domain.kill import Receipt
from console.domain.ladder import Reach, Rung, Scope
from console.domain.words import NO_REASON, counted
from console.egress.service import Egress
from console.enforcement.ladder import MISSING, Line, Plan, Treatment, already_ended, lifted_sessions, plan, takes_over, why_not
from console.enforcement.state import EngineState
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kill.targets import Aim
from console.killswitch.store.atomic_file import Damaged
from console.killswitch.store.registry import Entry, Held, Registry
from console.services.daemons.service import DaemonService
from console.services.fleet.core import Core, now
from console.services.network.isolation import SHARED
from console.services.observe.process_counts import Counting
from console.services.records.record_writer import Scribe
from console.services.stop.freeze_status import unconfirmed
from console.services.stop.service import CHUNK, StopDesk, ends, together
from console.settings.places import Places

COUNT_S = 1.0
"""How long a preview waits for a new count of processes; the press waits for no preview."""
ROUNDS = 200
"""Looks, 50 ms apart, for agents that were still starting when the rung was set."""
SAVED_S = 3.0
"""How long a disk may keep the answer to an isolation waiting."""
CONFIRM_S = 3.0
"""Seconds that a freeze may take until the kernel or the container engine confirms it."""
ACT_S = 30.0
"""How long a change of networks is waited for."""


class LadderDesk:
    """Freeze, isolate, kill; thaw, reconnect; over an agent, a tree, a session, this host, everything."""

    __slots__ = ("_core", "_scribe", "_guard", "_places", "_egress", "_stop", "_daemons", "_counting", "_look_at_guard")

    def __init__(
        self,
        core: Core,
        scribe: Scribe,
        guard: GuardClient,
        places: Places,
        egress: Egress,
        stop: StopDesk,
        *,
        daemons: DaemonService,
        counting: Counting,
        look_at_guard: Callable[[], Awaitable[None]],
    ) -> None:
        self._core, self._scribe, self._guard, self._places, self._egress = core, scribe, guard, places, egress
        self._stop, self._daemons, self._counting, self._look_at_guard = stop, daemons, counting, look_at_guard

    # --- before

    async def preview(self, rung: Rung, scope: Scope) -> v.LadderPreview:
        """What would happen now. Raises UsageProblem, NotFound."""
        scope.check()
        doubts, outside, counted_s = await asyncio.gather(
            asyncio.to_thread(self._doubts, rung), asyncio.to_thread(_outside, self._guard, rung), self._counting.anew(COUNT_S)
        )
        found = plan(self._core.state, rung, scope, doubts)
        refused = ""
        try:
            await _refuse_if_idle(found, self._core.state, self._guard)
            self._refuse_if_stopped(rung)
        except ConsoleError as error:
            refused = str(error)
        view = preview_view(found, refused, self._core.state.pids, counted_s, outside)
        if rung is Rung.KILL:
            await self._daemons.refresh()
            view.daemons = self._daemons.around({line.agent.agent_id for line in found.lines if line.acts})
        return view

    def _doubts(self, rung: Rung) -> dict[str, str]:
        """Agents without a kernel proof, by the guard's own registry. Blocks. What cannot be read is doubted."""
        if rung not in (Rung.KILL, Rung.FREEZE):
            return {}
        live = [i for i, a in list(self._core.state.agents.items()) if a.state.is_live and a.state is not AgentState.STARTING]
        try:
            held = {entry.agent_id: entry for entry in Registry(self._places.guard_dir).load()}
        except (Damaged, OSError) as error:
            return dict.fromkeys(map(str, live), f"the guard's registry cannot be read: {error}")
        return {str(i): why for i in live if (why := doubt_of(held.get(i), rung))}

    def _refuse_if_stopped(self, rung: Rung) -> None:
        state = self._core.state
        if rung is not Rung.KILL and state.killed:
            raise Killed(
                "Everything was stopped: nothing starts and nothing changes until you rearm.", "Rearm first: watchfloor rearm --reason ..."
            )
        if rung is Rung.RECONNECT and state.soft_stop:
            raise Killed(f"Soft stop: {state.soft_stop.rstrip('.')}.", "It lifts by itself on one good signed read of the kill file.")

    # --- the act

    async def act(self, rung: Rung, scope: Scope, reason: str, by: str) -> m.ActView:
        """Everything but the kill. Raises UsageProblem, NotFound, Conflict, Killed, NotRecorded."""
        self._refuse_if_stopped(rung)
        first = plan(self._core.state, rung, scope)
        await _refuse_if_idle(first, self._core.state, self._guard)
        match rung:
            case Rung.FREEZE:
                return await self._freeze(first, reason, by)
            case Rung.THAW:
                return await self._thaw(first, reason, by)
            case Rung.ISOLATE:
                return await self._isolate(first, reason, by)
            case Rung.RECONNECT:
                return await self._reconnect(first, reason, by)
            case Rung.KILL:
                raise AssertionError("a kill has a receipt: see kill()")

    async def kill(self, scope: Scope, reason: str, by: str) -> Receipt:
        """Kills a scope; the receipt as it stands at zero. ``all`` is the press: it latches."""
        if scope.reach is Reach.ALL:
            return await self._stop.zero(await self._stop.press(None, reason, by), ACT_S)
        state = self._core.state
        reason, ended = reason.strip() or NO_REASON, already_ended(state, scope)
        if len(ended) == len(scope.targets) and ended:
            return await self._kill_ended(ended, reason, by)
        await _refuse_if_idle(plan(state, Rung.KILL, scope), state, self._guard)  # waits for nothing where the mark of the stop follows
        receipt = await self._stop.kill(lambda: alive_in(state, scope), reason, by, scope)
        with suppress(AlreadyEnded):
            receipt = together([receipt, await self._kill_ended(ended, reason, by)], []) if ended else receipt
        return receipt

    async def _kill_ended(self, ended: list[Agent], reason: str, by: str) -> Receipt:
        """Raises AlreadyEnded, unless the guard says that something of them runs all the same: then that is killed."""
        alive = await asyncio.to_thread(lambda: [agent.agent_id for agent in ended if _runs(self._guard, agent.agent_id)])
        if alive:
            return await self._stop.zero(await self._stop.press(alive, reason, by), ACT_S)
        raise _over(ended, self._core.state, self._stop.receipts())

    async def _freeze(self, found: Plan, reason: str, by: str) -> m.ActView:
        """Freezes until nothing is left running: what was starting, or asked for by one that is frozen now, is frozen once it runs."""
        state, looked, excluded = self._core.state, False, found.excluded
        frozen: dict[str, str] = {}
        if found.scope.is_everything:  # one word to the guard: nobody slips between two
            await self._tell_guard("freeze", "all", by)
        for _ in range(ROUNDS):
            starting = [i for i in found.ids if state.agents[i].state is AgentState.STARTING]
            ready = [i for i in found.ids if i not in frozen and i not in starting]
            for chunk in _chunks(ready):
                frozen |= await self._freeze_some(chunk, by)
            if looked and not starting and not ready:
                break
            if looked := not starting and not ready:
                await self._look_at_guard()  # from now on who is frozen starts nobody: what it started until then is looked for once more
            await asyncio.sleep(0.05 if starting else 0)
            found = _again(state, found)
        frozen |= await self._not_confirmed([i for i, words in frozen.items() if not words])
        await self._look_at_guard()
        done = [i for i, words in frozen.items() if not words]
        self._record(found, done, reason, by)
        failed = {i: w for i, w in frozen.items() if w} | {str(i): "it is still starting" for i in found.ids if i not in frozen}
        return m.ActView(agents=done, failed=failed, excluded=excluded)

    async def _freeze_some(self, ids: list[AgentId], by: str) -> dict[str, str]:
        answer = await self._tell_guard("freeze", [str(i) for i in ids], by)
        failed: dict[str, str] = {str(i): str(words) for i, words in dict(answer.get("failed", {})).items()}
        named = int(answer.get("frozen", 0)) + len(failed) + len(dict(answer.get("unconfirmed", {})))  # the latter are looked at later
        if named < len(ids) and len(ids) > 1:  # the guard names ten at most: ask one by one
            return {i: w for one in ids for i, w in (await self._freeze_some([one], by)).items()}
        unknown = "the guard did not confirm it" if named < len(ids) else ""
        return {str(i): failed.get(i, unknown) for i in ids}

    async def _not_confirmed(self, ids: list[str]) -> dict[str, str]:
        """Wait until the kernel or the container engine confirms that each agent is frozen. Others are returned with the reason."""
        frozen, until = dict.fromkeys(ids, ""), time.monotonic() + CONFIRM_S
        left = await asyncio.to_thread(unconfirmed, self._guard.call, ids)
        while left and time.monotonic() < until:
            await asyncio.sleep(0.05)
            left = await asyncio.to_thread(unconfirmed, self._guard.call, list(left))
        return frozen | {i: f"not confirmed: {why}" for i, why in left.items()}

    async def _thaw(self, found: Plan, reason: str, by: str) -> m.ActView:
        await self._record_first(found, reason, by)
        for chunk in _chunks(found.ids):
            await self._tell_guard("thaw", [str(i) for i in chunk], by)
        await self._look_at_guard()
        state = self._core.state
        left = {str(i): "it is still frozen by an operator" for i in found.ids if "operator" in state.agents[i].causes}
        others = {i: c for i in found.ids if (c := [x for x in state.agents[i].causes if x != "operator"])}
        notes = [f"{i} stays frozen: {', '.join(causes)}" for i, causes in list(others.items())[:20]]
        return m.ActView(agents=[str(i) for i in found.ids if i not in left], failed=left, excluded=found.excluded, notes=notes)

    async def _isolate(self, found: Plan, reason: str, by: str) -> m.ActView:
        """Isolate the agents of the plan. 1. Mark them, so that no portal opens again, and record the order. 2. The guard kills the relays.

        3. Each network is cut and checked. 4. The result is recorded: before that it is unknown.
        """
        scope = found.scope
        contexts = scope.targets if scope.reach is Reach.SESSION else ()
        self._core.post(e.Isolated(*now(), tuple(found.ids), contexts, by, reason))
        notes = await self._kill_relays(found.ids)
        for context in contexts:
            words = self._core.state.isolated[context]
            self._scribe.job(partial(self._scribe.ledger.isolate_session, context, words, now()[0]))
        await self._networks_settle(found.ids)
        try:
            async with asyncio.timeout(SAVED_S):
                await self._core.saved()
        except (NotRecorded, TimeoutError):
            notes.append("it is cut, but that is not on disk yet: a restart now would not know of it")
        answer = cut_or_not(self._core, found, notes)
        self._scribe.record(_outcome(found, answer, reason, by))
        return answer

    async def _kill_relays(self, ids: list[AgentId]) -> list[str]:
        """Through the kernel, whatever the relays are doing. Where there are no cgroups the portals are closed one by one all the same."""
        for chunk in _chunks(ids):
            try:
                await asyncio.to_thread(self._guard.call, "isolate", scope=[str(i) for i in chunk])
            except ConsoleError as error:
                return [f"the guard did not kill the relays ({error}); they were closed one by one"] if self._has_relays(ids) else []
        return []

    def _has_relays(self, ids: list[AgentId]) -> bool:
        return not set(ids).isdisjoint(self._egress.attached())

    async def _networks_settle(self, ids: list[AgentId]) -> None:
        waiting = {task for i in ids if (task := self._core.switching.get(i)) is not None and not task.done()}
        if waiting:
            await asyncio.wait(waiting, timeout=ACT_S)

    async def _reconnect(self, found: Plan, reason: str, by: str) -> m.ActView:
        state = self._core.state
        contexts = lifted_sessions(state, found.scope)
        await self._record_first(found, reason, by, contexts)
        self._refuse_if_stopped(Rung.RECONNECT)  # a press, or a soft stop, that came while it was recorded
        words = f"{by}: {reason}" if reason else by
        for context_id in contexts:
            await asyncio.to_thread(self._scribe.ledger.reconnect_session, context_id, words, now()[0])
        self._core.post(e.Reconnected(*now(), tuple(found.ids), contexts, by, reason))
        await self._networks_settle(found.ids)
        await self._core.saved()
        notes, failed = [], {}
        for line in found.lines:
            agent = state.agents[line.agent.agent_id]
            if line.acts and agent.isolated:
                failed[str(agent.agent_id)] = "it was isolated again"
            elif line.acts and agent.state.is_live:
                notes.append(f"{agent.agent_id}: network {shown_mode(agent)}" + (f", {agent.network_note}" if agent.network_note else ""))
        return m.ActView(agents=[str(i) for i in found.ids if i not in failed], failed=failed, excluded=found.excluded, notes=notes[:50])

    # --- the guard and the record

    async def _tell_guard(self, op: str, scope: str | list[str], by: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._guard.call, op, scope=scope, cause="operator", by=by)

    def _record(self, found: Plan, ids: list[str], reason: str, by: str) -> None:
        self._scribe.record(_entry(found, ids, reason, by, (), must=True))

    async def _record_first(self, found: Plan, reason: str, by: str, contexts: tuple[str, ...] = ()) -> None:
        entry = _entry(found, [str(i) for i in found.ids], reason, by, contexts, must=False)
        await asyncio.to_thread(self._scribe.record_first, entry)

    def can(self, agent_id: AgentId) -> dict[str, str]:
        """Rung -> "" when it is possible on this agent alone, else why not."""
        state = self._core.state
        return {rung.value: why_not(state, rung, state.agents[agent_id], Scope(Reach.AGENT, agent_id)) for rung in Rung}


def cut_or_not(core: Core, found: Plan, notes: list[str]) -> m.ActView:
    """Who is seen to be cut (or ended, or is starting, and then without network), and why each of the others is not, or not known to be."""
    done, failed = [], {}
    for agent_id in found.ids:
        agent = core.state.agents[agent_id]
        task = core.switching.get(agent_id)
        if task is not None and not task.done():
            failed[str(agent_id)] = f"whether it is cut is not known after {ACT_S:g} s"
        elif agent.state.is_live and agent.state is not AgentState.STARTING and not agent.network_enforced:
            failed[str(agent_id)] = agent.network_note or "it is not enforced"
        else:
            done.append(str(agent_id))
    return m.ActView(agents=done, failed=failed, excluded=found.excluded, notes=notes)


def _outcome(found: Plan, answer: m.ActView, reason: str, by: str) -> Record:
    """What came of an isolation; ok only when everybody in it is seen to be cut."""
    done, left = answer.agents, answer.failed
    parts = [f"{counted(len(done), 'agent')} cut"] if done or not left else []
    if left:
        # What shares this host's network has no point at which anything could be enforced.
        nothing = all(why == SHARED for why in left.values())
        words = "asked, enforced by nothing" if nothing else "asked, not confirmed to be cut"
        parts.append(f"{counted(len(left), 'agent')} {words}: " + "; ".join(f"{i}: {why}" for i, why in list(left.items())[:3]))
    what = f"isolate {found.scope.words()}: {', '.join(parts)}" + (f" ({reason})" if reason else "")
    data = {"scope": found.scope.words(), "agents": done[:CHUNK], "n": len(done), "not_cut": dict(list(left.items())[:CHUNK])}
    data |= {"n_not_cut": len(left), "reason": reason}
    first = next(iter(left), done[0] if done else "")
    return Record(by, "isolate.outcome", what[:1000], verdict="failed" if left else "ok", agent_id=first, data=data, must=True)


def _over(ended: list[Agent], state: EngineState, receipts: Collection[Receipt]) -> AlreadyEnded:
    confirmed, doubted = ends(receipts)
    why = f" ({ended[0].state_reason})" if ended[0].state_reason else ""
    who = f"{ended[0].agent_id} has already ended{why}" if len(ended) == 1 else f"All {len(ended)} agents have already ended"
    doubts = ((agent.agent_id, _doubt_of_end(agent, state, doubted)) for agent in ended if agent.agent_id not in confirmed)
    unsure = [(agent_id, doubt) for agent_id, doubt in doubts if doubt]
    if not unsure:
        return AlreadyEnded(f"{who}: nothing of {'it' if len(ended) == 1 else 'them'} runs.", "Nothing is left to kill.")
    named = ", ".join(agent_id for agent_id, _ in unsure[:5]) if len(ended) > 1 else "it"
    words = f"{who}. Whether a process that {named} started still runs is not known: {unsure[0][1]}."
    answer = AlreadyEnded(words, "Look for what it left running, and end that by hand. A kill ends only what Watchfloor holds.")
    answer.exit_code = ExitCode.BEST_EFFORT
    return answer


def _doubt_of_end(agent: Agent, state: EngineState, doubted: Collection[AgentId]) -> str:
    """Why the end of its first process is not the end of all that it started; empty when the kernel held the whole agent."""
    if agent.control_level is ControlLevel.OBSERVED:
        return "it was only observed, so that nothing held what it started"
    if agent.agent_id in doubted and agent.agent_id not in state.best_effort:
        return "its receipt does not prove it"
    # Only what this supervisor saw itself: of an agent that ended before it began, nothing says what held it.
    is_known = agent.agent_id in state.best_effort or agent.agent_id in state.proven or agent.process is None
    return state.best_effort.get(agent.agent_id, "") if is_known else "it ended before this supervisor began, and no receipt confirms it"


def _runs(guard: GuardClient, agent_id: AgentId) -> bool:
    """Whether the guard says that a process of the agent is alive. Blocks."""
    with suppress(ConsoleError):  # NotFound: it let go of it when it had ended
        return bool(guard.call("procs", agent_id=agent_id).get("alive"))
    return False


def alive_in(state: EngineState, scope: Scope) -> list[AgentId]:
    """Return the agents that a kill of the scope covers now; empty once they have all ended."""
    try:
        return plan(state, Rung.KILL, scope).ids
    except NotFound:
        return []


def _again(state: EngineState, found: Plan) -> Plan:
    """Return the plan for the same stop over the same scope as it is now; empty once they have all ended."""
    try:
        return plan(state, found.rung, found.scope)
    except NotFound:
        return Plan(found.rung, found.scope, ())


def _chunks(ids: list[AgentId]) -> list[list[AgentId]]:
    """A line to the guard holds 4 KiB."""
    return [ids[n : n + CHUNK] for n in range(0, len(ids), CHUNK)]


def _entry(found: Plan, ids: list[str], reason: str, by: str, contexts: tuple[str, ...], *, must: bool) -> Record:
    data = {"scope": found.scope.words(), "agents": ids[:CHUNK], "n": len(ids), "sessions": list(contexts), "reason": reason}
    what = f"{found.rung} {found.scope.words()}: {counted(len(ids), 'agent')}" + (f", {reason}" if reason else "")
    return Record(by, found.rung.value, what[:1000], verdict="ok", agent_id=ids[0] if ids else "", data=data, must=must)


def shown_mode(agent: Agent) -> str:
    """As every view shows it."""
    return str(agent.effective_mode) if agent.network_enforced else "FULL, not enforced"


def doubt_of(entry: Entry | None, rung: Rung) -> str:
    """Why no kernel proof of a kill (or no whole freeze) is possible of what the guard holds so; empty when it is."""
    if entry is None:
        return "the guard does not hold it"
    if rung is Rung.FREEZE:
        if entry.container_id:
            # Only an engine's pause remains where the container's cgroup is not ours to write.
            can_freeze = entry.container_leaf and os.access(f"{entry.container_leaf}/cgroup.freeze", os.W_OK)
            return "" if can_freeze else "only its engine can pause it; the engine must confirm it"
        return "" if entry.leaf else "it has no cgroup: its processes are stopped one by one"
    # The kill itself asks the same function, so the preview and the receipt cannot differ.
    return Aim(entry.agent_id, Held(entry)).note()


@dataclass(frozen=True, slots=True)
class Outside:
    """What a kill of one agent may leave with other programs of this host."""

    reach: str
    """How it could connect to them; empty: its sandbox allows no such connection."""
    programs: tuple[str, ...] = ()
    """Some that it is, or was, connected to. Hostile text."""

    @property
    def words(self) -> str:
        """For the line of one agent."""
        if self.programs:
            return f"connected to other programs: {', '.join(self.programs)}; what those do for it is not killed"
        if self.reach:
            return f"{self.reach}: work that it gives to other programs is not covered"
        return "its sandbox allows no connection to other programs of this host"


async def _refuse_if_idle(found: Plan, state: EngineState, guard: GuardClient) -> None:
    """Raises Conflict where it would stop no agent. It names an adoption only where the guard would not refuse that."""
    try:
        found.refuse_if_idle()
    except Conflict as error:
        agent = found.lines[0].agent if found.instead else None
        if agent is not None and agent.process is not None and state.can_adopt:
            why = await asyncio.to_thread(_why_not_adopted, guard, agent.process)
            raise Conflict(error.what, takes_over(state, agent.agent_id, why)) from error
        raise


def _why_not_adopted(guard: GuardClient, process: ProcessIdentity) -> str:
    """Why the guard would refuse to adopt this process, or empty; a guard that does not answer refuses nothing yet. Blocks."""
    with suppress(ConsoleError):
        found = guard.call("adoptable", pid=process.pid, start_ticks=process.start_ticks, spare=[os.getpid()], around="")
        return str(found["why_not"])
    return ""


def _outside(guard: GuardClient, rung: Rung) -> dict[str, Outside]:
    """What the guard knows of each agent's connections to other programs. Blocks. Nothing when the guard does not say."""
    found, after = dict[str, Outside](), ""
    while rung is Rung.KILL:
        try:
            answer = guard.call("connections", after=after)
        except ConsoleError:
            return found
        for agent_id, row in dict(answer.get("agents", {})).items():
            found[agent_id] = Outside(str(row.get("reach", "")), tuple(map(str, row.get("programs", ()))))
        if not answer.get("next"):
            return found
        after = str(answer["next"])
    return found


def outside_sentence(acting: Sequence[AgentId], outside: Mapping[str, Outside]) -> str:
    """What a kill of these does not cover, and of how many it covers everything."""
    known = [outside[i] for i in acting if i in outside]
    connected, apart = [one for one in known if one.programs], [one for one in known if not one.programs and not one.reach]
    parts = []
    if connected:
        names = list(dict.fromkeys(name for one in connected for name in one.programs))[:3]
        have = "agent is" if len(connected) == 1 else "agents are"
        parts.append(f"{len(connected)} {have} connected to other programs ({', '.join(names)}): what those do for them is not killed.")
    if could := len(known) - len(connected) - len(apart):
        parts.append(f"{counted(could, 'agent')} could give work to other programs of this host: that is not covered.")
    if apart:
        sandbox = "The sandbox of 1 agent allows" if len(apart) == 1 else f"The sandboxes of {len(apart)} agents allow"
        parts.append(f"{sandbox} no connection to other programs: a kill covers all that they do.")
    return " ".join(parts)


def preview_view(
    found: Plan,
    refused: str,
    pids: dict[AgentId, int],
    counted_s: float | None = None,
    outside: Mapping[str, Outside] = MappingProxyType({}),
) -> v.LadderPreview:
    """A plan as it is shown; ``counted_s``: how old ``pids`` are."""
    lists = {t: [_shown(line, outside) for line in found.lines if line.treatment is t] for t in Treatment}
    lists[Treatment.EXCLUDED] += [v.LadderAgent(id=one, control_level="unknown", why=MISSING) for one in found.missing]
    acting = [line.agent for line in found.lines if line.acts]
    named = sum(min(len(lines), v.NAMED) for lines in lists.values())
    return v.LadderPreview(
        action=found.rung,
        reach=found.scope.reach,
        target=",".join(found.scope.targets),
        words=_sentence(found, {t: len(lines) for t, lines in lists.items()}),
        why_not=refused,
        undone_by=found.rung.undone_by,
        latches=found.latches,
        counts=found.counts(),
        processes=sum(pids.get(a.agent_id, 1) for a in acting),
        counted_s=counted_s,
        containers=sum(bool(a.container_id) for a in acting),
        egress=sum(_reaches(line) for line in found.lines if line.acts),
        outside=outside_sentence([a.agent_id for a in acting], outside),
        acts=lists[Treatment.CERTAIN][: v.NAMED],
        best_effort=lists[Treatment.BEST_EFFORT][: v.NAMED],
        excluded=lists[Treatment.EXCLUDED][: v.NAMED],
        unnamed=len(found.lines) + len(found.missing) - named,
    )


def _shown(line: Line, outside: Mapping[str, Outside]) -> v.LadderAgent:
    agent = line.agent
    known = outside.get(agent.agent_id) if line.acts else None
    return v.LadderAgent(
        id=agent.agent_id,
        name=agent.name,
        session=agent.context_id,
        control_level=agent.control_level,
        state=agent.state,
        why=line.why,
        container=bool(agent.container_id),
        egress=_reaches(line),
        outside=known.words if known is not None else "",
    )


def _reaches(line: Line) -> bool:
    return not line.agent.network_enforced or not line.agent.effective_mode.is_closed


def _sentence(found: Plan, counts: dict[Treatment, int]) -> str:
    touched = counts[Treatment.CERTAIN] + counts[Treatment.BEST_EFFORT]
    words = f"{found.rung} of {found.scope.words()}: {counted(touched, 'agent')}"
    if counts[Treatment.BEST_EFFORT]:
        words += f", {counts[Treatment.BEST_EFFORT]} of them best effort"
    if counts[Treatment.EXCLUDED]:
        words += f"; {counts[Treatment.EXCLUDED]} left alone"
    back = f"undone by {found.rung.undone_by}" if found.rung.undone_by else ("cannot be undone" if found.rung is Rung.KILL else "")
    latched = "nothing can start until you rearm" if found.latches else ""
    return "; ".join(part for part in (words, back, latched) if part) + "."
