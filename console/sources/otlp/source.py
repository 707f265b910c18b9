"""Sessions that tell of themselves by OpenTelemetry (OTLP over HTTP): switched off unless the option ``otlp.port`` names a port.

What it hears is unproven: it names no process, decides nothing, and where a transcript tells of the same session the transcript's figures
hold. A session that nothing else sees is shown with what it says of itself, as a row that no stop can reach.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from console.domain.agent import Sighting, SourceReport
from console.domain.spend import Answer
from console.sources.interface import UNVERIFIED, YOUNG
from console.sources.otlp.book import FORGET_S, SESSIONS_MAX, TelemetryBook, Told, described
from console.sources.otlp.http import HOST, Receiver
from console.sources.otlp.protobuf import MISSING
from console.sources.spend.rates import RateBook
from console.sources.text import plain
from console.wording.agent_kinds import EXAMPLE, TITLES

YOUNG_S = 10.0
"""A session is left to those who know more of it at first: telemetry may be quicker than their next look."""
AGAIN_S = 5.0
"""Between two tries at a port that could not be had."""
NOT_STARTED = "Not available here, because only a running supervisor listens: watchfloor status says what it hears."
UNLINKED = "no process, session file or transcript of this host is of this session"
OFF = (
    "Not available, because it is switched off: the setting otlp.port names the loopback port it listens on "
    "(4318 is OTLP's own; docs/how-to/telemetry.md)."
)


class OtlpSource:
    """Listens between ``start`` and ``close``."""

    name = "otlp"
    can_see = (
        f"Sessions of {TITLES[EXAMPLE]} and other programs that are told to send it telemetry: that they work, their model, "
        "tokens and cost as they report them. Not which process, folder or parent each has, what was said, nor one that is silent. Anybody "
        "on this host may send anything: what it says is shown, joined by session id, and never counts where a transcript tells the same."
    )
    can_stop = "Nothing, and no limit is measured by it: it knows of no process."

    def __init__(self, rates: RateBook, port: int = 0, token_sha256: str = "", book: TelemetryBook | None = None) -> None:
        self.book = book or TelemetryBook()
        self._port, self._has_token = port, bool(token_sha256)
        self._receiver = Receiver(self.book, port, token_sha256)
        self._rates = rates
        self._lock = threading.Lock()
        self._started, self._tried, self._trouble = False, -1e9, NOT_STARTED

    def folders(self) -> list[Path]:
        """None: it is told, it does not look."""
        return []

    def look(self) -> SourceReport:
        """What was heard until now. Never raises."""
        if not self._port:
            return SourceReport(self.name, False, OFF)
        self._listen()
        if self._trouble:
            return SourceReport(self.name, False, self._trouble, broken=self._started)
        for answer in self.book.pending():
            self.book.priced(answer, self._price(answer))
        told = self.book.sessions()
        return SourceReport(self.name, True, self._words(), tuple(_sighting(one) for one in told[:SESSIONS_MAX]))

    def refused(self) -> list[str]:
        """What was refused and is to be recorded: each kind once a minute, with its number."""
        return self.book.untold()

    def start(self) -> None:
        """From the next look on it listens, until ``close``."""
        with self._lock:
            self._started, self._tried = True, -1e9

    def close(self) -> None:
        """Listens no more, whatever look is still under way."""
        with self._lock:
            self._started, self._trouble = False, NOT_STARTED
            self._receiver.close()

    def _listen(self) -> None:
        with self._lock:
            if not self._started or self._receiver.is_open:
                return
            if not self._trouble:
                self._trouble = f"Not available, because {HOST}:{self._port} is not listened on any more. It is tried again."
            if time.monotonic() - self._tried < AGAIN_S:
                return
            self._tried = time.monotonic()
            try:
                self._receiver.open()
                self._trouble = ""
            except OSError as error:
                why = error.strerror or str(error)
                self._trouble = f"Not available, because {HOST}:{self._port} could not be listened on: {why}. It is tried again."

    def _price(self, answer: Answer) -> int | None:
        return self._rates.price(answer)

    def _words(self) -> str:
        words = f"Listens on http://{HOST}:{self._port} (OTLP/HTTP: /v1/metrics, /v1/logs, /v1/traces)"
        words += (
            ", from those who have the token."
            if self._has_token
            else ", from every process on this host: set otlp.token_sha256 to ask for a token."
        )
        words += f" JSON alone, because {MISSING}." if MISSING else ""
        count = self.book.refusals()
        return words + (f" Refused so far: {count:,}." if count else "")


def _sighting(one: Told) -> Sighting:
    heard = time.strftime("%H:%M:%S", time.localtime(one.last_at))
    parts = f" {one.agents} sub-agents were heard of; their spend is in it." if one.agents else ""
    return Sighting(
        source=OtlpSource.name,
        key=one.session,
        name=described(one),
        process=None,
        session=one.session,
        cwd="",
        seen_at=one.last_at,
        status=UNVERIFIED if one.age_s >= YOUNG_S else YOUNG,
        detail=f"Known by telemetry alone, which any process may send: unlinked, because {UNLINKED}. Its spend is as telemetry reports it; "
        f"no limit counts it.{parts} It is shown until it is silent for {FORGET_S / 60:.0f} minutes.",
        usage=one.usage,
        action=plain(f"told {one.action} at {heard}" if one.action else "", 120),
        model=one.model,
        unpriced=one.unpriced,
        unlinked=UNLINKED,
    )
