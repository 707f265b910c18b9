"""The rotation step of a kill: new token keys, proven by the running server that refuses the old ones."""

from __future__ import annotations

import asyncio
import http.client
import socket
import time
from contextlib import suppress
from pathlib import Path

from console.credentials.rotation import rotate
from console.domain.errors import ConsoleError
from console.domain.failpoints import failpoint
from console.domain.kill import Step, StepName, StepStatus
from console.supervisor.parts import Parts


def served(operator_sock: Path, token: str) -> bool:
    """Presents a token to the running server over its own socket: True when it was accepted. OSError when nothing answered."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(1.5)
        sock.connect(str(operator_sock))
        connection = http.client.HTTPConnection("watchfloor")
        connection.sock = sock
        try:
            connection.request("GET", "/api/token-check", headers={"Authorization": f"Bearer {token}"})
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
    if status not in (200, 401, 403):
        raise OSError(f"the server answered {status}")
    return status == 200


async def rotate_step(parts: Parts, everything: bool, pressed: float) -> Step:
    """Rotates after everything was signalled; ``ok`` only when every item is proven."""
    if not everything:
        return Step(StepName.ROTATE, StepStatus.SKIPPED, None, "a kill of named agents revokes their own tokens only")
    failpoint("rotate.begun")
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
