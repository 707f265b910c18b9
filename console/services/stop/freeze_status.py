"""Which freezes are not confirmed: the guard's own look, for as many agents as there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from console.domain.errors import ConsoleError
from console.services.stop.service import CHUNK

Call = Callable[..., dict[str, Any]]
"""``GuardClient.call``."""


def unconfirmed(call: Call, agent_ids: Sequence[str]) -> dict[str, str]:
    """Of these: who has a cause of freeze and is not seen to be frozen, and why. Blocks. What the guard does not say is not confirmed."""
    found: dict[str, str] = {}
    waiting = [list(agent_ids[n : n + CHUNK]) for n in range(0, len(agent_ids), CHUNK)]
    while waiting:
        chunk = waiting.pop()
        try:
            answer = call("freezing", scope=chunk)
        except ConsoleError as error:
            found |= dict.fromkeys(chunk, f"whether it is frozen is not known: {error}")
            continue
        named = {str(i): str(why) for i, why in dict(answer.get("unconfirmed", {})).items()}
        if int(answer.get("n", 0)) > len(named) and len(chunk) > 1:  # the guard names ten at most
            # Halving finds every name in few calls, also when most agents of a large fleet are unconfirmed.
            waiting += [chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]]
            continue
        found |= named
    return found
