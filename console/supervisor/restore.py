"""Start-up: what the ledger held, who of it still lives, what the guard holds besides. A tombstone restores nothing (promise 3)."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any, Protocol

from console.domain.agent import Agent, AgentId
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, NotFound, TimedOut, Unreachable
from console.domain.ids import CONTEXT_ID, ControlLevel
from console.domain.network import LOOSEST, STRICTEST, NetworkMode, Sensitivity, stricter_mode
from console.domain.process.failpoints import failpoint
from console.killswitch.store.atomic_file import Damaged
from console.killswitch.store.registry import Registry
from console.services.adoption.service import lives
from console.services.approvals.approval_runner import open_approvals
from console.services.approvals.dry_run_runner import restored_plans
from console.services.budgets.burn_rate import BurnBook
from console.services.budgets.restore import kept_budget, recall_burn
from console.services.conversation.stdin_channel import sweep_channels
from console.services.fleet.core import Core, now
from console.services.launch.service import Launcher
from console.services.launch.tool_offers import sweep_offers
from console.services.observe.unknown_agents import ask_of_the_gone
from console.services.policy.sequence_marks import kept_lineages
from console.services.rearm.service import latched_kills
from console.services.stop.self_test import BY as CANARY
from console.services.stop.service import StopDesk, proven_dead
from console.settings.options import Options
from console.settings.places import Places
from console.supervisor.agent_door import AgentDoors
from console.supervisor.machinery import Machinery
from console.supervisor.runner import Runner

log = logging.getLogger(__name__)
AGENTS_BACK = 5000
ASK_AGAIN_S = 1.0
AT_ONCE_S, LATER_S = 1.0, 5.0
"""How long the guard may take for one answer: while a start waits for it, and afterwards."""
HOUR_S = 3600.0


class Starting(Protocol):
    """What a supervisor that starts has put together so far (compose)."""

    places: Places
    options: Options
    core: Core
    machinery: Machinery
    burn: BurnBook
    doors: AgentDoors
    launcher: Launcher
    stop: StopDesk
    runner: Runner


async def restore(it: Starting) -> None:
    """Restore the instance after a start.

    1. receipts, and requests not sealed
    2. the guard's latch
    3. agents that live
    4. agents that the ledger does not know
    5. what was half done
    """
    failpoint("restore.begun")
    it.machinery.scribe.complete_egress()
    unwritten = it.stop.load()
    status: dict[str, Any] = it.machinery.guard_status
    killed = bool(status.get("latched"))
    newest = it.machinery.ledger.agents(include_ended=True, limit=AGENTS_BACK)
    agents = tuple(sorted(newest, key=lambda agent: agent.started_at))  # as they were listed before
    alive = {a.agent_id for a in agents if not killed and a.state.is_live and a.process is not None and _reattach(it, a)}
    proven = proven_dead(it.stop.receipts())
    why = str(status.get("reason", "")) if killed else ""
    isolated, budget = it.machinery.ledger.isolated_sessions(), kept_budget(it.machinery.ledger, it.options, now()[0])
    it.core.post(e.LineagesRestored(*now(), *kept_lineages(it.machinery.ledger)))
    it.core.post(e.Restored(*now(), agents, frozenset(alive), _contexts(it), killed, why, proven, isolated, budget))
    it.core.post(e.ApprovalsRestored(*now(), *open_approvals(it.machinery.ledger)))
    it.core.post(restored_plans(it.machinery.ledger, killed))
    at = now()[0]
    it.core.meters.restore(at, it.machinery.ledger.spend_today(at).cost_usd)
    recall_burn(it.burn, it.core.state, it.machinery.ledger.samples_since(now()[0] - HOUR_S), *now())
    for agent_id in alive:
        if it.core.state.agents[agent_id].control_level is ControlLevel.ADOPTED:
            continue  # it has no socket of ours, and no process that is our child
        await _reopen(it, it.core.state.agents[agent_id])
    await asyncio.to_thread(sweep_offers, it.places, {str(i) for i in alive})
    await asyncio.to_thread(sweep_channels, it.places.agents_dir, {str(i) for i in alive})
    await asyncio.to_thread(it.machinery.contexts.rejoin)
    await _stop_strangers(it, alive)
    it.runner.task(ask_of_the_gone(it.core, it.machinery.guard, it.machinery.notice))
    latched = await asyncio.to_thread(latched_kills, it.places.guard_dir, status)
    for kill_id in unwritten:
        it.stop.finish(kill_id, latched)


def _reattach(it: Starting, agent: Agent) -> bool:
    if agent.control_level is ControlLevel.OBSERVED:
        return False  # its source sees it again, or does not: nothing of it is held here
    if agent.control_level is ControlLevel.ADOPTED:
        return lives(it.machinery.guard, agent)
    try:
        it.launcher.reattach(agent)
    except (ConsoleError, OSError):
        return False
    return True


async def _reopen(it: Starting, agent: Agent) -> None:
    """Its socket again, in the folder it was given; its portal comes with Envoy."""
    uid = it.options.agents.uid if os.geteuid() == 0 else None
    sock = await it.doors.open(agent.agent_id, uid)
    it.launcher.talk.again(agent, sock.parent)
    it.doors.confirm(agent.agent_id, agent.container_id)
    it.launcher.watch(agent.agent_id)


async def _stop_strangers(it: Starting, alive: set[AgentId]) -> None:
    """What the guard holds and this supervisor cannot follow runs without policy and caps: it is stopped, and that is recorded."""
    registry = Registry(it.places.guard_dir)
    try:
        held = [entry.agent_id for entry in await asyncio.to_thread(registry.load)]
    except (Damaged, OSError) as error:
        it.machinery.notice(f"the guard's registry cannot be read: {error}", "red")
        return
    asked = [i for i in held if AgentId(i) not in alive and not i.startswith(f"{CANARY}-")]
    if silent := await _ask_and_stop(it, asked, AT_ONCE_S):
        words = f"whether {len(silent)} agents from before the start still run is unknown: the guard did not answer; it is asked again"
        it.machinery.notice(words, "red")
        it.runner.task(_until_answered(it, silent))


async def _until_answered(it: Starting, silent: list[str]) -> None:
    """A guard that is slow at start-up says it later; until then they are neither strangers nor gone."""
    while silent and not it.core.state.killed:
        await asyncio.sleep(ASK_AGAIN_S)
        silent = await _ask_and_stop(it, silent, LATER_S)


async def _ask_and_stop(it: Starting, ids: list[str], timeout_s: float) -> list[str]:
    """Kill those that have processes. Returns those of which the guard did not answer. Its first silence ends the round: a start waits
    once."""
    strangers, silent = [], []
    for number, agent_id in enumerate(ids):
        try:
            said = await asyncio.to_thread(it.machinery.guard.call, "procs", agent_id=agent_id, timeout_s=timeout_s)
            if said.get("alive", True):
                strangers.append(agent_id)
        except NotFound:
            continue
        except (Unreachable, TimedOut):
            silent += ids[number:]
            break
        except ConsoleError:
            silent.append(agent_id)
    if strangers and not it.core.state.killed:
        await it.stop.press([AgentId(i) for i in strangers], "no supervisor follows it after a restart", "supervisor")
    return silent


def _contexts(it: Starting) -> dict[str, tuple[Sensitivity, NetworkMode]]:
    """Every session's ratchet. Where the ledger was lost in a folder that was in use, each session with a workspace reads as SECRET."""
    levels, modes = it.machinery.ledger.levels(), it.machinery.ledger.modes()
    found = {}
    for context_id in levels.keys() | modes.keys():
        level = levels.get(context_id, Sensitivity.PUBLIC)
        found[context_id] = (level, stricter_mode(it.core.state.modes.of(level), modes.get(context_id, LOOSEST)))
    if it.machinery.ledger_lost and it.places.workspaces_dir.is_dir():
        for folder in it.places.workspaces_dir.iterdir():
            if CONTEXT_ID.match(folder.name):
                lost = {"cause": "restart", "by": "supervisor"}
                it.machinery.ledger.raise_sensitivity(folder.name, Sensitivity.SECRET, "ledger lost", "supervisor", now()[0], **lost)
                found[folder.name] = (Sensitivity.SECRET, STRICTEST)
    return found
