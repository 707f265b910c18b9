"""What the policy page reads. Nothing here decides anything: it tells what the desk decides by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from console.api.policy import page as v
from console.api.policy import policy_data
from console.domain.agent import Agent, AgentId
from console.domain.calls.lineage import Mark
from console.domain.calls.permission import PermissionRequest, Verdict
from console.domain.errors import ConsoleError, Denied, NotFound
from console.domain.network import Sensitivity
from console.policy.files.disk import Disk
from console.policy.judge import Call, Context, judge, tool_named
from console.policy.review.lint import Severity, lint
from console.policy.rules.verdicts import Judgement
from console.policy.scopes import ALL, Scope
from console.policy.sequences.find import Matcher, Pattern, advance
from console.policy.shell.check import Policy
from console.policy.tools.catalogue import Tool, tool_of
from console.services.fleet.core import Core
from console.services.policy.service import PolicyDesk, files_of
from console.services.records.record_writer import Scribe

ARGUMENT_SHOWN = 2000
LINT_MAX = 2000
NO_MATRIX = "none is in force: matrix.json in the state directory makes one (policy check --matrix FILE tries it)"
BESIDES = "Not part of it: what a session was approved for, budgets, and more of a tool's input than this one argument."
_JUDGED = {
    "shell": "every command, file, host and redirect in it",
    "argv": "the program and its arguments",
    "file": "file rules, link and target",
    "patch": "file rules, for each file that its headers name",
    "network": "network rules, then the allowlist",
    "code": "as python3 -c: what it does is not certain",
    "other": "no rule family: a human is asked",
    "none": "allowed; its target is checked by itself",
}


class PolicyLook:
    """The operator's reading side of the rules."""

    __slots__ = ("_core", "_scribe", "_desk")

    def __init__(self, core: Core, scribe: Scribe, desk: PolicyDesk) -> None:
        self._core, self._scribe, self._desk = core, scribe, desk

    def lint(self) -> v.LintView:
        """Findings on the rules in force. Blocks."""
        kept = self._desk.current()
        if kept.settings is None:
            return v.LintView(problem=kept.problem)
        found = lint(kept.settings, policy_data.catalogue())
        rows = [
            v.LintFinding(
                severity=one.severity.value,
                kind=one.kind,
                rule=one.rule,
                what=one.what,
                swallows=list(one.swallows[: v.PARTS]),
                swallows_count=len(one.swallows),
            )
            for one in found[:LINT_MAX]
        ]
        refused = sum(one.severity is Severity.REFUSED for one in found)
        return v.LintView(findings=rows, count=len(found), refused=refused, problem=kept.problem)

    async def explain(self, body: v.ExplainBody) -> v.ExplainView:
        """One call, as it would be judged now. Raises NotFound."""
        request = PermissionRequest(body.tool, body.argument, body.cwd)
        if not body.agent_id:
            return await asyncio.to_thread(self._judged, lambda: self._for_nobody(request))
        state = self._core.state
        agent = state.agents.get(AgentId(body.agent_id))
        if agent is None:
            raise NotFound(
                f"There is no agent {body.agent_id[:60]!r}.",
                "watchfloor fleet lists them. Leave the agent out to check by the rules alone.",
            )
        lineage = state.lineages.of_node.get(f"tree:{agent.root_id}")
        marks = dict(lineage.marks) if lineage is not None else {}  # here, on the loop's thread, which alone changes them
        return await asyncio.to_thread(self._judged, lambda: self._for_agent(agent, request, marks))

    def tools(self) -> v.ToolsView:
        """What is known of tools, by what they do."""
        alike: dict[tuple[str, str, frozenset[Scope], bool], list[str]] = {}
        for tool in policy_data.tools().named.values():
            alike.setdefault((tool.family, tool.action, tool.scopes, tool.connects), []).append(tool.name)
        rows = [
            v.ToolRow(
                names=names,
                family=family,
                action=action,
                scopes=[scope.value for scope in Scope if scope in scopes],
                connects=connects,
                judged=_JUDGED.get(family, "a human is asked"),
            )
            for (family, action, scopes, connects), names in alike.items()
        ]
        rows.append(
            v.ToolRow(names=[], family="other", scopes=["CALL_API", "RUN_CODE"], connects=True, judged="an unknown tool: a person is asked")
        )
        granted = list(self._core.state.scopes)
        bounds, words, state = self._bounds()
        if bounds:
            rows = [row.replaced(constraints="denied, unless a tool that does the same has a row") for row in rows]
        return v.ToolsView(tools=bounds + rows, scopes=[scope.value for scope in Scope], granted=granted, matrix=words, matrix_state=state)

    def _bounds(self) -> tuple[list[v.ToolRow], str, str]:
        """(a row for each of the matrix that is in force for everybody, why there is none or what is wrong with it, its state)."""
        try:
            matrix = self._desk.matrix.general()
        except Denied as error:
            return [], f"{error} Every call is denied.", "unknown"
        if matrix is None:
            return [], NO_MATRIX, "none"
        rows = [
            v.ToolRow(
                names=[name[:ARGUMENT_SHOWN]],
                family=(tool := tool_of(policy_data.tools(), name)).family,
                action=tool.action,
                scopes=[scope.value for scope in Scope if scope in tool.scopes],
                connects=tool.connects,
                judged="denied" if row.denied else _JUDGED.get(tool.family, "a human is asked"),
                constraints=row.words(),
            )
            for name, row in list(matrix.items())[: v.PARTS]
        ]
        problem = self._desk.matrix.problem
        return rows, problem, "last_good" if problem else "in_force"

    def sequences(self) -> v.SequencesView:
        """Patterns in force and the marks that stand. On the loop's thread: marks are its own."""
        patterns: tuple[Pattern, ...] = ()
        problem = ""
        try:
            patterns = self._desk.sequences.patterns()
            problem = self._desk.sequences.problem
        except Denied as error:
            problem = str(error)
        rows, lineages = self._marks()
        counts: dict[str, int] = {}
        for row in rows:
            counts[row.pattern] = counts.get(row.pattern, 0) + 1
        return v.SequencesView(
            patterns=[_pattern(one, counts.get(one.name, 0)) for one in patterns],
            problem=problem,
            marks=sorted(rows, key=lambda row: -row.at)[: v.MARKS],
            marks_count=len(rows),
            lineages=lineages,
        )

    def calls(self, rule: str, verdict: str) -> v.JudgedView:
        """The newest recorded calls that a rule decided. Blocks."""
        found = self._scribe.ledger.calls_of_rule(rule, verdict, v.CALLS)
        return v.JudgedView(
            rows=[
                v.JudgedRow(
                    at=one.at,
                    agent_id=one.agent_id,
                    tool=one.tool,
                    argument=one.argument[:ARGUMENT_SHOWN],
                    cwd=one.cwd,
                    verdict=one.verdict,
                    rule=one.rule,
                )
                for one in found
            ]
        )

    def _marks(self) -> tuple[list[v.MarkRow], int]:
        rows: list[v.MarkRow] = []
        unique = {id(one): one for one in self._core.state.lineages.of_node.values() if one.marks}
        for lineage in unique.values():
            name = next((node.partition(":")[2] for node in lineage.nodes if node.startswith("tree:")), "")
            rows += [_mark(mark, name, mark.key in lineage.kept) for mark in lineage.marks.values()]
        return rows, len(unique)

    def _judged(self, judging: Callable[[], v.ExplainView]) -> v.ExplainView:
        """What cannot be judged is denied, here as for an agent."""
        try:
            return judging()
        except (ConsoleError, OSError, ValueError, RecursionError) as error:
            why = f"it could not be checked: {error}"
            return v.ExplainView(verdict=Verdict.DENY.value, rule="policy", reason=why, words="So is every call that meets the same.")

    def _for_nobody(self, request: PermissionRequest) -> v.ExplainView:
        """By the rules alone: every scope, no data, no workspace of anybody's. Blocks."""
        kept = self._desk.current()
        policy = None
        if kept.settings is not None:
            policy = Policy(kept.settings, policy_data.catalogue(), self._desk.dangers(), None)
        context = Context(
            policy=policy,
            files=Disk(),
            tools=policy_data.tools(),
            scopes=ALL,
            sensitivity=Sensitivity.PUBLIC,
            matrix=self._desk.matrix.general(),
            cwd=request.cwd,
            problem=kept.problem,
        )
        found = judge(Call(request.tool, request.argument), context)
        place = kept.settings.workspace if kept.settings is not None else "none"
        words = f"No agent: by the rules alone, every scope, public data, workspace {place}. {BESIDES}"
        return _explained(found, [], words)

    def _for_agent(self, agent: Agent, request: PermissionRequest, marks: Mapping[tuple[str, str, str], Mark]) -> v.ExplainView:
        found = self._desk.judgement(agent, request)
        scopes = "every scope" if agent.scopes is None else f"scopes {', '.join(agent.scopes) or 'none'}"
        what = f"As {agent.agent_id} now: {scopes}, {agent.sensitivity.value} data."
        words = f"{what} {BESIDES}"
        if found.verdict is Verdict.DENY:
            return _explained(found, [], words)
        tool: Tool = tool_named(Call(request.tool, request.argument, detail=request.detail), policy_data.tools())
        try:
            ahead = advance(marks, self._desk.sequences.matches(request, tool, found, files_of(agent, self._desk.workspace_of(agent))))
        except Denied as error:
            return _explained(found, [f"denied: {error}"], words, over=("sequences", str(error)))
        taken = [f"takes step {step!r} of {match.pattern}: {match.why}" for match, step, _value in ahead.taken]
        if ahead.completes is None:
            return _explained(found, list(dict.fromkeys(taken)), words)
        why = f"{ahead.completes.why}: {ahead.completes.steps[-1]}, after what its lineage has done"
        name = ahead.completes.pattern
        return _explained(found, [f"completes {name}: {why}", *dict.fromkeys(taken)], words, over=(f"sequence {name}", why))


def _explained(found: Judgement, sequences: list[str], words: str, over: tuple[str, str] | None = None) -> v.ExplainView:
    """``over``: (rule, reason) of what denies whatever the rules say."""
    parts = [
        v.ExplainedPart(text=p.text[:ARGUMENT_SHOWN], verdict=p.verdict.value, rule=p.rule, step=p.step, reason=p.reason)
        for p in found.parts[: v.PARTS]
    ]
    steps = [v.ExplainedStep(argv=[w[:ARGUMENT_SHOWN] for w in s.argv[: v.PARTS]], program=s.program, joined=s.joined) for s in found.steps]
    verdict, rule, reason = (found.verdict.value, found.rule, found.reason) if over is None else (Verdict.DENY.value, *over)
    return v.ExplainView(
        verdict=verdict,
        rule=rule,
        reason=reason,
        parts=parts,
        parts_count=len(found.parts),
        steps=steps[: v.PARTS] if over is None else [],
        sequences=sequences[: v.PARTS],
        words=words,
    )


def _pattern(one: Pattern, marks: int) -> v.SequenceRow:
    steps = [v.SequenceStep(name=step.name, takes="; or ".join(_takes(way) for way in step.any)[:4000]) for step in one.steps]
    return v.SequenceRow(name=one.name, why=one.why, steps=steps, same=one.same, tighten=one.tighten, built_in=one.built_in, marks=marks)


def _takes(way: Matcher) -> str:
    """What takes a step, in the words of the file."""
    fields = {
        "action": sorted(way.actions),
        "paths": [rule.pattern for rule in way.paths],
        "hosts": [rule.pattern for rule in way.hosts],
        "scopes": sorted(way.scopes),
        "tools": list(way.tools),
        "commands": [" ".join(words) for words in way.commands],
    }
    return " and ".join(f"{name} {', '.join(values)}" for name, values in fields.items() if values)


def _mark(mark: Mark, lineage: str, kept: bool) -> v.MarkRow:
    return v.MarkRow(
        pattern=mark.pattern,
        step=mark.step,
        value=mark.value,
        agent_id=mark.agent_id,
        session=mark.context_id,
        root_id=mark.root_id,
        lineage=lineage,
        at=mark.at,
        text=mark.text,
        kept=kept,
    )
