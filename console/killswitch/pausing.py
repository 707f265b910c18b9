"""Freeze what only a container engine can freeze: asked in a thread of its own, again and again, until the engine confirms it.

Until then it counts as not confirmed, everywhere: an engine may not answer, or say yes and freeze nothing.
"""

from __future__ import annotations

import threading

from console.killswitch.causes import set_frozen
from console.killswitch.guard import Guard
from console.killswitch.registry import Held

FIRST_S = 0.1
LONGEST_S = 5.0
"""Between two times of asking."""
ASKED = "asked the engine"
NOT_YET = "the engine was asked to pause it and has not said that it is paused"


class Pausing:
    """One thread per container asks, one thing at a time: whatever order the wishes came in, the last one is what it ends with."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._changed = threading.Condition(guard.lock)
        self._wishes: dict[str, int] = {}
        """Per container: how often its freeze was changed since its thread was started."""
        self.unconfirmed: dict[str, str] = {}
        """Agents that are to be frozen and of which the engine has not said so: why."""

    def ask(self, held: Held) -> str:
        """Does not wait. ASKED, or why not."""
        agent_id = held.entry.agent_id
        with self._changed:
            self._tell(held, NOT_YET)
            self._wishes[agent_id] = self._wishes.get(agent_id, 0) + 1
            self._changed.notify_all()
            if self._wishes[agent_id] > 1:
                return ASKED
            try:
                threading.Thread(target=self._until_it_is_so, args=(held,), name="engine-pause", daemon=True).start()
            except RuntimeError as error:
                del self._wishes[agent_id]
                self._tell(held, f"the engine could not be asked: {error}")
                return f"failed: the engine could not be asked: {error}"
        return ASKED

    def _is_wanted(self, held: Held) -> bool:
        """Frozen: there is a cause, and no kill (what a freezer holds does not die)."""
        guard = self._guard
        return bool(guard.causes.of(held.entry.agent_id)) and not (held.entry.killed or guard.latch.state.latched)

    def _until_it_is_so(self, held: Held) -> None:
        agent_id, pause_s = held.entry.agent_id, FIRST_S
        while True:
            with self._changed:
                asked, on = self._wishes[agent_id], self._is_wanted(held)
            answer = set_frozen(held, on, self._guard.engine)
            with self._changed:
                is_gone = not held.is_populated() or self._guard.registry.held.get(agent_id) is not held
                is_so = answer in ("sent", "gone") and on == self._is_wanted(held)  # a kill changes the wish and asks nobody
                self._tell(held, "" if is_gone or is_so else answer)
                if self._wishes[agent_id] != asked:
                    pause_s = FIRST_S
                elif is_gone or is_so:
                    del self._wishes[agent_id]
                    return
                else:
                    self._changed.wait(pause_s)
                    pause_s = min(pause_s * 2, LONGEST_S)

    def _tell(self, held: Held, words: str) -> None:
        agent_id, on = held.entry.agent_id, self._is_wanted(held)
        if words and on:
            self.unconfirmed[agent_id] = words[:200]
        else:
            self.unconfirmed.pop(agent_id, None)
        if words and words != NOT_YET:
            done = "paused" if on else "unpaused"
            self._guard.notices[f"pause-{agent_id}"] = f"Agent {agent_id} could not be {done} yet: {words[:200]}. It is asked again."
        elif not words:
            self._guard.notices.pop(f"pause-{agent_id}", None)
