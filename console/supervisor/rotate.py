"""The rotation step of a kill: new token keys, proven by the running server that refuses the old ones."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import httpx

from console.credentials.rotation import rotate
from console.domain.errors import ConsoleError
from console.domain.kill import Step, StepName, StepStatus
from console.supervisor.parts import Parts


def served(operator_sock: Path, token: str) -> bool:
    """Presents a token to the running server over its own socket: True when it was accepted. OSError when nothing answered."""
    try:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(operator_sock)), timeout=1.5) as client:
            answer = client.get("http://watchfloor/api/token-check", headers={"authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        raise OSError(str(error)) from error
    if answer.status_code not in (200, 401, 403):
        raise OSError(f"the server answered {answer.status_code}")
    return answer.status_code == 200


async def rotate_step(parts: Parts, everything: bool, pressed: float) -> Step:
    """Rotates after everything was signalled; ``ok`` only when every item is proven."""
    if not everything:
        return Step(StepName.ROTATE, StepStatus.SKIPPED, None, "a kill of named agents revokes their own tokens only")
    # Every older token dies at once, whatever becomes of the rotation; a refusal of the disk shows in the items below.
    with suppress(ConsoleError):
        await asyncio.to_thread(parts.tokens.raise_epoch)
    result = await asyncio.to_thread(rotate, parts.tokens, {"operator.sock": lambda token: served(parts.places.operator_sock, token)})
    bad = "; ".join(f"{item.name}: {item.detail}" for item in result.items if not item.ok)
    if result.ok:
        words = "; ".join(f"{item.name} {item.detail}" for item in result.items)
        return Step(StepName.ROTATE, StepStatus.OK, round((time.time() - pressed) * 1000, 1), words)
    status = StepStatus.UNKNOWN if "unknown:" in bad and "failed:" not in bad else StepStatus.FAILED
    return Step(StepName.ROTATE, status, round((time.time() - pressed) * 1000, 1), bad or "nothing was rotated")
