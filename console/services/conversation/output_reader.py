"""Reads what started programs write, in one thread for all of them, bounded in everything: bytes a look, events a look, bytes at all."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.domain.agent import AgentId
from console.domain.conversation import Program
from console.domain.spend import NANO
from console.sources.activity.program_stream import Event, Heard, Lines
from console.sources.activity.stream_meter import StreamMeter
from console.sources.kinds import STARTS, VENDORS
from console.sources.spend.rates import RateBook

log = logging.getLogger(__name__)
LOOK_S = 0.15
PIECE = 1 << 20
"""Bytes of one program in one look."""
MOST_EVENTS = 2000
"""Events of one program in one look; what is more is counted and not told. Usage always counts."""
KEEP_S = 2.0
"""Time between two notes of how far a program was read."""
_TROUBLE = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError, ImportError)
"""Whatever reading one program stumbles over: the others are heard all the same, and that one counts as not heard."""


@dataclass(slots=True)
class Batch:
    """What one look at one program gave."""

    agent_id: AgentId
    events: list[Event] = field(default_factory=list)
    answers: int = 0
    tokens: int = 0
    usd: float = 0.0
    tool_calls: int = 0
    action: str = ""
    errors: int | None = None
    """Calls of tools that failed, since the last that did not; None: none ended."""
    recovered: bool = False
    """One did not fail before those."""
    reply: list[dict[str, Any]] = field(default_factory=list)
    offset: int = 0
    """How far it was read, when that is to be kept; 0: not now."""
    blind: str = ""
    """Why what it spends is not known, or empty."""
    deaf: bool = False
    """Nothing of it is heard any more."""

    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        told = (self.events, self.answers, self.tokens, self.usd, self.tool_calls, self.action, self.reply, self.offset, self.blind)
        return not any(told)


class Following:
    """One program's output: a file that only grows, up to its bound."""

    __slots__ = (
        "stream", "rates", "meter", "silent_until", "charged", "_lines", "_said_long", "_said_unpriced", "_deaf", "lock", "agent_id",
        "path", "most", "_kept", "_kept_at"
    )  # fmt: skip

    def __init__(self, agent_id: AgentId, program: Program, path: Path, most: int, rates: RateBook | None = None) -> None:
        self.agent_id, self.path, self.most = agent_id, path, most
        self.stream = STARTS[program.value].stream()
        self.rates = rates
        self.meter = StreamMeter(self._price)
        self.silent_until = 0
        """Up to here it was told before a restart."""
        self.charged: tuple[int, float, int] | None = None
        """Tokens, dollars and answers that were charged before a restart; None: none, or settled."""
        self._lines = Lines()
        self._kept, self._kept_at = 0, 0.0
        self._said_long = 0
        self._said_unpriced: set[str] = set()
        self._deaf = False
        self.lock = threading.Lock()

    def _price(self, answer: Any) -> int | None:
        return self.rates.price(answer) if self.rates is not None else None

    def message(self, text: str) -> list[dict[str, Any]]:
        """What is written to say ``text``. Waits for a look that is under way."""
        with self.lock:
            return self.stream.message(text)

    def interrupt(self, request_id: str) -> list[dict[str, Any]]:
        """What is written to end its turn. Waits for a look that is under way."""
        with self.lock:
            return self.stream.interrupt(request_id)

    def is_busy(self) -> bool:
        """Whether the end of its input would break something off: it has said nothing yet, or a turn goes on. Waits for a look."""
        with self.lock:
            return not self._lines.offset or self.stream.is_busy()

    def look(self, *, last: bool = False) -> Batch:
        """Reads on; ``last``: to its end, all at once. In the follower's thread, or with its lock."""
        batch = Batch(self.agent_id)
        try:
            self._read(batch, last=last)
        except FileNotFoundError:
            pass
        except _TROUBLE as error:
            if not self._deaf:
                log.error("what %s wrote cannot be read", self.agent_id, exc_info=error)
            self._deafen(batch, f"what it wrote cannot be read ({type(error).__name__}): what it does and spends is not heard any more")
        return batch

    def _read(self, batch: Batch, *, last: bool) -> None:
        with self.path.open("rb") as file:
            file.seek(self._lines.offset)
            while data := file.read(PIECE):
                self._take(data, batch)
                if not last and self._lines.offset >= self.silent_until:
                    break
            if last:
                self._take(b"\n", batch)
            at_end = self._lines.offset >= os.fstat(file.fileno()).st_size
        if at_end and self.charged is not None:
            self._settle(batch)
        self._troubles(batch)
        self._keep(batch, last=last)

    def _take(self, data: bytes, batch: Batch) -> None:
        left_out = 0
        for offset, line in self._lines.feed(data):
            heard = self.stream.hear(line)
            self._charge(heard, batch)
            if offset <= self.silent_until:
                continue
            batch.reply += heard.reply
            batch.tool_calls += heard.tool_calls
            batch.action = heard.action or batch.action
            for event in heard.events:
                if event["kind"] == "tool_result":
                    batch.errors = (batch.errors or 0) + 1 if event["error"] else 0
                    batch.recovered = batch.recovered or not event["error"]
            room = MOST_EVENTS - len(batch.events)
            left_out += max(0, len(heard.events) - room)
            for n, event in enumerate(heard.events[: max(0, room)]):
                batch.events.append(event | {"at": time.time(), "offset": offset, "n": n})
        if left_out:
            batch.events.append(self._trouble(f"{left_out} more events came at once and are not told"))

    def _charge(self, heard: Heard, batch: Batch) -> None:
        increments = [self.meter.charge(answer) for answer in heard.answers]
        if heard.total_usd is not None or heard.total_tokens:
            increments.append(self.meter.total(heard.total_usd, heard.total_tokens))
        if self.charged is not None:
            return
        for more in increments:
            batch.answers += more.answers
            batch.tokens += more.tokens
            batch.usd += more.usd
        for answer, more in zip(heard.answers, increments, strict=False):
            if more.answers or more.tokens:
                usage: Event = {"kind": "usage", "answer": answer.answer_id, "model": answer.model, "parent": answer.agent}
                usage |= {"tokens": more.tokens, "cost_usd": None if answer.model[:200] in self.meter.unpriced else more.usd}
                heard.events.append(usage)

    def _settle(self, batch: Batch) -> None:
        """After a restart: what it used is what its whole output says; what of that was charged before is not charged again."""
        assert self.charged is not None
        tokens, usd, answers = self.charged
        self.charged = None
        batch.tokens += max(0, self.meter.tokens - tokens)
        batch.usd += max(0.0, self.meter.nano / NANO - usd)
        batch.answers += max(0, self.meter.answers - answers)

    def _troubles(self, batch: Batch) -> None:
        if self._lines.too_long > self._said_long:
            batch.events.append(self._trouble(f"{self._lines.too_long - self._said_long} lines were too long to be read"))
            self._said_long = self._lines.too_long
        if self._lines.offset >= self.most:
            self._deafen(batch, f"what it wrote has reached {self.most >> 20} MiB: what it does and spends is not heard any more")
        if self.meter.unpriced - self._said_unpriced and not batch.blind:
            self._said_unpriced = set(self.meter.unpriced)
            batch.blind = f"no price is known for {', '.join(sorted(self.meter.unpriced))[:200]}: what it costs is not in its cost"

    def _deafen(self, batch: Batch, words: str) -> None:
        """Said once."""
        if not self._deaf:
            self._deaf = batch.deaf = True
            batch.blind = words
            batch.events.append(self._trouble(words))

    def _trouble(self, words: str) -> Event:
        return {"kind": "trouble", "text": words, "at": time.time(), "offset": self._lines.offset, "n": 0}

    def _keep(self, batch: Batch, *, last: bool) -> None:
        whole = self._lines.whole
        if whole > self._kept and (last or time.monotonic() - self._kept_at >= KEEP_S):
            self._kept, self._kept_at, batch.offset = whole, time.monotonic(), whole


class Follower:
    """The thread. It starts with the first program and ends with ``stop``."""

    __slots__ = ("_tell", "_all", "_rates", "_ending", "_thread")

    def __init__(self, tell: Callable[[Batch], None]) -> None:
        """``tell`` is called in the thread."""
        self._tell = tell
        self._all: dict[AgentId, Following] = {}
        self._rates = RateBook(VENDORS)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, following: Following) -> None:
        """Follows it from now on."""
        following.rates = self._rates
        self._all[following.agent_id] = following
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="conversations", daemon=True)
            self._thread.start()

    def of(self, agent_id: AgentId) -> Following | None:
        """The one of this agent."""
        return self._all.get(agent_id)

    def look(self, agent_id: AgentId) -> None:
        """Looks at one of them now, out of turn. Blocks for a moment."""
        following = self._all.get(agent_id)
        if following is not None:
            with following.lock:
                self._tell(following.look())

    def finish(self, agent_id: AgentId) -> Batch | None:
        """The last of it; then it is followed no more. Blocks."""
        following = self._all.pop(agent_id, None)
        if following is None:
            return None
        with following.lock:
            return following.look(last=True)

    def drop(self, agent_id: AgentId) -> None:
        """Follows it no more."""
        self._all.pop(agent_id, None)

    def stop(self) -> None:
        """Ends the thread."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(20)

    def _run(self) -> None:
        with suppress(ImportError):  # then nothing has a price, and that is said
            _ = self._rates.version  # takes seconds the first time: before anybody can wait for a lock
        while not self._ending.wait(LOOK_S):
            for following in list(self._all.values()):
                with following.lock:
                    if following.agent_id not in self._all:
                        continue
                    batch = following.look()
                    if not batch.is_empty():
                        self._tell(batch)  # before anybody else can look: told in order
