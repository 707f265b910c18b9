"""Launches: depth and children are counted here, in one step, so that no race can pass them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from console.domain.agent import Agent, AgentState, ContextId, LaunchRequest, SandboxKind
from console.domain.budget import UNCAPPED, Limits, Usage, filled, tightest
from console.domain.engine import command as c
from console.domain.engine import event as e
from console.domain.errors import ConsoleError, Denied, Killed, NotFound
from console.domain.ids import ControlLevel
from console.domain.network import LOOSEST, NetworkMode, Sensitivity, higher, stricter_mode
from console.domain.words import notice
from console.enforcement import charging, dry_run, limiting
from console.enforcement.state import EngineState
from console.enforcement.tighten import joined
from console.policy.scopes import ALL, at_birth, read_scopes


def asked(state: EngineState, event: e.LaunchAsked) -> Iterator[c.Command]:
    """Refuses, or takes the place of the new agent at once (so that the next request already counts it) and starts it."""
    try:
        parent = _parent(state, event.request)
        _check(state, event.request, parent)
        _check_context(state, event, parent)
        _check_budgets(state, event, parent)
        scopes = _scopes(state, event.request, parent)
    except ConsoleError as error:
        yield c.Record(event.by, "launch.refused", str(error), verdict="deny", data={"argv0": event.request.argv[0]})
        yield c.RefuseLaunch(event.agent_id, error, event.by)
        return
    agent = state.put(replace(_born(state, event, parent), scopes=scopes, dry_run=dry_run.at_birth(state, event, parent)))
    state.born_boot[agent.agent_id] = event.boot_s
    state.tree_usage.setdefault(agent.agent_id, Usage())
    state.raise_context(agent.context_id, agent.sensitivity, agent.network_mode)
    # Its session shares a workspace: what comes with it is there for those who live in it already.
    yield from joined(state, agent, event.at)
    yield c.StartAgent(agent, event.request, event.by)
    yield c.ShowAgent(agent)


def _parent(state: EngineState, request: LaunchRequest) -> Agent | None:
    if request.parent_id is None:
        return None
    parent = state.agents.get(request.parent_id)
    if parent is None:
        raise NotFound(f"There is no agent {request.parent_id}.", "watchfloor fleet lists the agents.")
    return parent


def _check(state: EngineState, request: LaunchRequest, parent: Agent | None) -> None:
    if state.killed:
        raise Killed("Everything was stopped: nothing starts until you rearm.", "Rearm first: watchfloor rearm --reason ...")
    if state.soft_stop:
        raise Killed(f"Soft stop: {state.soft_stop.rstrip('.')}.", "It lifts by itself on one good signed read of the kill file.")
    _check_scopes(state, request.context_id or (parent.context_id if parent else None))
    if len(state.live) >= state.spawn.max_agents:
        raise Denied(f"{len(state.live)} agents live already.", "End some, or raise the setting spawn.max_agents.")
    if parent is not None:
        _check_parent(state, parent)


def _check_scopes(state: EngineState, context_id: ContextId | None) -> None:
    """Nothing starts in a session, or on a host, that is being stopped."""
    for scope in state.stopping:
        if scope.is_everything or context_id in scope.targets:
            raise Killed(f"A stop of {scope.words()} is under way: nothing starts in it.", "Wait for its receipt.")


def _check_parent(state: EngineState, parent: Agent) -> None:
    if parent.state not in (AgentState.RUNNING, AgentState.WAITING, AgentState.NEEDS_OK, AgentState.STARTING):
        raise Denied(f"Agent {parent.agent_id} is {parent.state}: it cannot spawn.", "Thaw it, or launch without a parent.")
    # Checked up to the top: a stop of an ancestor takes all below it, and what is born now would be missed.
    if any(i in state.killing or i in state.halting or state.agents[i].causes for i in charging.ancestry(state, parent)):
        raise Killed("An agent above is being stopped: nothing starts below it.", "Wait for the receipt.")
    if parent.control_level is ControlLevel.OBSERVED:
        raise Denied("An observed agent cannot be a parent.", "Only agents that Watchfloor started can spawn through it.")
    if parent.depth + 1 > state.spawn.max_depth:
        raise Denied(
            f"Depth {parent.depth + 1} is over the limit of {state.spawn.max_depth}.",
            "The depth of an agent is fixed at birth; work at a higher level.",
        )
    if state.started_children(parent.agent_id) >= state.spawn.max_children:
        raise Denied(f"Agent {parent.agent_id} has {state.spawn.max_children} children already.", "Wait until one has ended.")


def _check_budgets(state: EngineState, event: e.LaunchAsked, parent: Agent | None) -> None:
    """Nothing starts where a budget is used up, under whatever name, until its limit is raised with a reason."""
    charging.turn_day(state, event)
    context_id = event.request.context_id or (parent.context_id if parent else None)
    # A child cannot name a project: it would spend from a budget that its parent has not used up.
    project = parent.charged_project if parent else event.request.project or context_id
    trees = charging.ancestry(state, parent) if parent is not None else []
    nodes = [("tree", str(i)) for i in trees]
    sessions = [str(context_id)] if context_id else []
    sessions += [str(state.agents[i].context_id) for i in trees]
    nodes += [("session", key) for key in dict.fromkeys(sessions)]
    nodes += [("project", str(project))] if project else []
    nodes += [("day", state.budget.day.date)]
    if breach := limiting.spent_out(state, nodes):
        where = "--day" if breach.scope == "day" else f"--{breach.scope} {breach.key or (trees[-1] if trees else '')}"
        raise Denied(
            f"The {breach.scope}'s budget is used up: {breach.words()}.",
            f"Raise it, with a reason: watchfloor budget set {where} {breach.limit}=... --reason ...; or work in another.",
        )


def _scopes(state: EngineState, request: LaunchRequest, parent: Agent | None) -> tuple[str, ...]:
    """Granted by the launcher at birth, never by the agent: a child gets a subset. Raises Denied, UsageProblem."""
    wanted = None if request.scopes is None else read_scopes(request.scopes)
    if parent is None:
        return tuple(sorted(read_scopes(state.scopes) if wanted is None else wanted))
    return tuple(sorted(at_birth(ALL if parent.scopes is None else read_scopes(parent.scopes), wanted)))


def _check_context(state: EngineState, event: e.LaunchAsked, parent: Agent | None) -> None:
    """An agent works in its own session or makes a new one; another's workspace is an operator's to give."""
    asked_for = event.request.context_id
    if (
        event.by.startswith("agent:")
        and parent is not None
        and asked_for not in (None, parent.context_id)
        and asked_for in state.known_contexts
    ):
        raise Denied(f"Session {asked_for} is not this agent's.", "Leave the context out, or name a new one.")


def _born(state: EngineState, event: e.LaunchAsked, parent: Agent | None) -> Agent:
    request = event.request
    context_id = request.context_id or (parent.context_id if parent else ContextId(f"ctx-{event.agent_id}"))
    context_level, context_mode = state.context(context_id)
    level = higher(request.sensitivity, context_level)
    mode = stricter_mode(request.network_mode or LOOSEST, context_mode)
    sandbox = request.sandbox
    if parent is not None:
        # A child is never held less firmly, and never knows less or reaches more, than its parent (promise 4).
        level = higher(level, parent.sensitivity)
        mode = stricter_mode(mode, parent.network_mode)
        # Otherwise an agent could leave its container by starting a child outside of one.
        if parent.sandbox is not SandboxKind.NONE and sandbox is SandboxKind.NONE:
            sandbox = parent.sandbox
    # Last, since the class of the data may have risen by what the parent knows.
    mode = stricter_mode(mode, state.modes.of(level))
    why = _why(state, request, parent, context_id, level, mode)
    isolated = (parent.isolated if parent else "") or state.isolated.get(context_id, "")
    limits, tree_limits = _caps(state, event)
    return Agent(
        agent_id=event.agent_id,
        name=request.name or request.argv[0].rsplit("/", 1)[-1],
        parent_id=parent.agent_id if parent else None,
        root_id=parent.root_id if parent else event.agent_id,
        depth=parent.depth + 1 if parent else 1,
        context_id=context_id,
        control_level=ControlLevel.MANAGED if sandbox is SandboxKind.NONE else ControlLevel.CONTAINED,
        sandbox=sandbox,
        started_at=event.at,
        argv=request.argv,
        limits=limits,
        tree_limits=tree_limits,
        project=parent.charged_project if parent else request.project or str(context_id),
        sensitivity=level,
        network_mode=mode,
        isolated=isolated,
        # A sandbox made without a network has only its own loopback, into which a portal can be opened later, but no more.
        cut_off=(parent is not None and parent.cut_off) or (bool(isolated) and not mode.is_restricted),
        last_action="starting",
        last_action_at=event.at,
        network_why=why,
        network_since=event.at,
    )


def _caps(state: EngineState, event: e.LaunchAsked) -> tuple[Limits, Limits]:
    """(its own, those of all it spawns): as asked, and for what was not asked for as its type or the settings say.

    An operator may ask for more than the defaults allow; an agent that spawns may not. Caps of the trees above hold in any case.
    """
    request, budget = event.request, state.budget
    by_type = f"type:{request.agent_type}"
    of_type = budget.limits.get(("type", request.agent_type), budget.defaults.get(by_type, UNCAPPED)) if request.agent_type else UNCAPPED
    own = filled(of_type, budget.defaults.get("agent", UNCAPPED))
    tree = budget.defaults.get("tree", UNCAPPED)
    join = tightest if event.by.startswith("agent:") else filled
    limits = join(request.limits, own)
    # What caps an agent caps all it spawns, unless its tree was given caps of its own.
    return limits, join(request.tree_limits if request.tree_limits != UNCAPPED else limits, tree)


def _why(state: EngineState, request: LaunchRequest, parent: Agent | None, context_id: str, level: Sensitivity, mode: NetworkMode) -> str:
    """Which of all that decides a mode asked for this one; the most lasting reason first."""
    if not mode.is_restricted:
        return "default"
    if state.modes.of(level) is mode:
        return f"its session holds {level} data"
    if state.context(context_id)[1] is mode:
        return f"its session is in {mode}"
    if parent is not None and parent.network_mode is mode:
        return f"its parent {parent.agent_id} is in {mode}"
    return "asked for at its launch" if request.network_mode is mode else ""


def confirmed(state: EngineState, event: e.LaunchConfirmed) -> Iterator[c.Command]:
    """It runs, and the guard has it."""
    agent = state.agents.get(event.agent_id)
    if agent is None:
        return
    state.budget.worked[agent.agent_id] = event.boot_s
    agent = replace(
        agent,
        state=AgentState.RUNNING if agent.state is AgentState.STARTING else agent.state,
        process=event.process,
        container_id=event.container_id,
        control_level=event.control_level,
        network_enforced=event.network_enforced,
        network_note=event.network_note,
        last_action="started",
        last_action_at=event.at,
    )
    yield c.ShowAgent(state.put(agent))
    yield c.NoteEvent(agent.agent_id, "started", f"{agent.control_level}, network {agent.effective_mode}")
    if agent.isolated:
        rule = "an operator's isolation of this session or of your parent, until an operator reconnects it"
        yield c.TellAgent(agent.agent_id, "network", notice("Your network is cut.", agent.isolated, rule))
    if agent.sensitivity is not Sensitivity.PUBLIC:
        what = f"This session holds {agent.sensitivity} data: network {agent.network_mode}."
        cause = agent.network_why or f"{agent.sensitivity} data was registered in this session before you started"
        rule = f"a session with {agent.sensitivity} data has network {state.modes.of(agent.sensitivity)} or stricter"
        yield c.TellAgent(agent.agent_id, "network", f"{notice(what, cause, rule)}{state.words_for(agent)}")


def broke(state: EngineState, event: e.LaunchBroke) -> Iterator[c.Command]:
    """Nothing of it runs; the place is free again."""
    agent = state.agents.get(event.agent_id)
    if agent is None or not agent.state.is_live:
        return
    agent = replace(agent, state=AgentState.FAILED, state_reason=event.why, ended_at=event.at)
    yield c.ShowAgent(state.put(agent))
    yield c.Record("supervisor", "launch.failed", f"{agent.agent_id}: {event.why}", verdict="failed", agent_id=agent.agent_id, must=True)
    yield c.LeaveAgent(agent.agent_id)
