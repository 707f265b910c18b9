"""Keep the sessions that telemetry reports, bounded in every direction. Written by the listener's thread, read by the source's look.

Any process that reaches the port can report anything. So nothing here decides which process is signalled, and no limit counts it.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from console.domain.budget import Usage
from console.domain.spend import Answer, Tokens
from console.sources.kinds import TELEMETRY
from console.sources.spend.vendors import SELLERS
from console.sources.telemetry.dialect import Telemetry
from console.sources.telemetry.items import CACHE_READ, CACHE_WRITTEN, PROVIDER, Item, Value
from console.sources.telemetry.sums import Refused, Sums, counts
from console.sources.text import plain

SESSIONS_MAX = 500
NEW_BURST, NEW_PER_S = 100.0, 0.5
"""New sessions: so many at once, then so many a second."""
FORGET_S = 900.0
"""Silent for so long, a session is no longer known. One that waits for a person sends nothing."""
QUIET_S = 60.0
"""Silent for so long, it makes room for another when there is none."""
ANSWERS_MAX = 100_000
"""Ids of answers that are kept, of all sessions, so that one counts once."""
PENDING_MAX = 2000
"""Answers that wait for a price."""
TURN, TURN_S = 50, 0.001
"""After so many items the thread that takes them rests."""
TOLD_S = 60.0
"""Refusals of one kind are told once in so long, with their number."""
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_SUMS = ("invoke_agent", "create_agent", "invoke_workflow", "execute_tool")
"""Operations whose spans may tell the sum of those below them."""
SPANS = "otlp"
"""The source of answers that spans tell."""
TRACES_MAX = 5000
"""Traces of which is remembered to which session they belong."""
_TRACE = re.compile(r"[0-9a-f]{8,32}")
_CONVENTION = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
_BEFORE = ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens")
_SESSION_NAMES = ("session.id", "conversation.id", "gen_ai.conversation.id")


@dataclass(frozen=True, slots=True)
class Told:
    """One session, as reported until now."""

    session: str
    program: str
    model: str
    action: str
    last_at: float
    """Seconds since the epoch, by our own clock."""
    age_s: float
    """Since it was first heard of."""
    usage: Usage
    unpriced: int
    agents: int
    """Sub-agents whose ids were heard."""


@dataclass(slots=True)
class _Session:
    program: str
    last: float
    last_at: float
    first: float
    model: str = ""
    action: str = ""
    sums: Sums = field(default_factory=Sums)
    agents: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Refusals:
    total: int = 0
    untold: int = 0
    told: float = -1e9
    example: str = ""


class _Traces:
    """Which session a model's span is of, where it does not say so itself."""

    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}
        """By trace and instance of a service."""

    def session_of(self, item: Item) -> str:
        """Its session; of a model's span that names none, its trace within one instance of a service. Empty: it is of no session."""
        said, found = item.attributes, _session_of(item)
        if item.kind != "traces" or not any(name.startswith("gen_ai.") for name in said):
            return found
        trace = item.ident.partition(".")[0].lower()
        instance = f"{said.get('service.name', '')}\0{said.get('service.instance.id', '')}"
        key = f"{trace}-{hashlib.sha256(instance.encode('utf-8', 'replace')).hexdigest()[:8]}"
        if found and _SESSION.fullmatch(found):
            self._sessions.pop(key, None)
            self._sessions[key] = found
            while len(self._sessions) > TRACES_MAX:
                del self._sessions[next(iter(self._sessions))]
        return found or self._sessions.get(key, "") or (f"trace-{key}" if _TRACE.fullmatch(trace) else "")


class TelemetryBook:
    """What was heard since the supervisor started; nothing of it is kept over a restart."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, telemetry: Iterable[Telemetry] = TELEMETRY) -> None:
        self._clock, kinds = clock, tuple(telemetry)
        self._answers_of = {name: read for one in kinds for name, read in one.answers.items()}
        self._prefixes = tuple(one.prefix for one in kinds if one.prefix)
        self._costs, self._tokens = ({getattr(one, name) for one in kinds} - {""} for name in ("cost", "tokens"))
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._answers: dict[tuple[str, str], None] = {}
        self._traces = _Traces()
        self._pending: list[Answer] = []
        self._refused: dict[str, _Refusals] = {}
        self._room, self._room_at = NEW_BURST, clock()

    def take(self, items: Iterable[Item]) -> None:
        """Each item for itself: one that is refused takes no other with it. Whatever ``items`` raises goes through."""
        for taken, item in enumerate(items, 1):
            if taken % TURN == 0:
                time.sleep(TURN_S)  # in the listener's thread: the supervisor's own goes first
            item = self._bare(item)
            with self._lock:
                try:
                    self._take(item)
                except Refused as error:
                    self._refuse(str(error), f"{item.name[:60]} of session {_session_of(item)[:64] or 'unknown'}")

    def refuse(self, what: str, example: str = "") -> None:
        """Something that was not taken; counted, told once in a while."""
        with self._lock:
            self._refuse(what, example)

    def sessions(self) -> list[Told]:
        """Those that were heard of lately, the latest first."""
        with self._lock:
            self._forget()
            now = self._clock()
            found = [
                Told(
                    name,
                    one.program,
                    one.model,
                    one.action,
                    one.last_at,
                    now - one.first,
                    one.sums.usage(),
                    one.sums.unpriced(),
                    len(one.agents),
                )
                for name, one in self._sessions.items()
            ]
        return sorted(found, key=lambda one: -one.last_at)

    def pending(self) -> list[Answer]:
        """Answers that wait for a price, handed out once."""
        with self._lock:
            waiting, self._pending = self._pending, []
        return waiting

    def priced(self, answer: Answer, nano: int | None) -> None:
        """The price of one that was pending; None: there is none."""
        with self._lock:
            known = self._sessions.get(answer.session)
            if known is None:
                return
            channel = known.sums.spans if answer.source == SPANS else known.sums.events
            try:
                channel.add(nano=nano or 0, unpriced=0 if nano is not None else 1)
            except Refused as error:
                self._refuse(str(error), answer.session)

    def refusals(self) -> int:
        """How many so far."""
        with self._lock:
            return sum(one.total for one in self._refused.values())

    def untold(self) -> list[str]:
        """Refusals to record, in words; one kind at most once in TOLD_S."""
        now = self._clock()
        with self._lock:
            due = [(what, one) for what, one in self._refused.items() if one.untold and now - one.told >= TOLD_S]
            words = [f"refused {one.untold} times: {what}" + (f" ({one.example})" if one.example else "") for what, one in due]
            for _, one in due:
                one.untold, one.told = 0, now
        return words

    def _refuse(self, what: str, example: str) -> None:
        kind = self._refused.setdefault(plain(what, 120), _Refusals())
        kind.total += 1
        kind.untold += 1
        kind.example = plain(example, 160)

    def _bare(self, item: Item) -> Item:
        """An event without its program's prefix."""
        prefix = next((one for one in self._prefixes if item.name.startswith(one)), "") if item.kind == "logs" else ""
        return replace(item, name=item.name.removeprefix(prefix)) if prefix else item

    def _take(self, item: Item) -> None:
        name = self._traces.session_of(item)
        if not name:
            return  # a resource's own figures, of no session
        if not _SESSION.fullmatch(name):
            raise Refused("a session id that is none")
        known = self._sessions.get(name) or self._new(name, item)
        known.last, known.last_at = self._clock(), time.time()
        known.model = _model_of(item) or known.model
        part = plain(item.attributes.get("agent_id", ""), 64)
        if part and len(known.agents) < 1000:
            known.agents.add(part)
        if item.kind == "metrics":
            if item.name in self._costs:
                known.sums.cost(item)
            elif item.name in self._tokens:
                known.sums.tokens(item)
        elif item.kind == "logs":
            self._event(name, known, item)
        else:
            self._span(name, known, item)

    def _new(self, name: str, item: Item) -> _Session:
        now = self._clock()
        self._room, self._room_at = min(NEW_BURST, self._room + (now - self._room_at) * NEW_PER_S), now
        if self._room < 1.0:
            raise Refused("more new sessions than can be real")
        if len(self._sessions) >= SESSIONS_MAX:
            quiet = min(self._sessions, key=lambda key: self._sessions[key].last)
            if now - self._sessions[quiet].last < QUIET_S:
                raise Refused(f"more than {SESSIONS_MAX} sessions at once")
            del self._sessions[quiet]
        self._room -= 1.0
        program = plain(item.attributes.get("service.name", ""), 40) or "unknown program"
        made = self._sessions[name] = _Session(program, now, time.time(), now)
        return made

    def _forget(self) -> None:
        now = self._clock()
        self._sessions = {name: one for name, one in self._sessions.items() if now - one.last < FORGET_S}

    def _once(self, session: str, answer: str) -> bool:
        """Whether this answer was not counted yet."""
        key = (session, answer)
        if key in self._answers:
            return False
        self._answers[key] = None
        while len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        return True

    def _event(self, name: str, known: _Session, item: Item) -> None:
        known.action = plain(item.name, 60) or known.action
        read = self._answers_of.get(item.name)
        heard = read(name, known.model, item) if read is not None else None
        if heard is None or not self._once(name, f"e {heard.key}"):
            return
        is_waiting = heard.to_price is not None and len(self._pending) < PENDING_MAX
        unpriced = 0 if is_waiting or heard.nano is not None else 1
        known.sums.events.add(answers=1, tokens=heard.tokens, nano=heard.nano or 0, unpriced=unpriced)
        if is_waiting and heard.to_price is not None:
            self._pending.append(heard.to_price)

    def _span(self, name: str, known: _Session, item: Item) -> None:
        said = item.attributes
        if said.get("gen_ai.operation.name") in _SUMS:
            return
        ident = f"s {plain(said.get('request_id', '')) or item.ident}"
        own = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
        if any(one in said for one in own):
            tokens = sum(counts(said, *own))
            if self._once(name, ident):
                known.sums.spans.add(answers=1, tokens=tokens, unpriced=1)
            return
        used = _used(said)
        if used is None or not self._once(name, ident):
            return
        known.sums.spans.add(answers=1, tokens=used.total)
        vendor, model = SELLERS.get(_provider(said), ""), _model_of(item)
        if vendor and model and len(self._pending) < PENDING_MAX:
            self._pending.append(Answer(SPANS, ident, 0.0, f"{vendor}/{model}", "", name, "", "", used))
        else:
            known.sums.spans.add(unpriced=1)


def _used(said: Mapping[str, Value]) -> Tokens | None:
    """What a span says that one answer used; None: it says nothing of it. Refused."""
    for names in (_CONVENTION, _BEFORE):
        if any(one in said for one in names):
            given, out = counts(said, *names)
            read, written = (max(counts(said, *cached)) for cached in (CACHE_READ, CACHE_WRITTEN))
            # By the conventions the input holds what came from the cache and went into it; some count it beside.
            plain_in = given - read - written if read + written <= given else given
            return Tokens(plain_in, read, written, 0, out)
    return None


def _provider(said: Mapping[str, Value]) -> str:
    named = next((str(found) for name in PROVIDER if (found := said.get(name))), "")
    return re.sub(r"[^a-z0-9]+", "_", named.lower())


def _model_of(item: Item) -> str:
    named = ("model", "gen_ai.response.model", "gen_ai.request.model")
    return plain(next((found for key in named if (found := item.attributes.get(key))), ""), 100)


def _session_of(item: Item) -> str:
    return next((str(found) for name in _SESSION_NAMES if (found := item.attributes.get(name))), "")


def described(one: Told) -> str:
    """A name for its row."""
    return f"{one.program} {one.session[:8]}"
