"""``watchfloor cost``: what the programs of this host spent, read from their own transcripts; works with no supervisor."""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from console.domain.errors import UsageProblem
from console.services.observe.own_agents import workspaces_with_transcripts
from console.settings.layers import in_force
from console.settings.places import Places
from console.sources.kinds import TRANSCRIPTS, VENDORS
from console.sources.spend.rates import RateBook
from console.sources.spend.reader import SpendReader
from console.sources.spend.store import SpendStore
from console.sources.spend.sums import Sum
from console.sources.spend.transcript_files import Found
from console.supervisor.verbs.printing import show

_SHOWN = 12
Span = tuple[float, float]


def cost_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("--since", metavar="DAY", default="", help="first day, YYYY-MM-DD, local time")
    parser.add_argument("--until", metavar="DAY", default="", help="last day, YYYY-MM-DD, local time")
    parser.add_argument("--home", metavar="DIR", default="", help="look in this home alone")


def cost(places: Places | None, given: argparse.Namespace) -> int:
    """Reads what is new, sums what is kept. Raises UsageProblem on a bad day, ConsoleError when nothing can be kept."""
    span = (_day(given.since, "--since"), _day(given.until, "--until", whole=True) or 9e18)
    if span[0] >= span[1]:
        raise UsageProblem(f"--since {given.since} is after --until {given.until}.", "Name the earlier day with --since.")
    if given.home and not Path(given.home).is_dir():
        raise UsageProblem(f"There is no folder {given.home[:200]!r}.", "Name a home folder that holds the files of an agent.")
    with ExitStack() as held:
        # Where there is no instance yet, none is made: what was read is forgotten again.
        folder = places.state_dir if places is not None else Path(held.enter_context(TemporaryDirectory(prefix="watchfloor-cost-")))
        # A home of its own has a store of its own: its sums hold nothing of this host's.
        store = SpendStore(folder / (f"cost-{_slug(given.home)}.db" if given.home else "cost.db"))
        held.callback(store.close)
        reader = _reader(places, store, given.home)
        found = reader.read()
        store.fold(time.time())
        if store.unpriced(*span):
            reader.reprice()
        data = report(store, span, found, [str(folder) for _, folder in reader.folders()])
    show(given, data, lines(data))
    return 0


def _reader(places: Places | None, store: SpendStore, home: str) -> SpendReader:
    """Read as the supervisor of the instance does, because its limits of a day are measured by the same store.

    An instance with a folder of its own knows only the home that was named for it.
    """
    if home:
        return SpendReader(store, RateBook(VENDORS), TRANSCRIPTS, Path(home).resolve())
    if places is None:
        return SpendReader(store, RateBook(VENDORS), TRANSCRIPTS)
    named = in_force(places).options.discover_root
    # Agents that were started here write in their workspaces: theirs is the same host's spending.
    own = partial(workspaces_with_transcripts, places.workspaces_dir)
    return SpendReader(store, RateBook(VENDORS), TRANSCRIPTS, Path(named) if named else None, own, places.is_default or bool(named))


def report(store: SpendStore, span: Span, found: Found, folders: list[str]) -> dict[str, Any]:
    """The JSON object: sums by day, model, tree and project, and what is not priced."""
    by_source, by_model = store.sums("source", *span), store.sums("model", *span)
    troubles = [*found.troubles[:20], *([store.lost] if store.lost else [])]
    if found.reading.odd:
        troubles.append(f"{found.reading.odd:,} records with usage could not be read, or name numbers that no model gives")
    return {
        "total_cost_usd": round(sum(one.cost_usd for one in by_source), 9),
        "tokens": sum(one.tokens for one in by_source),
        "answers": sum(one.answers for one in by_source),
        "by_day": [_one(one, "day") for one in store.sums("day", *span)],
        "by_model": [_one(one, "model") for one in by_model],
        "by_tree": [_one(one, "session") | {"project": one.project} for one in store.sums("session", *span)],
        "by_project": [_one(one, "project") | {"sessions": one.sessions} for one in store.sums("project", *span)],
        "by_source": [_one(one, "source") for one in by_source],
        "unpriced": [{"model": one.key, "answers": one.unpriced, "tokens": one.tokens} for one in by_model if one.unpriced],
        "prices": store.prices(),
        "looked_in": folders,
        "sums_before": store.closed,
        "late_answers": store.late,
        "files": found.files,
        "troubles": troubles,
    }


def _one(one: Sum, name: str) -> dict[str, Any]:
    return {
        name: one.key,
        "cost_usd": round(one.cost_usd, 9),
        "tokens": one.tokens,
        "answers": one.answers,
        "unpriced": one.unpriced,
        "last_at": one.last_at,
    }


def lines(data: dict[str, Any]) -> list[str]:
    """For people."""
    if not data["answers"]:
        return [
            "Nothing was spent, as far as transcripts tell.",
            _where(data["looked_in"]),
            *_notes(data),
        ]
    said = [f"${data['total_cost_usd']:,.4f}  {data['tokens']:,} tokens  {data['answers']:,} answers"]
    for title, rows, name in (
        ("by day", data["by_day"][-_SHOWN:], "day"),
        ("by model", data["by_model"][:_SHOWN], "model"),
        ("by tree", data["by_tree"][:_SHOWN], "session"),
        ("by project", data["by_project"][:_SHOWN], "project"),
    ):
        said += ["", title]
        said += [f"  ${row['cost_usd']:>12,.4f}  {row['tokens']:>14,} tokens  {_word(row[name])}{_open(row)}" for row in rows]
        if len(data[f"by_{title.removeprefix('by ')}"]) > len(rows):
            said.append(f"  and {len(data['by_' + title.removeprefix('by ')]) - len(rows):,} more (--json shows all)")
    return [*said, *_notes(data)]


def _where(folders: list[str]) -> str:
    if not folders:
        return "Looked at agents of this instance only. --home DIR looks in the home of another account."
    more = f" and {len(folders) - 4:,} more folders (--json names all)" if len(folders) > 4 else ""
    return f"Looked in {', '.join(_word(folder) for folder in folders[:4])}{more}."


def _notes(data: dict[str, Any]) -> list[str]:
    said = [
        f"Not priced, so not in the sums: {_word(one['model'])}, {one['answers']:,} answers, {one['tokens']:,} tokens."
        for one in data["unpriced"][:_SHOWN]
    ]
    if len(data["unpriced"]) > _SHOWN:
        said.append(f"And {len(data['unpriced']) - _SHOWN:,} more models without a price (--json shows all).")
    if data["prices"]:
        said.append(f"Prices: {', '.join(data['prices'])}. What a subscription covers is counted at the vendor's prices too.")
    if data["sums_before"]:
        words = f"Days before {data['sums_before']} are kept as sums"
        said.append(
            f"{words}; {data['late_answers']:,} answers read of them only now are not counted." if data["late_answers"] else f"{words}."
        )
    said += [f"Not read: {_word(trouble)}" for trouble in data["troubles"]]
    return ["", *said] if said else []


def _open(row: dict[str, Any]) -> str:
    return f"  (+ {row['unpriced']:,} unpriced)" if row["unpriced"] else ""


def _word(text: str) -> str:
    """Names are an agent's: nothing of them reaches a terminal but what can be seen."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:120])
    return shown or "(not named)"


def _day(text: str, option: str, *, whole: bool = False) -> float:
    """Its first moment, or with ``whole`` the first after it; 0: not given."""
    if not text:
        return 0.0
    try:
        day = datetime.strptime(text, "%Y-%m-%d") + (timedelta(days=1) if whole else timedelta())
        return time.mktime(day.timetuple())
    except (ValueError, OverflowError) as error:
        raise UsageProblem(f"{option} {text[:40]!r} is no day.", "Use YYYY-MM-DD, for example 2026-11-21.") from error


def _slug(home: str) -> str:
    import hashlib

    return hashlib.sha256(str(Path(home).resolve()).encode()).hexdigest()[:12]
