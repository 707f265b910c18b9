"""Calls that read or write secrets, off the event loop: in threads of their own, and within a bound.

A desktop's keyring may hang, and each call then takes seconds. On the loop that would stall every console; in the loop's common threads it
would take the places that a kill needs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from console.domain.errors import TimedOut

BOUND_S = 5.0
"""Longer than a keyring is waited for: its own refusal says more than ours."""
MOST = 64
"""Calls that hang at the same time; one more is refused at once."""
_PLACES = threading.BoundedSemaphore(MOST)

_REMEDY = "watchfloor doctor shows which one. Unlock it, or check whether it hangs."

T = TypeVar("T")


async def secret_call(work: Callable[..., T], *args: Any, **fields: Any) -> T:
    """What ``work`` answers. Raises what it raises; TimedOut after BOUND_S, whatever becomes of it then, or when MOST calls hang."""
    if not _PLACES.acquire(blocking=False):
        raise TimedOut(f"The place of the secrets leaves {MOST} calls without an answer.", _REMEDY)
    # A thread for this call alone, which ends with it: a hanging one holds up no other.
    thread = ThreadPoolExecutor(1, "secret")
    call = thread.submit(work, *args, **fields)
    call.add_done_callback(lambda _: _PLACES.release())
    thread.shutdown(wait=False)
    try:
        async with asyncio.timeout(BOUND_S):
            return await asyncio.wrap_future(call)
    except TimeoutError as error:
        raise TimedOut(f"The place of the secrets does not answer within {BOUND_S:g} s.", _REMEDY) from error
