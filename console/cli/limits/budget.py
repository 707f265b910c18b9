"""``watchfloor budget list | set | clear | history``: what may be spent, what is, and who changed it."""

from __future__ import annotations

from typing import Annotated, Any

from console.api import budgets as b
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.shaping import shaped
from console.cli.short_ids import whole_session
from console.cli.syntax import UNSHAPED, Argument, Option, Shape, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import Table, new_table
from console.domain.amounts import cap_usd, usd
from console.domain.budget import LIMIT_LABELS, LIMIT_WORDS, parse_limits
from console.domain.errors import UsageProblem
from console.domain.process.account import named_here
from console.domain.words import counted

app = Verbs("Limits of agents, trees, sessions, projects and the day: what is used, what ends first, who changed what.", shows="set")

Agent = Annotated[str, Option("--agent", metavar="ID", help="One agent.")]
Tree = Annotated[str, Option("--tree", metavar="ID", help="An agent and all it spawns.")]
Session = Annotated[str, Option("--session", metavar="ID", help="A session; it may begin later.")]
Project = Annotated[str, Option("--project", metavar="NAME", help="A project: a folder, or run --project; it may begin later.")]
Day = Annotated[bool, Option("--day", help="Everything here, in each calendar day.")]
Type = Annotated[str, Option("--type", metavar="TYPE", help="Agents of this type that are started from now on.")]
Pairs = Annotated[list[str] | None, Argument(metavar="NAME=VALUE ...", help=f"Limits: {LIMIT_LABELS}; for example cost=2.50.")]
Limit = Annotated[list[str] | None, Option("--limit", metavar="NAME=VALUE", help="The same, as run takes it; repeatable.")]
Names = Annotated[list[str], Argument(metavar="NAME ...", help="Limits to take away.")]

Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask, also where agents would be halted at once.")]
NAMED = 20

_NO_VALUE = frozenset({"none", "off", "unlimited"})


@app.command("list")
@example("--agent a-1b2c3d4e")
def list_budgets(
    agent: Agent = "",
    tree: Tree = "",
    session: Session = "",
    project: Project = "",
    day: Day = False,
    shape: Shape = UNSHAPED,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Every tree, the first to end first; with a scope its limits one by one, who spends it, and the last changes."""
    scope, key = _scope(agent, tree, _whole(session, state_dir), project, day, "", may_be_none=True)
    with connect(state_dir) as client:
        if not scope:
            return _page(client.budgets(), shape, as_json)
        return _node(client.budget_node(scope, key), as_json)


@app.command("set")
@example("cost=50 --day --reason 'the month is half over'")
def set_limits(
    reason: Reason,
    limits: Pairs = None,
    limit: Limit = None,
    agent: Agent = "",
    tree: Tree = "",
    session: Session = "",
    project: Project = "",
    day: Day = False,
    agent_type: Type = "",
    yes: Yes = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Set, raise or lower limits. A lower one halts at once what has used more: you are asked first, with a list of the agents."""
    texts = [*(limits or ()), *(limit or ())]
    if not texts:
        raise UsageProblem("No limit is named.", "For example: watchfloor budget set cost=2.50, with a scope and a reason.")
    for name, _, value in (text.partition("=") for text in texts):
        if value.lower() in _NO_VALUE:
            raise UsageProblem(f"{name[:60]} needs a number.", "To take a limit away: watchfloor budget remove NAME, with the same scope.")
    caps = parse_limits(texts)
    scope, key = _scope(agent, tree, _whole(session, state_dir), project, day, agent_type)
    body = build(b.BudgetBody, scope=scope, key=key, limits=caps, reason=reason)
    if not yes:
        _ask_before_a_halt(body, state_dir)
    return _change(body, state_dir, as_json)


@app.command("remove")
@example("cost --day --reason 'the month is new'")
def clear_limits(
    names: Names,
    reason: Reason,
    agent: Agent = "",
    tree: Tree = "",
    session: Session = "",
    project: Project = "",
    day: Day = False,
    agent_type: Type = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Take limits away: what they bounded has none any more."""
    for name in names:
        if name not in LIMIT_WORDS:
            raise UsageProblem(f"There is no limit {name[:60]!r}.", f"Names: {LIMIT_LABELS}.")
    scope, key = _scope(agent, tree, _whole(session, state_dir), project, day, agent_type)
    return _change(build(b.BudgetBody, scope=scope, key=key, clear=names, reason=reason), state_dir, as_json)


@app.command("history")
@example("--day")
def history(
    agent: Agent = "",
    tree: Tree = "",
    session: Session = "",
    project: Project = "",
    day: Day = False,
    agent_type: Type = "",
    limit: Annotated[int, Option("--rows", "-n", min=1, max=1000, help="Most changes shown.")] = 50,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Who changed which limit, when and why, newest first."""
    scope, key = _scope(agent, tree, _whole(session, state_dir), project, day, agent_type, may_be_none=True)
    with connect(state_dir) as client:
        seen = client.budget_history(scope or "", key, limit)
    if as_json:
        out.emit_view(seen)
        return 0
    for change in seen.changes:
        out.say(_changed(change))
    left = seen.total - len(seen.changes)
    out.say(f"and {left:,} more" if left else "" if seen.changes else "No limit was ever changed.")
    return 0


def _scope(agent: str, tree: str, session: str, project: str, day: bool, agent_type: str, *, may_be_none: bool = False) -> tuple[Any, str]:
    named = {"agent": agent, "tree": tree, "session": session, "project": project, "type": agent_type}
    chosen = [(scope, key) for scope, key in named.items() if key] + ([("day", "")] if day else [])
    if len(chosen) > 1 or (not chosen and not may_be_none):
        raise UsageProblem("Name one scope.", "--agent ID, --tree ID, --session ID, --project NAME, --day or --type TYPE.")
    return chosen[0] if chosen else (None, "")


def _whole(session: str, state_dir: str | None) -> str:
    """The id of the session that the word begins; the word itself where none begins so, because a session may begin later."""
    if not session:
        return ""
    whole = whole_session(session, state_dir)
    if whole is None:
        out.note(f"No agent runs in session {plain(session, 80)} now: this is for one that begins later.")
    return whole or session


def _ask_before_a_halt(body: b.BudgetBody, state_dir: str | None) -> None:
    """Raises UsageProblem where it would halt agents and no person is there to be asked, KeyboardInterrupt for any answer but yes."""
    with connect(state_dir, starts=True) as client:
        halted = client.change_budget(body.replaced(dry_run=True)).halted
        if not halted:
            return
        names = {agent.id: agent.name for agent in client.fleet().agents}
    what = f"This would halt {counted(len(halted), 'agent')} at once"
    if not out.is_asked():
        more = f" and {len(halted) - NAMED} more" if len(halted) > NAMED else ""
        named = ", ".join(plain(one, 70) for one in halted[:NAMED])
        raise UsageProblem(f"{what}: {named}{more}. Nothing was changed.", "Add --yes to halt them, or set a higher limit.")
    out.note(f"{what}, because they have used more:")
    for one in halted:
        out.note(f"  {plain(one, 70)}  {plain(names.get(one, ''), 60)}".rstrip())
    out.confirm("Set it, and halt them?")


def _change(body: b.BudgetBody, state_dir: str | None, as_json: bool) -> int:
    with connect(state_dir, starts=True) as client:
        done = client.change_budget(body)
    if as_json:
        out.emit_view(done)
    else:
        out.say(plain(done.words, 600))
    return 0


def _page(seen: b.BudgetsView, shape: Shape, as_json: bool) -> int:
    if as_json:
        out.emit_view(seen)
        return 0
    if not shape:
        _totals(seen.totals)
    table = new_table("WHAT", "NAME", "ENDS IN", "FIRST LIMIT", "USED", "SPENT", "OF", "BURN/H", "NOTE")
    for row in seen.days[:1]:
        _add(table, row, "")
    for row in [*seen.projects, *seen.sessions]:
        if row.first_limit or row.share:
            _add(table, row, "")
    for tree in seen.trees[:100]:
        _add(table, tree.tree, "")
        for row in tree.first:
            _add(table, row, "" if shape else "  ")
    out.show(shaped(table, shape))
    more = seen.more_trees + max(0, len(seen.trees) - 100)
    if more:
        (out.note if shape else out.say)(f"and {more:,} more trees (--json shows more)")
    return 0


def _totals(t: b.BudgetTotals) -> None:
    cap = f" of {cap_usd(t.day_cap_usd)}" if t.day_cap_usd is not None else ""
    rate = f", {usd(t.burn_usd_per_h)}/h" if t.burn_usd_per_h is not None else ""
    ends = f", forecast for 24:00 {usd(t.forecast_usd)}" if t.forecast_usd is not None else ""
    out.say(f"over {t.over}, above 75 % {t.above_75}, within {t.within}; today {usd(t.spend_today_usd)}{cap}{rate}{ends}")
    if t.day_note:
        out.say(plain(t.day_note, 300))


def _add(table: Table, row: b.BudgetRow, indent: str) -> None:
    over = f"passed by {row.overshoot:g} ({row.overshoot_limit})" if row.overshoot else ""
    ends, _, why = _ends(row.ends_in_s, row.why).partition(": ")
    notes = [
        row.note,
        why if not row.done else "",
        "unpriced" if row.unpriced and row.spent_usd else "",
        f"metered {row.metered}" if row.metered in ("after the fact", "by telemetry") else "",
        over,
    ]
    table.add_row(
        f"{indent}{row.scope} {plain(row.key, 64)}",
        out.words(row.name, limit=40) if row.name != row.key else "",
        "done" if row.done else ends,
        row.first_limit.removesuffix("_usd").removesuffix("_s"),
        f"{row.share:.0%}" if row.share else "",
        "unknown" if row.unpriced and not row.spent_usd else usd(row.spent_usd),
        "" if row.cap_usd is None else cap_usd(row.cap_usd),
        usd(row.burn_usd_per_h),
        out.words("; ".join(n for n in notes if n), limit=300),
    )


def _ends(seconds: float | None, why: str) -> str:
    if seconds is None:
        return plain(why, 80) if why != "no limit is set" else "no limit"
    if seconds <= 0:
        return "used up"
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min {int(seconds % 60):02} s"


def _node(seen: b.BudgetNodeView, as_json: bool) -> int:
    if as_json:
        out.emit_view(seen)
        return 0
    row = seen.row
    out.say(f"{row.scope} {plain(row.key, 120)}: {plain(row.note or row.state, 200)}")
    table = new_table("LIMIT", "USED", "SET ASIDE", "OF", "SHARE", "ENDS IN")
    for g in seen.gauges:
        share, cap = "" if g.share is None else f"{g.share:.0%}", "none" if g.cap is None else f"{g.cap:g}"
        ends = "" if g.cap is None else _ends(g.ends_in_s, g.why)
        table.add_row(
            g.limit, f"{g.used:g}", f"{g.held:g}" if g.held else "", cap + (f" ({g.inherited})" if g.inherited else ""), share, ends
        )
    out.show(table)
    for one in seen.spenders[:10]:
        out.say(f"  {usd(one.spent_usd)}  {plain(one.agent_id, 64)} {plain(one.name, 40)}")
    for change in seen.changes[:5]:
        out.say(_changed(change))
    return 0


def _changed(change: b.BudgetChange) -> str:
    old, new = ("none" if x is None else f"{x:g}" for x in (change.old, change.new))
    what = f"{change.scope} {plain(change.key, 80)}".strip()
    return f"{moment(change.at)}  {what}  {change.limit} {old} -> {new}  {plain(named_here(change.by), 120)}: {plain(change.reason, 300)}"
