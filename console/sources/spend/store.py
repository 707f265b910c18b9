"""What was read of transcripts, kept: files with how far they were read, and every answer once with its price.

One SQLite file, ``cost.db`` of the state directory. It is more than a cache: programs delete their transcripts after some weeks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache

from console.domain.spend import ID_PARTS, Answer, Tokens
from console.sources.spend.totals import BULK, SpendTotals
from console.sources.spend.transcript_files import Place

KEEP_DAYS = 92
"""Answers of earlier days are kept as sums: by day, model, session, sub-agent and project."""
ROWS_MAX = 1_000_000
"""Answers kept one by one; when there are more, more days become sums, but never today and yesterday."""
SUMS_MAX = 200_000
"""Rows of sums; when there are more, the older half keeps day and model alone."""
_DAY_S = 86_400.0
_FOLD = """
insert into folded
  select uid, source, day, max(at), model, session, agent, project, prices, ours, cast(total(tokens) as integer),
    cast(total(cost) as integer), count(*), sum(unpriced)
  from (
    select uid, source, day, at, model, session, agent, project, prices, ours,
      plain + cache_read + cache_write_5m + cache_write_1h + output as tokens,
      case when reported >= 0 then reported else nano end as cost, (nano is null and reported < 0) as unpriced
    from answers where day < :until and day <> '')
  group by uid, source, day, model, session, agent, project, prices, ours
  on conflict do update set at = max(at, excluded.at), tokens = tokens + excluded.tokens, cost = cost + excluded.cost,
    answers = answers + excluded.answers, unpriced = unpriced + excluded.unpriced
"""
_SQUEEZE = """
create temp table squeezed as
  select uid, source, day, max(at) as at, model, '' as session, '' as agent, '' as project, prices, ours,
    cast(total(tokens) as integer) as tokens, cast(total(cost) as integer) as cost, sum(answers) as answers, sum(unpriced) as unpriced
  from folded where day <= :until group by uid, source, day, model, prices, ours
"""
_BARE = """
select 1 from answers where uid = ? and source = ? and answer_id = ?
  and plain = ? and cache_read = ? and cache_write_5m = ? and cache_write_1h = ?"""
_INSERT = """
insert into answers values(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
  on conflict(uid, source, answer_id) do update set plain = excluded.plain, cache_read = excluded.cache_read, output = excluded.output,
    cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h, searches = excluded.searches, nano = excluded.nano,
    reported = excluded.reported, prices = excluded.prices
  where excluded.plain + excluded.cache_read + excluded.cache_write_5m + excluded.cache_write_1h + excluded.output
    > plain + cache_read + cache_write_5m + cache_write_1h + output
"""


class SpendStore(SpendTotals):
    """Opened by one thread at a time. Raises ConsoleError when the disk refuses."""

    def places(self, keys: Iterable[str] | None = None) -> dict[str, Place]:
        """Every file that was read, by path; or these alone."""
        query = "select path, dev, inode, size, mtime_ns, offset, mark, state from files"
        rows = self._asked(query) if keys is None else [row for key in keys for row in self._asked(f"{query} where path = ?", (key,))]
        return {row[0]: Place(*row[1:]) for row in rows}

    def forget_places(self, keys: Iterable[str]) -> None:
        """Of files that are gone; within ``writing``."""
        self._db.executemany("delete from files where path = ?", ((key,) for key in keys))

    def keep_places(self, places: dict[str, Place]) -> None:
        """Within ``writing``."""
        rows = ((path, p.dev, p.inode, p.size, p.mtime_ns, p.offset, p.mark, p.state) for path, p in places.items())
        self._db.executemany("insert or replace into files values(?,?,?,?,?,?,?,?)", rows)

    def add(self, priced: Iterable[tuple[Answer, int | None]], prices: str) -> None:
        """Answers with their price in nano-dollars; within ``writing``. One that is there counts once, with its larger numbers."""
        rows = [_row(self._as_kept(answer) if self.has_bare_ids else answer, nano, prices) for answer, nano in priced]
        if self.closed:
            kept = [row for row in rows if not row[4] or str(row[4]) >= self.closed]
            self.late += len(rows) - len(kept)
            rows = kept
        if len(rows) > BULK:
            self.without_sums(rows, _INSERT)
        else:
            self._db.executemany(_INSERT, rows)

    def _as_kept(self, answer: Answer) -> Answer:
        """Under the id by which an earlier version kept it, if it did."""
        bare, _, more = answer.answer_id.partition(ID_PARTS)
        tokens = answer.tokens
        key = (answer.uid, answer.source, bare, tokens.plain, tokens.cache_read, tokens.cache_write_5m, tokens.cache_write_1h)
        return answer._replace(answer_id=bare) if more and self._asked(_BARE, key) else answer

    def fold(self, now: float, keep_days: int = KEEP_DAYS, rows_max: int = ROWS_MAX, sums_max: int = SUMS_MAX) -> None:
        """Old days become sums, so that the file stays bounded. Raises ConsoleError."""
        until = _day(now - keep_days * _DAY_S)
        over = self._asked("select count(*) from answers")[0][0] - rows_max
        if over > 0:
            newest = _day(now - _DAY_S)
            for day, count in self._asked("select day, count(*) from answers where day <> '' and day < ? group by 1 order by 1", (newest,)):
                if over <= 0:
                    break
                until, over = max(until, _day_after(day)), over - count
        if self._asked("select 1 from answers where day < ? and day <> '' limit 1", (until,)):
            with self.writing():
                self._db.execute(_FOLD, {"until": until})
                self._db.execute("delete from answers where day < ? and day <> ''", (until,))
                self._db.execute("insert or replace into meta values('closed', ?)", (max(until, self.closed),))
            self.closed = max(until, self.closed)
        if self._asked("select count(*) from folded")[0][0] > sums_max:
            self._squeeze(sums_max)

    def _squeeze(self, sums_max: int) -> None:
        days = self._asked("select day, count(*) from folded group by 1 order by 1")
        until, left = "", sum(count for _, count in days) - sums_max // 2
        for day, count in days:
            if left <= 0:
                break
            until, left = day, left - count
        with self.writing():
            self.forget_sessions()
            self._db.execute(_SQUEEZE, {"until": until})
            self._db.execute("delete from folded where day <= ?", (until,))
            self._db.execute("insert into folded select * from squeezed")
            self._db.execute("drop table squeezed")

    def unpriced_models(self, prices: str) -> list[tuple[str, str]]:
        """(source, model) that another version of the price table did not know."""
        query = "select distinct source, model from answers where nano is null and reported < 0 and prices <> ?"
        return [(source, model) for source, model in self._asked(query, (prices,))]

    def kept(self, source: str, model: str) -> list[Answer]:
        """Unpriced answers of a model, for another try."""
        query = """
          select uid, source, answer_id, at, model, tier, session, agent, project,
            plain, cache_read, cache_write_5m, cache_write_1h, output, searches
          from answers where source = ? and model = ? and nano is null"""
        return [Answer(*(*row[1:9], Tokens(*row[9:])))._replace(uid=row[0]) for row in self._asked(query, (source, model))]

    def set_price(self, answer: Answer, nano: int | None, prices: str) -> None:
        """Within ``writing``."""
        values = (nano, prices, answer.uid, answer.source, answer.answer_id)
        self._db.execute("update answers set nano = ?, prices = ? where uid = ? and source = ? and answer_id = ?", values)


def _row(answer: Answer, nano: int | None, prices: str) -> tuple[object, ...]:
    t = answer.tokens
    day = _day(answer.at) if answer.at else ""
    reported = -1 if answer.reported_nano is None else answer.reported_nano
    return (
        answer.uid, answer.source, answer.answer_id, answer.at, day,
        answer.model, answer.tier, answer.session, answer.agent, answer.project,
        t.plain, t.cache_read, t.cache_write_5m, t.cache_write_1h, t.output, t.web_searches, nano, reported, prices, int(answer.ours),
    )  # fmt: skip


def _day(at: float) -> str:
    return _day_of(int(at // 900))


@lru_cache(maxsize=4096)
def _day_of(quarter: int) -> str:
    """Local days begin at a quarter of an hour everywhere."""
    return time.strftime("%Y-%m-%d", time.localtime(quarter * 900))


def _day_after(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()
