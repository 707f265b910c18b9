"""The armed light's card for secrets: where they are kept, what would be rotated, and what is owed."""

from __future__ import annotations

import time

from console.api.armed import PathView
from console.domain.errors import ConsoleError
from console.services.secrets.rotator import Rotator


def secrets_path(rotator: Rotator) -> PathView:
    """Whether a rotation can be carried out and the last one held. Blocks: reads the store and the plan."""
    view = rotator.view()
    kept = f"{view.kept_in}, because {'; '.join(view.why_not_better)}" if view.why_not_better else view.kept_in
    own = sum(item.kind == "own" for item in view.items)
    facts = [
        ("Kept in", kept),
        ("Plan", f"{own} of our own, {len(view.items) - own} more" if not view.plan_error else "broken"),
        ("Verifiers", ", ".join(dict.fromkeys(item.verifier for item in view.items))[:200]),
    ]
    doubts = [view.plan_error] if view.plan_error else []
    try:
        rotator.tokens.keys()
    except ConsoleError as error:
        doubts.append(str(error))
    if view.unfinished:
        doubts.append(f"a rotation is not proven ({view.last_detail or 'it was broken off'}): watchfloor secrets rotation run")
    elif view.last_ok is False:
        doubts.append(f"the last rotation is not proven ({view.last_detail}): watchfloor secrets rotation run")
    if back := [item.name for item in view.items if item.again in ("accepted", "unknown")]:
        doubts.append(f"not proven refused after a restart: {', '.join(back)}")
    return PathView(
        name="secrets",
        state="in_doubt" if doubts else "proven",
        detail=("; ".join(doubts) or "written and read back")[:600],
        checked_at=time.time(),
        facts=facts,
    )
