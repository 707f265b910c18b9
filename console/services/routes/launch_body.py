"""A launch body as a launch request."""

from __future__ import annotations

from console.api import messages as m
from console.domain.agent import AgentId, ContextId, LaunchRequest, SandboxKind
from console.domain.budget import LIMIT_LABELS, LIMIT_WORDS, Limits, parse_limit, with_limit
from console.domain.errors import UsageProblem
from console.domain.network import NetworkMode, Sensitivity


def limits_from(given: dict[str, float]) -> Limits:
    """Limits by name; UsageProblem on an unknown name or a number that is not finite and not negative."""
    limits = Limits()
    for name, value in given.items():
        if name not in LIMIT_WORDS:
            raise UsageProblem(f"There is no limit {name[:60]!r}.", f"Names: {LIMIT_LABELS}.")
        limits = with_limit(limits, *parse_limit(f"{name}={value!r}"))
    return limits


def request_from(body: m.LaunchBody) -> LaunchRequest:
    """The request a body describes; checked by the engine's door."""
    return LaunchRequest(
        argv=tuple(body.argv),
        name=body.name,
        parent_id=AgentId(body.parent_id) if body.parent_id else None,
        context_id=ContextId(body.context_id) if body.context_id else None,
        sandbox=SandboxKind(body.sandbox),
        sensitivity=Sensitivity(body.sensitivity),
        network_mode=NetworkMode(body.network_mode) if body.network_mode else None,
        limits=limits_from(body.limits),
        tree_limits=limits_from(body.tree_limits),
        env=tuple(body.env.items()),
        agent_type=body.agent_type,
        project=body.project,
        scopes=None if body.scopes is None else tuple(body.scopes),
        dangerous_ok=body.dangerous_ok,
        dry_run=body.dry_run,
        unmeasured=body.unmeasured,
    )
