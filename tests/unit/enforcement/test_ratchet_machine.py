"""Promise 4 against an oracle: whatever happens in whatever order, nothing ever gets looser, for nobody and for no session.

The oracle keeps, beside the engine and by other means, what every session was ever told to be; the ledger is the dictionary that a restart
gets back. Launches, children in sessions of their own, data by agents and operators, deaths, id reuse and restarts come in any order.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from console.domain.agent import Agent, AgentId, ContextId, ProcessIdentity
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode, Sensitivity
from tests.fakes.playbook import Playbook

LEVELS = list(Sensitivity)
MODES = list(NetworkMode)
ASKS = {Sensitivity.PUBLIC: NetworkMode.FULL, Sensitivity.INTERNAL: NetworkMode.FULL, Sensitivity.CONFIDENTIAL: NetworkMode.PROXIED,
        Sensitivity.SECRET: NetworkMode.NONE}  # fmt: skip
sessions, levels = st.sampled_from(["c1", "c2", "c3"]), st.sampled_from(LEVELS)


class Ratchet(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.book = Playbook(max_agents=50, max_depth=20, max_children=50)
        self.level: dict[str, int] = {}
        self.mode: dict[str, int] = {}
        self.strictest: dict[str, tuple[int, int]] = {}
        self.number = 0

    # --- the oracle

    def told(self, session: str, level: Sensitivity, mode: NetworkMode) -> None:
        self.level[session] = max(self.level.get(session, 0), LEVELS.index(level))
        self.mode[session] = max(self.mode.get(session, 0), mode.severity, ASKS[level].severity)

    def live(self) -> list[Agent]:
        return [self.book.state.agents[i] for i in sorted(self.book.state.live)]

    def below(self, agent: Agent) -> list[Agent]:
        """By parents alone, the dead included: the engine's own index is what is tested."""
        everyone, found = self.book.state.agents.values(), [agent]
        for one in found:
            found += [a for a in everyone if a.parent_id == one.agent_id and a not in found]
        return found

    # --- what happens

    @rule(
        session=sessions, level=st.sampled_from(LEVELS), asked=st.sampled_from([None, *MODES]), pick=st.integers(0, 99), child=st.booleans()
    )
    def launch(self, session: str, level: Sensitivity, asked: NetworkMode | None, pick: int, child: bool) -> None:
        self.number += 1
        name, living = f"a-{self.number}", self.live()
        parent = living[pick % len(living)] if child and living else None
        self.book.launch(name, context_id=ContextId(session), sensitivity=level, network_mode=asked, parent_id=parent and parent.agent_id)
        if not self.book.all(c.StartAgent):
            return
        if parent is not None:
            self.told(session, parent.sensitivity, parent.network_mode)
        self.told(session, level, asked or NetworkMode.FULL)
        process = ProcessIdentity(1000 + self.number, 77)
        self.book >> e.LaunchConfirmed(self.book.at, self.book.boot, AgentId(name), process, "", ControlLevel.MANAGED, True, "")

    @precondition(lambda self: self.live())
    @rule(pick=st.integers(0, 99), level=st.sampled_from(LEVELS))
    def an_agent_registers_data(self, pick: int, level: Sensitivity) -> None:
        agent = self.live()[pick % len(self.live())]
        for one in self.below(agent):
            self.told(one.context_id, level, NetworkMode.FULL)
        self.book >> e.PrivateDataRegistered(self.book.at, self.book.boot, agent.agent_id, "d", "s", level, ASKS[level])

    @rule(session=sessions, level=st.sampled_from(LEVELS), mode=st.sampled_from(MODES))
    def an_operator_tightens(self, session: str, level: Sensitivity, mode: NetworkMode) -> None:
        both = max((mode, ASKS[level]), key=lambda m: m.severity)
        self.told(session, level, both)
        self.book >> e.Tightened(self.book.at, self.book.boot, None, (session,), level, both, "because")

    @precondition(lambda self: self.live())
    @rule(pick=st.integers(0, 99))
    def an_agent_ends(self, pick: int) -> None:
        agent = self.live()[pick % len(self.live())]
        self.book >> e.AgentExited(self.book.at, self.book.boot, agent.agent_id, 0)

    @rule(survives=st.integers(0, 15))
    def the_supervisor_restarts(self, survives: int) -> None:
        """The ledger's rows may be older than its sessions: agents come back as they were born."""
        agents = tuple(self.book.state.agents.values())
        alive = frozenset(a.agent_id for n, a in enumerate(self.live()) if survives >> (n % 4) & 1)
        ledger = {s: (LEVELS[self.level[s]], next(m for m in MODES if m.severity == self.mode[s])) for s in self.level}
        self.book = Playbook(max_agents=50, max_depth=20, max_children=50)
        self.book >> e.Restored(9.0, 9.0, agents, alive, ledger, False, "")

    # --- what always holds

    @invariant()
    def a_session_is_exactly_as_strict_as_it_was_told(self) -> None:
        for session, level in self.level.items():
            has, mode = self.book.state.context(ContextId(session))
            assert (LEVELS.index(has), mode.severity) == (level, self.mode[session]), session

    @invariant()
    def nobody_who_lives_is_looser_than_the_session_or_than_before(self) -> None:
        for agent in self.live():
            now = (LEVELS.index(agent.sensitivity), agent.network_mode.severity)
            before = self.strictest.get(agent.agent_id, (0, 0))
            assert now[0] >= max(before[0], self.level.get(agent.context_id, 0)), agent
            assert now[1] >= max(before[1], self.mode.get(agent.context_id, 0)), agent
            self.strictest[agent.agent_id] = now


TestRatchet = Ratchet.TestCase
TestRatchet.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
