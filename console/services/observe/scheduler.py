"""Let each source look in its own time. A source that hangs or breaks is shown as such and holds up no other. A change wakes its source."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field

from console.api import messages as m
from console.domain.agent import AgentId, SourceReport
from console.domain.budget import Usage
from console.domain.engine import event as e
from console.domain.engine.command import Record
from console.domain.ids import ControlLevel
from console.services.fleet.core import Core, now
from console.services.fleet.spent import tell_spend
from console.services.notices.shown import Notice
from console.services.observe.own_agents import OwnAgents
from console.services.records.record_writer import Scribe
from console.sources.docker import DockerSource
from console.sources.folder_watch import FolderWatch
from console.sources.interface import GONE, Source
from console.sources.kinds import WOKEN_BY_SUMS
from console.sources.otlp.source import OtlpSource
from console.sources.plain_processes import ProcessSource
from console.sources.spend.of_session import SessionSpend

log = logging.getLogger(__name__)
PERIOD_S = 1.0
SHARE = 12
"""A source rests this many times as long as its look took: a bounded part of one core."""
REST_S = (0.1, 0.8)
"""Shortest and longest rest before a look that a change asked for."""
REST_SHARE = 60
"""The same as SHARE for such a look. A fleet that always writes is looked at about once a second, as often as a quiet one."""
LONGEST_S = 5.0
WALK_SHARE, WALK_MOST_S = 70, 1.4
"""The same as SHARE, and the longest rest, for the walk over /proc. A program must be seen within 2 s beside thousands of processes."""
SILENT_S = 10.0
"""Seconds after which a look that is not over is reported. Only this source waits for it."""
TOGETHER_S = 0.05
SOURCE_STOPPED = "Not available, because the source has stopped. It starts again in a second."
AGAIN_S = 2.0
"""Seconds after which a source's report is taken again although it did not change."""


@dataclass(slots=True)
class _Watched:
    """One source and how it fares."""

    source: Source
    report: SourceReport | None = None
    at: float = 0.0
    trouble: str = ""
    """``broken`` or ``silent``, or empty."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    watch: FolderWatch | None = None


class Lookout:
    """All sources of one supervisor, on its loop."""

    __slots__ = ("_notice", "_all", "_news", "_taken", "_core", "_scribe", "_sources", "_spend", "_own_agents", "_runs")

    def __init__(
        self, core: Core, scribe: Scribe, sources: tuple[Source, ...], spend: SessionSpend | None, own_agents: OwnAgents, notice: Notice
    ) -> None:
        self._core, self._scribe, self._sources, self._spend, self._own_agents = core, scribe, sources, spend, own_agents
        self._notice = notice
        self._all: list[_Watched] = []
        self._news = asyncio.Event()
        self._taken = -1e9
        self._runs = True
        """Whether a known program runs. While none does, no session files change."""

    async def run(self) -> None:
        """Forever; ends its watches when it is cancelled."""
        loop = asyncio.get_running_loop()
        self._all = [_Watched(source) for source in self._sources]
        fresh = self._spend.fresh if self._spend is not None else None
        for one in self._all:
            if isinstance(one.source, OtlpSource):
                one.source.start()
            elif not isinstance(one.source, ProcessSource):  # those two have no folders, and never will
                one.watch = FolderWatch(one.source.name, one.source.folders, lambda paths, one=one: self._changed(loop, one, paths), fresh)  # type: ignore[misc]
                one.watch.start()
        if self._spend is not None:
            self._spend.news = lambda sources: self._wake(loop, sources)
            self._spend.begin()
        tasks = [loop.create_task(self._take_all()), *(loop.create_task(self._look(one)) for one in self._all)]
        has_broken = True
        try:
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            has_broken = False  # the supervisor ends
            raise
        finally:
            for task in tasks:
                task.cancel()
            for one in self._all:
                _end(one, has_broken=has_broken)

    def _changed(self, loop: asyncio.AbstractEventLoop, one: _Watched, paths: frozenset[str]) -> None:
        """From a watching thread."""
        spend = self._spend
        transcripts = [path for path in paths if path.endswith((".jsonl", ".db", ".db-wal"))]
        if spend is not None and transcripts:
            spend.changed(transcripts)
        elif spend is not None and not paths:
            spend.look_soon()
        others = [path for path in paths if path.endswith(".json") or "." not in path.rpartition("/")[2][1:-1]]
        is_worth = not paths or others or (transcripts and (spend is None or one.source.name not in WOKEN_BY_SUMS))
        if is_worth and not loop.is_closed():
            loop.call_soon_threadsafe(one.woken.set)

    def _wake(self, loop: asyncio.AbstractEventLoop, sources: frozenset[str]) -> None:
        """Wake the named sources from the thread that sums spend, so that new spend is shown with the next look."""
        if not loop.is_closed():
            for one in self._all:
                if one.source.name in sources:
                    loop.call_soon_threadsafe(one.woken.set)

    async def _look(self, one: _Watched) -> None:
        while True:
            began = time.monotonic()
            self._own_agents.update(self._core.state)
            one.woken.clear()
            report = await self._report(one)
            self._keep(one, report, "broken" if report.broken else "")
            self._record_refusals(one.source)
            took = time.monotonic() - began
            self._wake_for_the_first(one)
            least = min(max(REST_SHARE * took, REST_S[0]), REST_S[1])
            began, timer = time.monotonic(), asyncio.get_running_loop().call_later(max(least, self._rest(one, took)), one.woken.set)
            await one.woken.wait()
            timer.cancel()
            await asyncio.sleep(max(0.0, began + least - time.monotonic()))

    def _rest(self, one: _Watched, took: float) -> float:
        """Return the seconds until the next look. A source without sightings rests long: the first process or a changed folder wakes it."""
        if isinstance(one.source, ProcessSource):
            return min(max(PERIOD_S, WALK_SHARE * took), WALK_MOST_S)
        is_told = one.watch is not None and one.watch.tells and not isinstance(one.source, DockerSource)
        if is_told and not self._runs and one.report is not None and not one.report.sightings and not self._core.state.held:
            return LONGEST_S
        return min(max(PERIOD_S, SHARE * took), LONGEST_S)

    def _wake_for_the_first(self, one: _Watched) -> None:
        """Wake every source when the first known program starts, or the last one ends."""
        if isinstance(one.source, ProcessSource) and one.source.runs != self._runs:
            self._runs = one.source.runs
            for other in self._all:
                other.woken.set()

    def _record_refusals(self, source: Source) -> None:
        """What telemetry sent that was not taken."""
        for words in source.refused() if isinstance(source, OtlpSource) else ():
            self._scribe.record(Record("supervisor", "telemetry.refused", words, verdict="refused"))

    async def _report(self, one: _Watched) -> SourceReport:
        """What it saw, or why it could not look."""
        name = one.source.name
        look = asyncio.get_running_loop().run_in_executor(None, one.source.look)
        began = time.monotonic()
        try:
            while not (await asyncio.wait({look}, timeout=SILENT_S))[0]:
                words = f"Not available, because it has not answered for {time.monotonic() - began:.0f} s."
                self._keep(one, SourceReport(name, False, words), "silent")
            return look.result()
        # Whatever a source stumbles over, the others go on: a skip is a value with a reason.
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
            log.error("source %s broke", name, exc_info=error)
            words = f"Not available, because looking broke: {type(error).__name__}: {str(error)[:200]}."
            one.trouble = "broken"
            return SourceReport(name, False, words)

    def _keep(self, one: _Watched, report: SourceReport, trouble: str = "") -> None:
        had = one.report
        one.trouble = trouble or ("" if report.available else one.trouble)
        is_news = had is None or had != report
        one.report, one.at = report, time.time()
        name = one.source.name
        if had is not None and had.available and not report.available:
            self._notice(f"Source {name} can see nothing now. {report.reason} The other sources go on.")
        elif had is None and one.trouble:
            self._notice(f"Source {name} can see nothing. {report.reason} The other sources go on.")
        elif had is not None and not had.available and report.available:
            self._notice(f"Source {name} sees again.", "info")
        # What says the same again changes nothing, but for what became of our own agents meanwhile.
        if is_news or time.monotonic() - self._taken > AGAIN_S:
            self._news.set()

    async def _take_all(self) -> None:
        """One step of the engine for what several sources say at the same moment."""
        while True:
            await self._news.wait()
            await asyncio.sleep(TOGETHER_S)
            self._news.clear()
            self.take(tuple(one.report for one in self._all if one.report is not None))

    def take(self, reports: tuple[SourceReport, ...]) -> None:
        """Shows who is there, and meters what they spent since the last look."""
        self._taken = time.monotonic()
        core, event = self._core, e.Sighted(*now(), reports)
        agents = core.state.agents
        before = {i: agents[i] for i in (*core.state.seen, *core.state.ended_parts) if i in agents}
        core.post(event)
        for agent_id, agent in before.items():
            if agents.get(agent_id, agent) is not agent:
                self._meter(agent_id, event.at, agent.usage)

    def _meter(self, agent_id: AgentId, at: float, before: Usage) -> None:
        agent, seen = self._core.state.agents[agent_id], self._core.state.seen.get(agent_id)
        spent = agent.usage.cost_usd - before.cost_usd
        if spent <= 0 or agent.source == OtlpSource.name:  # what telemetry alone says is in its row, and in no sum
            return
        is_inside = seen is not None and seen.inside is not None
        if is_inside and agent.control_level is ControlLevel.OBSERVED:
            return  # the agent in which it runs is charged with the whole of its session
        if agent.control_level not in (ControlLevel.OBSERVED, ControlLevel.ADOPTED) or is_inside:
            tell_spend(self._core, self._scribe, agent_id, at, spent, agent.usage.tokens - before.tokens)
        elif before.cost_usd > 0:  # the first sum is the session's history, which burnt at other times
            self._core.meters.add_seen(agent_id, at, spent)

    def views(self) -> list[m.SourceView]:
        """Each source's own words, where it looks and how it fares."""
        return [_view(one) for one in self._all]


def _end(one: _Watched, *, has_broken: bool) -> None:
    if one.watch is not None:
        one.watch.end()
    if isinstance(one.source, OtlpSource):
        one.source.close()
    if has_broken:
        one.report, one.trouble = SourceReport(one.source.name, False, SOURCE_STOPPED), "broken"


def _view(one: _Watched) -> m.SourceView:
    source, report = one.source, one.report
    watched = one.watch is not None and not one.watch.problem and bool(source.folders())
    state = one.trouble or ("absent" if report is not None and not report.available else _state(source, watched=watched))
    return m.SourceView(
        source=source.name,
        available=report is not None and report.available,
        reason=report.reason if report is not None else "Not looked yet.",
        sees=sum(one.status != GONE for one in report.sightings) if report is not None else 0,
        can_see=source.can_see,
        can_stop=source.can_stop,
        state=state,
        watching=_words(one, watched=watched),
        looks_in=[str(folder).encode("utf-8", "replace").decode() for folder in source.folders()[:20]],
        looked_at=one.at,
    )


def _state(source: Source, *, watched: bool) -> str:
    return "listening" if isinstance(source, OtlpSource) else "watching" if watched else "polling"


def _words(one: _Watched, *, watched: bool) -> str:
    if isinstance(one.source, OtlpSource):
        return "It is told; what it was told is shown about once a second."
    if watched:
        return "Changes are seen immediately. It also looks once a second, and every ten seconds at files without a reported change."
    why = one.watch.problem if one.watch is not None and one.source.folders() else "nothing tells of changes there"
    return f"Looks about once a second, because {why}."
