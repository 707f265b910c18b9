"""``watchfloor approval list | show | approve | deny | rule | grants | end``: what waits for a human, over all agents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from console.cli.link import build, connect, look
from console.cli.options import Json, Reason, StateDir
from console.cli.shaping import shaped
from console.cli.syntax import UNSHAPED, Argument, Option, Shape, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain, plain_block
from console.cli.terminal.tables import new_table
from console.domain.amounts import usd
from console.domain.errors import Conflict, Denied, NotFound
from console.domain.process.account import named_here

if TYPE_CHECKING:
    from console.api.client.api_client import ApiClient
    from console.api.policy.approvals import ApprovalDetailView, ApprovalRow, ApprovalsView, DecideBody, DecideView

app = Verbs("What waits for approval: see it whole, approve it once or for its session, or deny it.")
Which = Annotated[list[str], Argument(metavar="APPROVAL...", help="Ids, as approval list shows them.")]
Equal = Annotated[bool, Option("--equal", help="Decide the equal requests of its tree that wait now, too; each by itself.")]
Why = Annotated[str, Option("--reason", metavar="WORDS", help="The reason; it is recorded, and a denied agent gets it.")]
ARGUMENT_SHOWN = 90


@app.command("list")
def list_approvals(
    decided: Annotated[bool, Option("--decided", help="What was decided, instead of what waits.")] = False,
    shape: Shape = UNSHAPED,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What waits, the worst danger first, then the least time left. Equal requests of one tree are one row with their number."""
    view = look(state_dir).approvals()
    if as_json:
        out.emit_view(view)
        return 0
    rows = view.decided if decided else view.waiting
    if not rows:
        (out.note if shape.no_headers else out.say)("Nothing was decided yet." if decided else "No pending approvals.")
        _say_questions(view)
        return 0
    table = new_table("DANGER", "ID", "EQUAL", "STATE" if decided else "LEFT", "AGENT", "TOOL", "REQUEST", "WHY IT ASKED")
    for row, count in _once([] if decided else rows) or [(row, 1) for row in rows]:
        table.add_row(
            out.words(row.danger or "-", limit=12),
            out.words(row.id, limit=40),
            str(count),
            out.words(_end(row), limit=80) if decided else _left(row.left_s),
            out.words(row.agent_name or row.agent_id, limit=40),
            out.words(row.tool, limit=30),
            out.words(row.argument, limit=ARGUMENT_SHOWN),
            out.words(row.reason if row.danger else row.rule, limit=60),
        )
    out.show(shaped(table, shape))
    _say_questions(view)
    return 0


@app.command("show")
@example("p-1b2c3d4e")
def show(approval: Annotated[str, Argument(metavar="APPROVAL", help="Its id.")], state_dir: StateDir = None, as_json: Json = False) -> int:
    """Show one request: exactly what would be done, its reason, its agent, and what it could touch."""
    with connect(state_dir) as client:
        detail = client.approval(approval)
    if as_json:
        out.emit_view(detail)
    else:
        _print(detail)
    return 0


@app.command("approve")
@example("p-1b2c3d4e --reason 'reviewed'")
def approve(
    which: Which,
    session: Annotated[bool, Option("--session", help="The same request, by every agent in its session, until you revoke it.")] = False,
    digest: Annotated[str, Option("--digest", metavar="SHA256", help="Refuse unless the request is this one.")] = "",
    reason: Why = "",
    equal: Equal = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Let it happen: once, or for the session. What is approved is what is shown now, to the byte."""
    scope = "session" if session else "once"
    with connect(state_dir) as client:
        answer = client.decide(_body(client, which, digest, equal=equal, verdict="approve", scope=scope, reason=reason))
    return _told(answer, "approved for the session" if session else "approved once", as_json)


@app.command("deny")
@example("p-1b2c3d4e --reason 'not on a Friday'")
def deny(which: Which, reason: Why = "", equal: Equal = False, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Refuse it; the agent is told the reason, if there is one."""
    with connect(state_dir) as client:
        answer = client.decide(_body(client, which, "", equal=equal, verdict="deny", reason=reason))
    return _told(answer, "denied", as_json)


@app.command("grants")
def grants(state_dir: StateDir = None, as_json: Json = False) -> int:
    """What sessions were given, until it is taken back or a kill ends it."""
    with connect(state_dir) as client:
        view = client.grants()
    if as_json:
        out.emit_view(view)
        return 0
    if not view.grants:
        out.say("No session was given anything.")
        return 0
    table = new_table("SESSION", "TOOL", "REQUEST", "BY", "WHEN")
    for row in view.grants:
        table.add_row(
            out.words(row.session, limit=63),
            out.words(row.tool, limit=30),
            out.words(row.argument, limit=ARGUMENT_SHOWN),
            out.words(named_here(row.by), limit=120),
            moment(row.at),
        )
    out.show(table)
    return 0


@app.command("revoke")
@example("c-1b2c3d4e --reason 'the task is over'")
def revoke(
    session: Annotated[str, Argument(metavar="SESSION", help="Its id.")],
    reason: Reason,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Take back all that a session was given."""
    from console.api.policy.approvals import EndGrantBody

    with connect(state_dir) as client:
        view = client.end_grants(build(EndGrantBody, session=session, reason=reason))
    if as_json:
        out.emit_view(view)
    else:
        out.say(f"taken back from session {plain(session)}")
    return 0


@app.command("rule")
@example("q-1b2c3d4e --look")
def rule(
    approval: Annotated[str, Argument(metavar="APPROVAL", help="A request that was approved.")],
    look_only: Annotated[bool, Option("--look", help="Show what the rule would have answered; make none.")] = False,
    reason: Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Allow exactly this call in its workspace for 30 days. Never what is dangerous, reads secrets or has shell operators."""
    from console.api.policy.rules import ExactBody

    with connect(state_dir) as client:
        offer = client.offered_rule(approval)
        made = offer.rule
        if made is None:
            raise Denied(f"No rule can answer this: {plain(offer.why_not, 300)}.", "Each such call is asked.")
        if not look_only:
            digest = client.approval(approval).row.digest
            made = client.add_rule(approval, build(ExactBody, digest=digest, reason=reason))
            offer = offer.replaced(rule=made)
    if as_json:
        out.emit_view(offer)
        return 0
    what = f"{plain(made.tool, 60)} {plain(made.argument, 200)}"
    out.say(f"{'it would allow' if look_only else f'rule {made.id} allows'} exactly: {what}")
    out.say(f"in {plain(made.folder, 200)}, until {moment(made.until)}")
    out.say(f"it would have answered {offer.answered} of {offer.recorded} recorded calls of the last {offer.days} days")
    return 0


def _say_questions(view: ApprovalsView) -> None:
    """How much people are asked, on stderr: it is no row."""
    if view.rule_share is not None:
        rule = f" A rule could have answered {view.rule_share:.0%}: an equal request was approved before." if view.rule_share else ""
        out.note(f"People were asked {view.questions_per_hour:.1f} times an hour in the last day.{rule}")


def _once(rows: list[ApprovalRow]) -> list[tuple[ApprovalRow, int]]:
    """The first of each that are equal, and how many of them wait."""
    count = Counter(row.equal or row.id for row in rows)
    first: dict[str, ApprovalRow] = {}
    for row in rows:
        first.setdefault(row.equal or row.id, row)
    return [(row, count[key]) for key, row in first.items()]


def _body(client: ApiClient, which: list[str], digest: str, *, equal: bool = False, **fields: str) -> DecideBody:
    """Bound to what the supervisor says these requests are now, or to the digest the caller names."""
    from console.api.policy.approvals import DecideBody, Decided

    waiting = {row.id: row for row in client.approvals().waiting}
    for name in which:
        if name not in waiting:
            raise NotFound(f"No request {plain(name, 60)!r} waits.", "watchfloor approval list shows what does; --decided what is over.")
        if digest and waiting[name].digest != digest:
            raise Conflict(f"Request {plain(name, 60)} is not the one with that digest.", f"Look again: watchfloor approval show {name}")
    if equal:
        kinds = {waiting[name].equal for name in which} - {""}
        which = [*which, *(name for name, row in waiting.items() if row.equal in kinds and name not in which)]
    requests = [Decided(id=name, digest=waiting[name].digest) for name in which]
    return build(DecideBody, requests=requests, **fields)


def _told(answer: DecideView, done: str, as_json: bool) -> int:
    """0: all of them; 1: at least one was not decided."""
    if as_json:
        out.emit_view(answer)
    for row in answer.results:
        if not row.done:
            out.note(f"NOT decided: {plain(row.id, 60)}: {plain(row.words, 500)}")
        elif not as_json:
            out.say(f"{done}: {plain(row.id, 60)}")
    return 0 if all(row.done for row in answer.results) else 1


def _print(detail: ApprovalDetailView) -> None:
    row = detail.row
    state = f"denied automatically in {_left(row.left_s)}" if row.state == "waiting" else _end(row)
    if row.danger:
        out.say(f"{plain(row.danger, 20).upper()}: {plain(row.reason.removeprefix(f'{row.danger}: '), 300)} ({plain(row.rule, 200)})")
    out.say(f"{plain(row.id, 60)}: {plain(row.tool, 100)}, asked {moment(row.asked_at, 'seconds')}; {plain(state, 300)}")
    who = f"{plain(row.agent_name or row.agent_id, 100)} ({plain(row.agent_id, 70)})"
    out.say(f"by {who}, session {plain(row.session, 70)}, {plain(row.sensitivity)}")
    if row.says:
        out.say(f'agent says: "{plain(row.says, 500)}"')
    out.say(f"bound to sha256 {plain(row.digest, 64)}\n\nexact request:")
    out.write("".join(f"  {number:>4}  {line}\n" for number, line in enumerate(plain_block(row.argument).split("\n"), 1)))
    if detail.detail:
        out.say(f"whole input: {plain(detail.detail, 4000)}")
    out.say(f"\nwhy it asked: {plain(row.rule, 200)}: {plain(row.reason, 500)}")
    for part in detail.parts:
        words = ", ".join(x for x in (plain(part.rule, 100), plain(part.reason, 200)) if x)
        out.say(f"  {part.verdict:<5} {plain(part.text, 120)}  ({words})")
    out.say("\nwhat it could touch:")
    for line in detail.blast:
        out.say(f"  {line.kind:<8} {plain(line.words, 400)}" + {"warn": "  !", "danger": "  !!"}.get(line.level, ""))
    out.say("\ntree and cost so far:")
    for agent in detail.tree:
        out.say(
            f"  {'  ' * min(agent.level, 20)}{plain(agent.name or agent.id, 60)}  "
            + usd(agent.cost_usd)
            + ("  <- asks" if agent.asks else "")
        )
    if detail.similar:
        out.say("\nsimilar, decided before:")
        for past in detail.similar[:5]:
            out.say(f"  {moment(past.asked_at)}  {plain(past.argument, 60)}  {plain(_end(past), 120)}")


def _left(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _end(row: ApprovalRow) -> str:
    who = f" by {named_here(row.decided_by)}" if row.decided_by else ""
    took = f" in {row.took_s:.0f} s" if row.took_s is not None else ""
    return f"{row.state}{who}{took}" + (f": {row.words}" if row.words else "")
