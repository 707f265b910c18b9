"""The charts of the Budgets page: today's burn, cost by model and day, windows of subscriptions. Read beside the loop."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from console.api import budgets as b
from console.domain.budget import forecast, idle_words, rate_per_h
from console.domain.errors import ConsoleError
from console.services.budgets.burn_rate import BurnBook
from console.services.fleet.core import Core, now
from console.services.records.record_writer import Scribe
from console.settings.options import Options
from console.settings.places import Places
from console.sources.home_dirs import homes
from console.sources.kind import Lacks
from console.sources.kinds import KINDS
from console.sources.quota import Window
from console.sources.spend.store import SpendStore

SLICE_S = 900.0
DAYS = 7
REPORTED = "reported by agents themselves"
"""Spend that came over agents' sockets names no model."""
MODELS = 50
"""Named; a transcript may name as many as it likes."""
OTHERS = "all others"


@dataclass(frozen=True, slots=True)
class Charts:
    """What the page draws: the day's burn, models, windows of subscriptions."""

    core: Core
    scribe: Scribe
    burn: BurnBook
    places: Places
    options: Options

    async def view(self) -> b.BudgetPictures:
        """GET /api/budgets/pictures."""
        at, boot = now()
        spending = self.core.state.spending
        minutes, known = self.burn.minutes_of(spending, "cost_usd", boot), self.burn.known_min(None, boot)
        await asyncio.to_thread(self.scribe.settle, 2.0)
        present = {agent.source.replace("_", "-") for agent in self.core.state.agents.values()}
        view = await asyncio.to_thread(self._read, at, present)
        if minutes:
            view.burn.projected_usd_per_h = rate_per_h(minutes, known)
            seen = forecast(0.0, minutes, known, 3600.0)
            if seen is not None:
                view.burn.low_usd_per_h, view.burn.high_usd_per_h = seen.low, seen.high
        else:
            view.burn.note = f"no projection: {idle_words(known, 'spent') if spending else 'no agent runs'}"
        return view

    def _read(self, at: float, present: Collection[str] = ()) -> b.BudgetPictures:
        midnight = _midnight(at)
        slices: dict[int, float] = defaultdict(float)
        models: dict[tuple[str, str], b.ModelDay] = {}
        since = _midnight(midnight - (DAYS - 1) * 86400 + 7200)  # a day may have 23 hours, or 25
        until = at + 86400  # no clock that is wrong hides the days that were
        for sample_at, cost, tokens in self.scribe.ledger.spend_between(since, until):
            if sample_at >= midnight:
                slices[int((sample_at - midnight) // SLICE_S)] += cost
            one = _model(models, time.strftime("%Y-%m-%d", time.localtime(sample_at)), REPORTED)
            one.cost_usd += cost
            one.tokens += tokens
        note, prices = _transcripts(self.places.state_dir / "cost.db", (since, midnight, until), slices, models)
        count = max(1, int((at - midnight) // SLICE_S) + 1)
        per_h = [round(slices.get(n, 0.0) * 3600 / SLICE_S, 6) for n in range(count)]
        if (passed := (at - midnight) % SLICE_S) >= 60:  # the last slice is not over
            per_h[-1] = round(slices.get(count - 1, 0.0) * 3600 / passed, 6)
        return b.BudgetPictures(
            at=at,
            burn=b.DayBurn(since=midnight, slice_s=SLICE_S, usd_per_h=per_h),
            models=sorted(_named(models).values(), key=lambda m: (m.day, -m.cost_usd, m.model)),
            models_note=note,
            prices=prices,
            windows=self._windows(present),
        )

    def _windows(self, present: Collection[str]) -> list[b.WindowView]:
        """``present``: names of the kinds that have an agent here. One whose windows no file tells is named only then."""
        root = Path(self.options.discover_root) if self.options.discover_root else None
        found: list[b.WindowView] = []
        for kind in KINDS:
            program, why, seen = kind.program.title.removesuffix(" Code"), "", list[Window]()
            if isinstance(kind.quota, Lacks):
                if kind.name not in present:
                    continue
                why = f"not available, because {kind.quota.why}"
            elif not self._looks():
                why = f"not available, because this instance has its own folder and does not look for {program}"
            else:
                seen = kind.quota(homes(root))
                why = "" if seen else f"not available, because no file of {program} that was read says how much of its window is used"
            if why:
                found += [b.WindowView(program=program, window=name, why_not=why) for name in kind.windows]
            for w in seen:
                share, length = round(w.share, 4), _length(w.minutes)
                found.append(b.WindowView(program=program, window=length, share=share, renews_at=w.renews_at, seen_at=w.seen_at))
        return found

    def _looks(self) -> bool:
        """An instance in a folder of its own looks nowhere but where it is told to."""
        return self.places.is_default or bool(self.options.discover_root)


def _model(models: dict[tuple[str, str], b.ModelDay], day: str, model: str) -> b.ModelDay:
    return models.setdefault((day, model), b.ModelDay(day=day, model=model))


def _add(to: b.ModelDay, one: b.ModelDay) -> None:
    to.cost_usd += one.cost_usd
    to.tokens += one.tokens
    to.unpriced += one.unpriced
    to.unpriced_tokens += one.unpriced_tokens


def _named(models: dict[tuple[str, str], b.ModelDay]) -> dict[tuple[str, str], b.ModelDay]:
    """The dearest by name, all others of a day together."""
    sums: dict[str, b.ModelDay] = {}
    for one in models.values():
        _add(sums.setdefault(one.model, b.ModelDay(day="", model=one.model)), one)
    dearest = {one.model for one in sorted(sums.values(), key=lambda m: (-m.cost_usd, -m.tokens, m.model))[:MODELS]}
    found: dict[tuple[str, str], b.ModelDay] = {}
    for one in models.values():
        _add(_model(found, one.day, one.model if one.model in dearest else OTHERS), one)
    return found


def _transcripts(
    file: Path, span: tuple[float, float, float], slices: dict[int, float], models: dict[tuple[str, str], b.ModelDay]
) -> tuple[str, str]:
    """Return what programs wrote down themselves, and (what is missing and why, the versions of the price tables)."""
    since, midnight, until = span
    if not file.exists():
        return "transcripts were not read: this instance does not look for agents of the host", ""
    try:
        store = SpendStore(file)
        try:
            for at, one in _rows(store, since, until, ours=False):
                if at >= midnight:
                    slices[int((at - midnight) // SLICE_S)] += one.cost_usd
                _add(_model(models, one.day, one.model), one)
            for _, one in _rows(store, since, until, ours=True):
                _name(models, one)
            return "", ", ".join(store.prices())[:200]
        finally:
            store.close()
    except ConsoleError as error:
        return f"transcripts could not be read: {error}", ""


def _rows(store: SpendStore, since: float, until: float, *, ours: bool) -> Iterator[tuple[float, b.ModelDay]]:
    """(start of its slice, what one model cost in it), of agents started here or of others."""
    for at, day, model, cost, tokens, odd, odd_tokens in store.by_slice(since, until, SLICE_S, ours=ours):
        one = b.ModelDay(day=day, model=model or "(not named)", cost_usd=cost, tokens=tokens, unpriced=odd, unpriced_tokens=odd_tokens)
        yield at, one


def _name(models: dict[tuple[str, str], b.ModelDay], one: b.ModelDay) -> None:
    """What an agent of ours was charged names no model; its transcripts do: that part is theirs, and counts once."""
    reported = models.get((one.day, REPORTED))
    if reported is not None:
        reported.cost_usd = max(0.0, reported.cost_usd - one.cost_usd)
        reported.tokens = max(0, reported.tokens - one.tokens)
        if reported.cost_usd < 1e-9 and not reported.tokens:
            del models[one.day, REPORTED]
    _add(_model(models, one.day, one.model), one)


def _midnight(at: float) -> float:
    there = time.localtime(at)
    return time.mktime((there.tm_year, there.tm_mon, there.tm_mday, 0, 0, 0, 0, 0, -1))


def _length(minutes: int) -> str:
    """Windows are named a minute short of their length."""
    if minutes <= 0:
        return "not named"
    hours = round(minutes / 60)
    return "week" if hours == 168 else f"{hours // 24} d" if hours >= 24 and hours % 24 == 0 else f"{hours} h"
