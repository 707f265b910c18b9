"""``watchfloor agent dry-run`` and ``agent plan``: calls are judged and planned, not executed; then the plan is approved as a whole."""

from __future__ import annotations

from typing import Annotated

from console.api.policy.dry_run import DryRunBody, PlanBody, PlanCallView, PlansView, PlanView
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.syntax import Argument, Option, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain, plain_block
from console.domain.errors import Conflict, NotFound
from console.domain.process.account import named_here
from console.domain.words import counted

Agent = Annotated[str, Argument(metavar="AGENT", help="Its id, as fleet shows it.")]
WAIT_S = 60.0


@example("a-1b2c3d4e --reason 'show me first'")
def dry_run(
    agent: Agent,
    reason: Reason,
    leave: Annotated[bool, Option("--leave", help="Out of it again: what is allowed is live from then on.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Put an agent, and all below it, into dry-run: every call is judged as live and planned, none is executed."""
    with connect(state_dir, WAIT_S) as client:
        view = client.dry_run(build(DryRunBody, agent=agent, on=not leave, reason=reason))
    if as_json:
        out.emit_view(view)
        return 0
    out.say(f"{plain(view.agent)}: {'in dry-run' if view.on else 'live'}, {counted(len(view.agents), 'living agent')}")
    for words in view.notes:
        out.note(f"note: {plain(words, 500)}")
    return 0


@example("a-1b2c3d4e")
def plan(
    agent: Agent,
    approve: Annotated[str, Option("--approve", metavar="SHA256", help="Approve the plan that this is the digest of, as a whole.")] = "",
    discard: Annotated[str, Option("--discard", metavar="SHA256", help="Throw that plan away.")] = "",
    reason: Annotated[str, Option("--reason", metavar="WORDS", help="Why; recorded. Needed for a decision.")] = "",
    past: Annotated[bool, Option("--all", help="Plans that are over as well.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What an agent in dry-run would have done, call by call, and the decision on all of it. Approved calls may each be made once."""
    with connect(state_dir, WAIT_S) as client:
        view = client.plans(agent)
        if not (approve or discard):
            return _shown(view, past, as_json)
        digest = (approve or discard).lower()
        found = next((one for one in view.plans if one.sha256 == digest), None)
        if approve and discard:
            raise Conflict("A plan is approved or thrown away, not both.", "Leave one of them out.")
        if found is None:
            what = f"No plan of {plain(agent, 70)} has the digest {plain(digest, 64)}."
            raise Conflict(what, f"It may have changed since: watchfloor agent plan {plain(agent, 70)} shows it as it is now.")
        verdict = "approve" if approve else "discard"
        done = client.decide_plan(build(PlanBody, plan=found.id, sha256=digest, verdict=verdict, reason=reason))
    if as_json:
        out.emit_view(done)
    elif done.state == "approved":
        out.say(f"approved: plan {plain(done.plan)}; {counted(done.calls, 'call')} may be made, each once")
    else:
        out.say(f"plan {plain(done.plan)} is {plain(done.state)}: {plain(done.words, 500)}")
    return 0 if (done.state == "approved") is bool(approve) else 1


def _shown(view: PlansView, past: bool, as_json: bool) -> int:
    if as_json:
        out.emit_view(view)
        return 0
    if not view.head and not view.plans:
        raise NotFound(
            f"{plain(view.agent)} is not in dry-run and has no plan.", "watchfloor agent dry-run AGENT --reason WORDS puts it there."
        )
    out.say(f"{plain(view.agent)}: " + (f"in dry-run, {plain(view.words, 600)}" if view.head else "live"))
    plans = [one for one in view.plans if past or one.state in ("open", "approved")]
    for one in plans:
        _print(one)
    if not plans:
        out.say("no calls yet" if view.head else "no plan is open; --all shows those that are over")
    return 0


def _print(one: PlanView) -> None:
    state = one.state + (f", {int(one.left_s)} s left" if one.state == "approved" else "")
    out.say(f"\nplan {plain(one.id)} of {plain(one.head)}: {state}, {counted(len(one.calls), 'call')}, since {moment(one.opened_at)}")
    for call in one.calls:
        _print_call(call)
    if one.left_out:
        out.say(f"  !! {one.left_out} calls more had no room: they are in no plan")
    if one.words:
        out.say(f"  {plain(named_here(one.decided_by), 100)}: {plain(one.words, 500)}".rstrip())
    out.say(f"  sha256 {plain(one.sha256, 64)}")
    if one.state == "open":
        how = f"not to be approved: {plain(one.why_not, 300)}" if one.why_not else "approve it: --approve SHA256 --reason WORDS"
        out.say(f"  {how}")


def _print_call(call: PlanCallView) -> None:
    again = f", asked {call.times} times" if call.times > 1 else ""
    out.say(f"  {call.seq}. {plain(call.tool, 100)} by {plain(call.agent_id, 70)}: {plain(call.state)}{again}")
    out.write("".join(f"       {line}\n" for line in plain_block(call.argument).split("\n")))
    if call.detail:
        out.say(f"     whole input: {plain(call.detail, 300_000)}")
    out.say(f"     rules: {plain(call.verdict)} by {plain(call.rule, 200)}: {plain(call.reason, 500)}")
    out.say(f"     live: {plain(call.outcome)} ({plain(call.outcome_words, 500)})")
    for line in call.preview:
        out.say(f"     {plain(line.kind):<8} {plain(line.words, 400)}" + {"warn": "  !", "danger": "  !!"}.get(line.level, ""))
