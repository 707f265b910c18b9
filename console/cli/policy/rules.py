"""``watchfloor policy rules | remove | profile | backtest | draft | save``: the rules that a running supervisor judges by."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from console.api.policy.rules import DAYS, ExactRemoveBody, PolicySaveBody, PolicyTryBody, PolicyTryView, ProfileBody
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import new_table
from console.domain.errors import NotFound, UsageProblem
from console.domain.process.account import named_here
from console.domain.words import counted
from console.wording.agent_kinds import EXAMPLE, STARTABLE

FILE_MAX = 200_000
Days = Annotated[int, Option("--days", metavar="N", help="Try it on the recorded calls of so many days.")]


def add_live(app: Verbs) -> None:
    """The verbs, to the family."""
    for verb in (rules, remove, profile, backtest, draft, save):
        app.command(verb.__name__)(verb)


def rules(state_dir: StateDir = None, as_json: Json = False) -> int:
    """The rules in force, how often each decided, and when last. Ends with 1 when the newest file is not in force."""
    with connect(state_dir) as client:
        view = client.policy()
    if as_json:
        out.emit_view(view)
        return 1 if view.problem else 0
    if view.problem:
        out.note(f"the newest file is NOT in force: {plain(view.problem, 500)}")
    table = new_table("LIST", "RULE", f"HITS {DAYS} D", "LAST", "")
    for row in view.rules:
        finding = row.finding if row.in_force else f"NOT in force: {row.finding}"
        last = moment(row.last_at) if row.last_at is not None else "never"
        table.add_row(row.list, out.words(row.rule, limit=120), str(row.hits), last, out.words(finding, limit=160))
    out.show(table)
    if view.exact:
        exact = new_table("ID", "EXACTLY", "IN", "UNTIL", f"HITS {DAYS} D", "BY")
        for one in view.exact:
            call = out.words(f"{one.tool} {one.argument}", limit=100)
            exact.add_row(
                one.id, call, out.words(one.folder, limit=80), moment(one.until), str(one.hits), out.words(named_here(one.by), limit=120)
            )
        out.show(exact)
    out.say(f"{'the product’s own rules' if view.is_default else 'policy.json'}; {view.recorded} recorded calls to try a change on")
    return 1 if view.problem else 0


@example("x-1b2c3d4e5f60 --reason 'no longer needed'")
def remove(
    rule: Annotated[str, Argument(metavar="RULE", help="Its id, as policy rules shows it: x-...")],
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why; it is on record.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Remove a rule that was made of an approval. Such a call is asked again."""
    with connect(state_dir) as client:
        view = client.remove_rule(build(ExactRemoveBody, id=rule, reason=reason))
    if as_json:
        out.emit_view(view)
    else:
        out.say(f"removed: rule {plain(rule, 40)}; such a call is asked again")
    return 0


@example(f"coding --type {EXAMPLE} --reason 'works in a sandbox'")
def profile(
    name: Annotated[str | None, Argument(metavar="[NAME]", help="strict, coding or observe; default takes a choice back.")] = None,
    agent_type: Annotated[str, Option("--type", metavar="TYPE", help=f"Which agents: {', '.join(STARTABLE)}, or your own type.")] = "",
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why; it is on record.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Which profile of rules judges which agents. With NAME, --type and --reason, chooses one; agents cannot."""
    if name is not None and not (agent_type and reason.strip()):
        raise UsageProblem(
            "A profile is chosen for a type of agents, with a reason.", f"policy profile {name} --type {EXAMPLE} --reason WHY"
        )
    with connect(state_dir, starts=True) as client:
        if name is None:
            view = client.profiles()
        else:
            chosen = "" if name == "default" else name
            view = client.choose_profile(build(ProfileBody, agent_type=agent_type, profile=chosen, reason=reason))
    if as_json:
        out.emit_view(view)
        return 0
    for one in view.profiles:
        out.say(f"{one.name}: {one.title}")
    table = new_table("TYPE", "PROFILE", "SINCE", "BY", "REASON")
    for choice in view.choices:
        table.add_row(
            choice.agent_type, choice.profile, moment(choice.at), out.words(named_here(choice.by)), out.words(choice.reason, limit=200)
        )
    if view.choices:
        out.show(table)
    rest = "policy.json" if view.own_rules else "coding for programs that write code, strict for the rest"
    out.say(f"{'Other agents' if view.choices else 'Every agent'}: {rest}.")
    return 0


@example("settings.json --days 7")
def backtest(
    file: Annotated[str | None, Argument(metavar="[FILE]", help="A whole policy, instead of what is in force.")] = None,
    allow: Annotated[list[str] | None, Option("--allow", metavar="RULE", help="A rule to add; repeatable.")] = None,
    ask: Annotated[list[str] | None, Option("--ask", metavar="RULE", help="A rule to add; repeatable.")] = None,
    deny: Annotated[list[str] | None, Option("--deny", metavar="RULE", help="A rule to add; repeatable.")] = None,
    days: Days = DAYS,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """What a change would have decided otherwise among the recorded calls; nothing is changed. Ends with 1 when one would be looser."""
    with connect(state_dir) as client:
        view = client.try_policy(_body(file, {"allow": allow, "ask": ask, "deny": deny}, days))
    return _told(view, as_json)


@example("p-1b2c3d4e")
def draft(
    approval: Annotated[str, Argument(metavar="APPROVAL", help="A request, as approval list shows it.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Narrow rules under which exactly this request would have been allowed. Ends with 1 when no rule can say that."""
    with connect(state_dir) as client:
        view = client.draft_rule(approval)
    if as_json:
        out.emit_view(view)
    for rule in [] if as_json else view.rules:
        out.say(plain(rule, 1100))
    if not view.rules and not as_json:
        out.note(plain(view.why_not, 500))
    return 0 if view.rules else 1


@example("settings.json --reason 'reviewed'")
def save(
    reason: Reason,
    file: Annotated[str | None, Argument(metavar="[FILE]", help="A whole policy, instead of what is in force.")] = None,
    allow: Annotated[list[str] | None, Option("--allow", metavar="RULE", help="A rule to add; repeatable.")] = None,
    ask: Annotated[list[str] | None, Option("--ask", metavar="RULE", help="A rule to add; repeatable.")] = None,
    deny: Annotated[list[str] | None, Option("--deny", metavar="RULE", help="A rule to add; repeatable.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Put a change in force, on record first. What it would have decided otherwise is shown."""
    with connect(state_dir, starts=True) as client:
        now = client.policy()
        tried = client.try_policy(_body(file, {"allow": allow, "ask": ask, "deny": deny}, DAYS))
        view = client.save_policy(build(PolicySaveBody, text=tried.text, base_sha256=now.sha256, reason=reason))
    if as_json:
        out.emit({"sha256": view.sha256, "problem": view.problem, "changed": tried.changed, "looser": tried.looser})
    else:
        _told(tried, as_json=False)
        out.say("in force" if not view.problem else f"NOT in force: {plain(view.problem, 500)}")
    return 1 if view.problem else 0


def _body(file: str | None, added: dict[str, list[str] | None], days: int) -> PolicyTryBody:
    named = {name: rules for name, rules in added.items() if rules}
    if (file is None) == (not named) or len(named) > 1:
        raise UsageProblem("Name a FILE, or rules for one list with --allow, --ask or --deny.", 'For example: --allow "shell(make test)"')
    if file is None:
        ((name, rules),) = named.items()
        return build(PolicyTryBody, add=rules, to=name, days=days)
    try:
        with Path(file).open("rb") as opened:
            raw = opened.read(FILE_MAX + 1)
    except OSError as error:
        raise NotFound(f"{plain(file, 200)} cannot be read: {error.strerror}.", "Name a policy file.") from error
    if len(raw) > FILE_MAX:
        raise UsageProblem(f"{plain(file, 200)} is larger than {FILE_MAX} bytes.", "Name a policy file.")
    try:
        return build(PolicyTryBody, text=raw.decode(), days=days)
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{plain(file, 200)} is not UTF-8.", "Save the file as UTF-8 and try again.") from error


def _told(view: PolicyTryView, as_json: bool) -> int:
    if as_json:
        out.emit(view.as_data(exclude={"schema_version", "text"}))
        return 1 if view.looser else 0
    out.say(f"{view.changed} of {view.recorded} recorded calls decided otherwise, {view.looser} of them looser")
    for call in view.calls:
        mark = "! " if call.looser else "  "
        out.say(f"{mark}{moment(call.at)}  {call.before} -> {call.after}  {plain(call.tool, 40)} {plain(call.argument, 120)}")
    if view.left_out:
        out.note(f"{counted(view.left_out, 'call was', 'calls were')} not tried: their agent is not known any more, or time was short")
    for finding in view.findings[:20]:
        out.note(plain(finding, 300))
    return 1 if view.looser else 0
