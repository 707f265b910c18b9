"""Find agents that this supervisor follows and the guard does not know. An older copy of the guard's record was restored, for example.

A kill may miss them, so no panic is called confirmed while there are any. The guard is told, and reports them itself from then on.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from console.domain.agent import Agent, AgentId, AgentState
from console.domain.engine.event import NOT_IN_RECORD, STILL_RUNS, STOPPED, WENT, EndsLearnt
from console.domain.errors import ConsoleError, NotFound, TimedOut, Unavailable, Unreachable
from console.domain.ids import ControlLevel
from console.domain.kill import Outcome, Receipt, StepStatus, Target
from console.domain.verdict import judged
from console.enforcement.state import EngineState
from console.killswitch.client.guard_client import GuardClient
from console.services.fleet.core import Core, now
from console.services.notices.shown import Notice

log = logging.getLogger(__name__)
MARK = "unaccounted"
"""In the evidence of such a target."""
WHY = "The guard does not know it: nothing was signalled, and whether anything of it runs is unknown."
UNREACHED = "the guard does not know it: no kill reaches it for certain"
ASK_AGAIN_S, LONGEST_REST_S = 1.0, 8.0
"""Between two rounds of asking the guard who has ended; the longer one while it stays silent, or nothing changes."""
_UNKNOWN = "unknown to the guard"
_NOT_ITS_OWN = (AgentState.STARTING, AgentState.ALIVE_AFTER_KILL)
"""Before its ticket is confirmed nothing of it runs; and of one whose end a kill did not prove this has been said."""


def is_held_by_us(agent: Agent) -> bool:
    """Return whether the guard must know the agent: it has run behind a ticket, and its end was not confirmed."""
    return agent.state.is_live and agent.control_level is not ControlLevel.OBSERVED and agent.process is not None


def targets_beyond(state: EngineState, receipt: Receipt) -> tuple[Target, ...]:
    """Return the agents that a receipt for everything does not name, each as a target that is not confirmed."""
    if receipt.scope != "all":
        return ()
    named = {t.agent_id for t in receipt.targets}
    left = [state.agents[i] for i in sorted(state.live) if i not in named and is_held_by_us(state.agents[i])]
    left += [state.agents[i] for i in sorted(state.open_ends) if i not in named]
    return tuple(Target(a.agent_id, a.control_level.value, Outcome.NOT_PROVEN, None, {"why": WHY, MARK: True}) for a in left)


def beside(receipt: Receipt, targets: tuple[Target, ...]) -> Receipt:
    """The receipt with these targets as well: not proven, and its step of the proof amber."""
    known = {t.agent_id for t in receipt.targets}
    if not (targets := tuple(t for t in targets if t.agent_id not in known)):
        return receipt
    words = f"{len(targets)} agents that the guard does not know are not confirmed dead"
    zero = receipt.zero
    if zero.is_ok:
        receipt = receipt.with_step(replace(zero, status=StepStatus.UNKNOWN, detail=f"{zero.detail}; {words}"))
    return judged(replace(receipt, targets=receipt.targets + targets))


def kept(receipt: Receipt | None) -> tuple[Target, ...]:
    """Those that an earlier form of the receipt spoke of."""
    return tuple(t for t in receipt.targets if t.evidence.get(MARK)) if receipt is not None else ()


async def counted(core: Core, guard: GuardClient, receipt: Receipt) -> Receipt:
    """Return the guard's receipt of a panic, with the agents that the guard does not know. The guard is told about them."""
    targets = targets_beyond(core.state, receipt)
    if targets:
        await _tell(guard, [t.agent_id for t in targets])
    return beside(receipt, targets)


async def missed(core: Core, guard: GuardClient, notice: Notice, agent_id: AgentId) -> None:
    """The guard says that it does not know an agent. What has ended meanwhile, and what has no ticket yet, it need not know."""
    state = core.state
    agent = state.agents.get(agent_id)
    if agent is None or not is_held_by_us(agent) or agent.state in _NOT_ITS_OWN:
        return
    state.best_effort[agent_id] = UNREACHED
    core.dirty.add(agent_id)
    notice(
        f"{agent_id}: {UNREACHED}; its record is older than the agent. No panic is confirmed until a rearm has checked everything", "red"
    )
    await _tell(guard, [agent_id])


async def ask_of_the_gone(core: Core, guard: GuardClient, notice: Notice) -> None:
    """Ask the guard whether agents that were gone at this supervisor's start have ended, until it has answered for each of them.

    An agent that the guard does not know may live. A start never waits for this.
    """
    alive, told = set[AgentId](), set[AgentId]()
    state, rest, is_said = core.state, ASK_AGAIN_S, False
    while waiting := [i for i in sorted(state.open_ends) if i not in told]:
        found, is_silent = await _ask(guard, waiting)
        lost = [i for i, why in found.items() if why == _UNKNOWN]
        if lost:
            words = (
                f"whether {len(lost)} agents ended while no supervisor ran is not known ({lost[0]}): the guard's record has none of them"
            )
            notice(f"{words}. No panic is confirmed until a rearm has checked everything", "red")
        if not lost or await _tell(guard, [str(i) for i in lost]):
            told.update(i for i, why in found.items() if why in (_UNKNOWN, NOT_IN_RECORD))
        alive.update(i for i, why in found.items() if why == STILL_RUNS)
        if found:
            core.post(EndsLearnt(*now(), tuple((i, _in_words(why, was_alive=i in alive)) for i, why in found.items())))
        if is_silent and not is_said:
            is_said = True
            words = f"whether {len(waiting) - len(found)} agents ended while no supervisor ran is not known: the guard does not say"
            notice(f"{words}; it is asked again. Until it answers, no panic is confirmed", "red")
        rest = ASK_AGAIN_S if found else min(2 * rest, LONGEST_REST_S)
        await asyncio.sleep(rest)


def _in_words(why: str, *, was_alive: bool) -> str:
    return NOT_IN_RECORD if why == _UNKNOWN else STOPPED if why == WENT and was_alive else why


async def _ask(guard: GuardClient, ids: list[AgentId]) -> tuple[dict[AgentId, str], bool]:
    """(what the guard says of each, whether it was silent about any); the first silence ends the round."""
    found, is_silent = dict[AgentId, str](), False
    for agent_id in ids:
        try:
            answer = await asyncio.to_thread(guard.call, "procs", agent_id=agent_id)
            found[agent_id] = STILL_RUNS if answer.get("alive", True) else WENT
        except NotFound:
            found[agent_id] = _UNKNOWN
        except Unavailable:  # it says already that agents are missing from its record
            found[agent_id] = NOT_IN_RECORD
        except (Unreachable, TimedOut):
            return found, True
        except ConsoleError:
            is_silent = True
    return found, is_silent


async def _tell(guard: GuardClient, ids: list[str]) -> bool:
    """Whether it was heard; one that does not answer is asked, and told, again."""
    try:
        await asyncio.to_thread(guard.call, "missed", scope=ids[:40])
    except ConsoleError:
        return False
    return True
