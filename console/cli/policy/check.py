"""``watchfloor policy check | explain | lint | test | import | export``: rules on tool calls, judged here, without a supervisor."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from console.api.policy import policy_data
from console.cli.options import Json
from console.cli.policy import exchange, rules, sequences
from console.cli.policy.exchange import bounded, read_bytes
from console.cli.policy.tools import app as tools_app
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.calls.permission import Verdict
from console.domain.calls.profile import CODING
from console.domain.errors import ConsoleError, ExitCode, UsageProblem
from console.domain.network import Sensitivity
from console.policy.files.disk import Disk
from console.policy.judge import Call, Context, judge
from console.policy.matrix import read_matrix
from console.policy.review.expected_verdicts import differences, read_table
from console.policy.review.lint import Severity, lint
from console.policy.rules.declared import Declared
from console.policy.rules.loading import MAX_BYTES, Settings, read_json, read_settings
from console.policy.rules.profiles import Profile, Standing, observed
from console.policy.rules.verdicts import Judgement, denied
from console.policy.scopes import ALL
from console.policy.shell.check import Policy
from console.settings.sources_file import parse_sources

app = Verbs("Rules on what agents may do: check a call, see why, find what is wrong with the rules.", shows="check")
exchange.add_exchange(app)
sequences.add_sequences(app)
rules.add_live(app)
app.verbs["tools"] = tools_app

SettingsFile = Annotated[str | None, Option("--settings", metavar="FILE", help="Own rules: settings.json.")]
ProfileName = Annotated[str, Option("--profile", metavar="NAME", help="strict, coding or observe; without --settings: coding.")]
Contained = Annotated[bool, Option("--contained", help="For an agent in a sandbox that hides secrets, network not FULL.")]
Workspace = Annotated[
    str, Option("--workspace", metavar="DIR", help="Folder that ${WORKSPACE} stands for in rules; relative paths start here.")
]
ContextId = Annotated[str, Option("--session", metavar="ID", help="Session that ${CONTEXT_ID} stands for in rules.")]
Sources = Annotated[str, Option("--sources", metavar="FILE", help="sources.json of the agent's type.")]
MatrixFile = Annotated[str, Option("--matrix", metavar="FILE", help="A permission matrix.")]
Level = Annotated[str, Option("--sensitivity", metavar="LEVEL", help="Of the session: PUBLIC, INTERNAL, CONFIDENTIAL, SECRET.")]
BATCH_MAX = 64 * MAX_BYTES
_CODES = {Verdict.ALLOW: ExitCode.DONE, Verdict.DENY: ExitCode.DENIED, Verdict.ASK: ExitCode.PENDING}


@app.command("check")
@example("shell 'git push --force'")
def check(
    tool: Annotated[str | None, Argument(metavar="TOOL", help="shell, read_file, write_file, delete_file, http_request, ...")] = None,
    argument: Annotated[str | None, Argument(metavar="ARGUMENT", help="Command, path or URL.")] = None,
    batch: Annotated[str | None, Option("--batch", metavar="FILE", help="Lines of {tool, argument}; - reads them from stdin.")] = None,
    settings: SettingsFile = None,
    profile: ProfileName = "",
    contained: Contained = False,
    workspace: Workspace = "",
    context: ContextId = "",
    sources: Sources = "",
    matrix: MatrixFile = "",
    sensitivity: Level = "PUBLIC",
    as_json: Json = False,
) -> int:
    """The verdict on a call, with rule and reason. Ends with 0 (allow), 4 (deny) or 5 (ask); with --batch 0 once all were judged."""
    if (batch is None) == (tool is None or argument is None):
        raise UsageProblem("Name TOOL and ARGUMENT, or --batch FILE.", "watchfloor policy check shell 'grep -r x .'")
    made = _context(_Rules(settings, profile, contained), workspace, context, sources, matrix, sensitivity)
    if batch is not None:
        for call in _batch(batch):
            found = _judged(call, made) if isinstance(call, Call) else call
            out.write(json.dumps(found.as_json()) + "\n")
        return int(ExitCode.DONE)
    found = _judged(Call(tool or "", argument or ""), made)
    if as_json:
        out.emit(found.as_json() | _by(made))
    else:
        _say(found, made)
    return int(_CODES[found.verdict])


@app.command("explain")
@example("shell 'git push --force' --profile strict")
def explain(
    tool: Annotated[str, Argument(metavar="TOOL")],
    argument: Annotated[str, Argument(metavar="CALL")],
    settings: SettingsFile = None,
    profile: ProfileName = "",
    contained: Contained = False,
    workspace: Workspace = "",
    context: ContextId = "",
    sources: Sources = "",
    matrix: MatrixFile = "",
    sensitivity: Level = "PUBLIC",
    as_json: Json = False,
) -> int:
    """Each part of a call with its verdict, rule and step, and what would be executed. Ends with 0, whatever the verdict."""
    made = _context(_Rules(settings, profile, contained), workspace, context, sources, matrix, sensitivity)
    found = _judged(Call(tool, argument), made)
    if as_json:
        out.emit(found.as_json() | _by(made))
        return 0
    _say(found, made)
    for part in found.parts:
        out.say(f"  {part.verdict.value:5}  {part.step:11}  {plain(part.rule, 100)}  <-  {plain(part.text, 200)}")
        out.say(f"         {plain(part.reason, 300)}")
    for step in found.steps:
        words = " ".join(plain(word, 200) if word and " " not in word else repr(plain(word, 200)) for word in step.argv)
        out.say(f"  executes {step.joined or ' '} {plain(step.program or '(not on this machine)', 200)}: {words}")
    return 0


@app.command("lint")
@example("settings.json")
def lint_file(
    file: Annotated[str, Argument(metavar="FILE", help="settings.json")],
    workspace: Workspace = "",
    context: ContextId = "",
    as_json: Json = False,
) -> int:
    """What is wrong with a policy. Ends with 1 when a rule is refused (it swallows denials and is not marked unconfined), else with 0."""
    found = lint(read_settings(read_bytes(file), context, workspace), policy_data.catalogue())
    refused = sum(one.severity is Severity.REFUSED for one in found)
    if as_json:
        out.emit({"refused": refused, "findings": [one.as_json() for one in found]})
        return int(ExitCode.FAILURE if refused else ExitCode.DONE)
    for one in found:
        out.say(f"{one.severity.value:8} {one.kind:6} {plain(one.rule, 120)}: {plain(one.what, 300)}")
        if one.swallows:
            out.say(f"{'':15} swallows {len(one.swallows)} deny rules: {plain(', '.join(one.swallows), 600)}")
    out.say(f"{len(found)} findings, {refused} refused." if found else "Nothing found.")
    return int(ExitCode.FAILURE if refused else ExitCode.DONE)


@app.command("test")
@example("cases.jsonl --settings settings.json")
def test_table(
    file: Annotated[str, Argument(metavar="FILE", help="Cases of {tool, argument, verdict, rule?}.")],
    settings: SettingsFile = None,
    profile: ProfileName = "",
    contained: Contained = False,
    workspace: Workspace = "",
    context: ContextId = "",
    sources: Sources = "",
    matrix: MatrixFile = "",
    sensitivity: Level = "PUBLIC",
    as_json: Json = False,
) -> int:
    """Judges a table of calls with expected verdicts. Ends with 1 when one is answered otherwise."""
    made = _context(_Rules(settings, profile, contained), workspace, context, sources, matrix, sensitivity)
    cases = read_table(read_bytes(file), file)
    wrong = differences(cases, lambda tool, argument: _judged(Call(tool, argument), made))
    if as_json:
        out.emit({"cases": len(cases), "differences": [one.as_json() for one in wrong]})
    else:
        for one in wrong:
            call = f"{plain(one.case.tool, 60)} {plain(one.case.argument, 200)}"
            out.say(f"{call}\n  expected {one.case.verdict.value} {plain(one.case.rule)}, found {one.found.verdict.value}:")
            out.say(f"  {plain(one.found.reason, 300)}")
        out.say(f"{len(cases)} cases, {len(wrong)} answered otherwise.")
    return int(ExitCode.FAILURE if wrong else ExitCode.DONE)


@dataclass(frozen=True, slots=True)
class _Rules:
    """Which rules were named."""

    file: str | None
    profile: str
    contained: bool

    def read(self, context: str, place: str) -> tuple[Settings, Profile | None]:
        """The rules, and the profile that they are of. Raises ConsoleError."""
        if self.file is not None:
            return read_settings(read_bytes(self.file), context, place), None
        name = self.profile or CODING
        return read_settings(policy_data.profile_rules(name), context, place), policy_data.profile(name)


def _context(named: _Rules, workspace: str, context: str, sources: str, matrix: str, sensitivity: str) -> Context:
    """Everything a call is judged by. A policy that cannot be read denies; other files that cannot are an error."""
    if sensitivity not in Sensitivity.__members__:
        raise UsageProblem(f"Sensitivity {sensitivity[:40]!r} is not known.", f"Levels are {', '.join(Sensitivity)}.")
    tools = policy_data.tools()
    if named.file is not None and (named.profile or named.contained):
        raise UsageProblem("--settings names own rules, and --profile or --contained a profile.", "Name one of them.")
    if named.profile:
        policy_data.profile(named.profile)
    place = str(Path(workspace).resolve()) if workspace else "" if named.file is not None else str(Path.cwd())
    rules, profile = None, None
    problem = ""
    try:
        rules, profile = named.read(context, place)
    except ConsoleError as error:
        problem = error.what
    policy = rows = None
    if rules is not None:
        declared = _declared(sources) if sources else None
        policy = Policy(rules, policy_data.catalogue(), policy_data.dangers(), declared, profile)
        rows = read_matrix(read_json(read_bytes(matrix), matrix), rules.workspace) if matrix else None
    standing = Standing.CONTAINED if named.contained else Standing.OPEN
    return Context(policy, Disk(), tools, ALL, Sensitivity(sensitivity), rows, problem=problem, standing=standing)


def _judged(call: Call, made: Context) -> Judgement:
    """The verdict, as an agent of that profile gets it."""
    found = judge(call, made)
    return observed(found) if made.policy is not None and made.policy.profile is not None and made.policy.profile.observes else found


def _declared(name: str) -> Declared:
    text = read_bytes(name)
    told = read_json(text, name)
    return policy_data.declared(parse_sources(text.decode(), name, str(told.get("agent_type", "")) if isinstance(told, dict) else ""))


def _batch(name: str) -> Iterator[Call | Judgement]:
    """The calls of a file; a line that is none is denied in its place."""
    data = bounded(sys.stdin.buffer, "standard input", BATCH_MAX) if name == "-" else read_bytes(name, BATCH_MAX)
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = read_json(line, f"line {number}")
            yield Call(str(row["tool"]), str(row["argument"]), str(row.get("action", "")), row.get("params") or {})
        except (ConsoleError, KeyError, TypeError, AttributeError) as error:
            yield denied("bounds", "batch", f"line {number} is no call: {error}")


def _by(made: Context) -> dict[str, str]:
    """The profile that judged; nothing for own rules."""
    return {"profile": made.policy.profile.name} if made.policy is not None and made.policy.profile is not None else {}


def _say(found: Judgement, made: Context) -> None:
    by = "".join(f", profile {name}" for name in _by(made).values())
    out.say(f"{found.verdict.value}: {plain(found.rule, 200)} ({plain(found.reason, 400)}){by}")
