"""How ``cost.db`` is laid out (SQLite), by version; what triggers add to sums stands beside what they add it to."""

from __future__ import annotations

VERSION = 5
SCHEMA = """
create table files(path text primary key, dev integer, inode integer, size integer, mtime_ns integer, offset integer, mark text, state text)
  without rowid, strict;
create table answers(
  uid integer not null, source text not null, answer_id text not null,
  at real not null, day text not null, model text not null, tier text not null,
  session text not null, agent text not null, project text not null, plain integer not null, cache_read integer not null,
  cache_write_5m integer not null, cache_write_1h integer not null, output integer not null, searches integer not null,
  nano integer, reported integer not null, prices text not null, ours integer not null default 0,
  primary key(uid, source, answer_id)) without rowid, strict;
"""
ADDED = """
create table if not exists folded(
  uid integer not null, source text not null, day text not null, at real not null, model text not null, session text not null,
  agent text not null, project text not null, prices text not null, ours integer not null,
  tokens integer not null, cost integer not null, answers integer not null, unpriced integer not null,
  primary key(uid, source, day, model, session, agent, project, prices, ours)) without rowid, strict;
create table if not exists meta(name text primary key, value text not null) without rowid, strict;
create index if not exists by_session on answers(session, source, uid);
create index if not exists by_at on answers(at);
create index if not exists folded_by_session on folded(session, source, uid);
create view if not exists spent as
  select uid, source, day, at, model, session, agent, project, prices, ours,
    plain + cache_read + cache_write_5m + cache_write_1h + output as tokens,
    case when reported >= 0 then reported else nano end as cost, 1 as answers, (nano is null and reported < 0) as unpriced
  from answers
  union all select uid, source, day, at, model, session, agent, project, prices, ours, tokens, cost, answers, unpriced from folded;
"""
OF_SESSION = """
  select ?, ?, ?, agent, total(cost), total(tokens), sum(answers), sum(unpriced), model, max(at)
  from spent where +uid = ? and +source = ? and session = ? group by agent"""
"""One session by its agents, behind three words of the caller's. The + keeps SQLite from looking through everything its user ever spent:
it is found by its id."""
TABLES = """
create table if not exists sum_sessions(session text, source text, uid integer, primary key(session, source, uid)) without rowid;
create table if not exists sum_agents(
  session text, source text, uid integer, agent text, cost real, tokens real, answers integer, unpriced integer, model text, at real,
  primary key(session, source, uid, agent)) without rowid;
create table if not exists sum_days(
  day text, source text, ours integer, cost real, unpriced integer, primary key(day, source, ours)) without rowid;
"""


def _cost(row: str) -> str:
    return f"ifnull(case when {row}.reported >= 0 then {row}.reported else {row}.nano end, 0)"


def _tokens(row: str) -> str:
    return f"({row}.plain + {row}.cache_read + {row}.cache_write_5m + {row}.cache_write_1h + {row}.output)"


def _unpriced(row: str) -> str:
    return f"({row}.nano is null and {row}.reported < 0)"


_IS_SUMMED = "exists(select 1 from sum_sessions where session = new.session and source = new.source and uid = new.uid)"
_IS_OF_DAY = "new.day >= (select value from meta where name = 'sums_from')"
TRIGGERS = {
    "sum_new": f"""after insert on answers when {_IS_SUMMED} begin
      insert into sum_agents values(new.session, new.source, new.uid, new.agent, {_cost("new")}, {_tokens("new")}, 1, {_unpriced("new")},
        new.model, new.at)
      on conflict do update set cost = cost + excluded.cost, tokens = tokens + excluded.tokens, answers = answers + 1,
        unpriced = unpriced + excluded.unpriced, model = case when excluded.at >= at then excluded.model else model end,
        at = max(at, excluded.at); end""",
    "sum_grown": f"""after update on answers when {_IS_SUMMED} begin
      update sum_agents set cost = cost + {_cost("new")} - {_cost("old")}, tokens = tokens + {_tokens("new")} - {_tokens("old")},
        unpriced = unpriced + {_unpriced("new")} - {_unpriced("old")}
      where session = new.session and source = new.source and uid = new.uid and agent = new.agent; end""",
    "sum_day_new": f"""after insert on answers when {_IS_OF_DAY} begin
      insert into sum_days values(new.day, new.source, new.ours, {_cost("new")}, {_unpriced("new")})
      on conflict do update set cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced; end""",
    "sum_day_grown": f"""after update on answers when {_IS_OF_DAY} begin
      update sum_days set cost = cost + {_cost("new")} - {_cost("old")}, unpriced = unpriced + {_unpriced("new")} - {_unpriced("old")}
      where day = new.day and source = new.source and ours = new.ours; end""",
}
TOTALS = TABLES + "".join(f"create trigger {name} {body};\n" for name, body in TRIGGERS.items())
"""Added with version 4."""
WHOLE_IDS = "insert or replace into meta values('bare_ids', 'yes');"
"""Added with version 5: answers of before are kept by the message's id alone, and are found by it when they are told again."""
UPGRADES = {
    # No released version wrote 0 or 1: what such a file held is read anew.
    **dict.fromkeys((0, 1), f"drop table if exists files; drop table if exists answers; {SCHEMA} {ADDED} {TOTALS}"),
    2: f"alter table answers add column ours integer not null default 0; {ADDED} {TOTALS} {WHOLE_IDS}",
    3: TOTALS + WHOLE_IDS,
    4: WHOLE_IDS,
}
"""What makes a file of an earlier version one of this."""
