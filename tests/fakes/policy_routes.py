"""The routes behind the policy page of the stand-in supervisor: rules of any number, findings, sequences, and hostile ones."""

from __future__ import annotations

import time
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api.policy import page as v
from console.api.policy import policy_data
from console.api.policy import rules as p
from console.domain.message import Message
from tests.fakes.approval_routes import HOSTILE, FakeApprovals
from tests.fakes.view_answers import refuse, say

_SETS: tuple[tuple[Literal["deny", "ask", "allow"], str, int], ...] = (
    ("deny", "file(read:/etc/shadow)", 0), ("deny", "file(read:**/.ssh/**)", 3), ("deny", "shell(sudo:*)", 41),
    ("deny", "network(outbound:169.254.169.254)", 7), ("ask", "shell(git push:*)", 12), ("ask", "shell(terraform apply:*)", 0),
    ("allow", "file(read:${WORKSPACE}/**)", 812), ("allow", "shell(ls:*)", 640), ("allow", "shell(git status:*)", 388),
    ("allow", "shell(find:*)", 0), ("allow", "network(outbound:*.crates.io)", 164), ("allow", "shell(make test:*)", 96),
)  # fmt: skip


def rules(number: int = len(_SETS), now: float = 0.0) -> p.PolicyView:
    """``number`` rules in force; the first few are believable."""
    now = now or time.time()
    rows = [
        p.RuleRow(rule=rule, list=name, hits=hits, last_at=now - 40 * (at + 1) if hits else None, line=4 + at)
        for at, (name, rule, hits) in enumerate(_SETS[:number])
    ]
    rows += [p.RuleRow(rule=f"shell(tool-{at} run:*)", list="allow", hits=at % 7, line=at + 4) for at in range(len(rows), number)]
    for row in rows:
        if row.rule == "shell(find:*)":
            row.in_force, row.finding = False, "find runs programs (-exec), deletes and writes (-delete, -fprint)"
        elif row.hits and row.last_at is None:
            row.last_at = now - row.line
    text = '{"permissions": {"allow": ["shell(ls:*)"]}}\n'
    file = "/var/lib/watchfloor/policy.json"
    return p.PolicyView(text=text, is_default=False, rules=rows, sha256="b" * 64, recorded=2310 if number else 0, file=file)


def hostile_rules(now: float = 0.0) -> p.PolicyView:
    """What a file may hold at worst, and what a newer supervisor may say."""
    view = rules(4, now)
    view.rules += [p.RuleRow(rule=text[:1000], list="allow", hits=10**15, last_at=1e300, finding=text[:500]) for text in HOSTILE]
    view.file = HOSTILE[0]
    return view


def profiles() -> p.ProfilesView:
    """The three, as the product has them; none is chosen."""
    known = [policy_data.profile(name) for name in policy_data.PROFILES]
    return p.ProfilesView(profiles=[p.ProfileRow(name=one.name, title=one.title, why=one.why) for one in known])


WEEK = ("git push origin main", "npm install left-pad", "make test")


def compared(now: float = 0.0, texts: tuple[str, ...] = WEEK) -> p.ProfilesTriedView:
    """What each would have decided of a week's calls."""
    now = now or time.time()
    counts = [
        p.ProfileCount(name="strict", allowed=412, asked=903, denied=61),
        p.ProfileCount(name="coding", allowed=1290, asked=79, denied=7),
        p.ProfileCount(name="observe", allowed=1376),
    ]
    calls = [
        p.ProfileCall(
            at=now - 600 * at, agent_id="cve-lookup", tool="shell", argument=text,
            verdicts={"strict": "deny" if at == 1 else "ask", "coding": "ask" if at < 2 else "allow", "observe": "allow"},
        )
        for at, text in enumerate(texts)
    ]  # fmt: skip
    return p.ProfilesTriedView(recorded=1402, left_out=26, counts=counts, calls=calls)


def findings() -> v.LintView:
    """One of each severity."""
    rows = [
        v.LintFinding(
            severity="refused", kind="allow", rule="shell(find:*)",
            what="find runs programs (-exec), deletes and writes (-delete, -fprint)",
            swallows=["shell(sudo:*)", "file(write:/etc/**)"], swallows_count=2,
        ),
        v.LintFinding(severity="warning", kind="allow", rule="network(outbound:*)", what="it allows every host"),
        v.LintFinding(severity="note", kind="allow", rule="shell(python3:*)", what="marked unconfined: python3 runs code"),
    ]  # fmt: skip
    return v.LintView(findings=rows, count=3, refused=1)


def sequences(now: float = 0.0) -> v.SequencesView:
    """Two patterns, one mark."""
    now = now or time.time()
    steps = [
        v.SequenceStep(name="read a credential", takes="action read and paths **/.ssh/**, **/.aws/**"),
        v.SequenceStep(name="reach the network", takes="action connect"),
    ]
    rows = [
        v.SequenceRow(name="credential-then-network", why="a secret that was read must not leave", steps=steps, tighten="NONE", marks=1),
        v.SequenceRow(name="own-rows", why="nobody checks his own write", steps=steps, same="table", built_in=False),
    ]
    mark = v.MarkRow(
        pattern="credential-then-network", step="read a credential", value="", agent_id="dependency-audit", session="ctx-0002",
        root_id="release-captain", lineage="release-captain", at=now - 3600, text="read_file /home/x/.ssh/id_rsa",
    )  # fmt: skip
    return v.SequencesView(patterns=rows, marks=[mark], marks_count=1, lineages=1)


def tools() -> v.ToolsView:
    """Four kinds of tools."""
    rows = [
        v.ToolRow(names=["shell", "Bash"], family="shell", scopes=["RUN_CODE"], judged="every command, file, host and redirect in it"),
        v.ToolRow(
            names=["delete_file"], family="file", action="delete", scopes=["WRITE_FS", "DELETE_FS"], judged="file rules, link and target"
        ),
        v.ToolRow(names=["send_email"], family="other", action="send", scopes=["SEND_EMAIL"], connects=True, judged="a human is asked"),
        v.ToolRow(names=[], family="other", scopes=["RUN_CODE", "CALL_API"], connects=True, judged="an unknown tool: a person is asked"),
    ]
    scopes = ["READ_FS", "WRITE_FS", "DELETE_FS", "READ_DB", "WRITE_DB", "SEND_EMAIL", "CALL_API", "RUN_CODE"]
    return v.ToolsView(tools=rows, scopes=scopes, granted=scopes[:3], matrix="none is in force", matrix_state="none")


class FakePolicy:
    """Tests set the fields and read ``asked``. What is in force, tried and saved is the approvals' (one rule desk, two pages)."""

    def __init__(self, approvals: FakeApprovals) -> None:
        self._approvals = approvals
        approvals.policy = rules()
        self.findings, self.sequences, self.tools = findings(), sequences(), tools()
        self.profiles, self.compared = profiles(), compared()
        self.calls = [
            v.JudgedRow(
                at=time.time() - at * 60,
                agent_id="dependency-audit",
                tool="shell",
                argument=f"ls {at}",
                verdict="allow",
                rule="shell(ls:*)",
            )
            for at in range(3)
        ]
        self.answer: v.ExplainView | None = None
        self.asked: list[v.ExplainBody] = []
        self.broken = ""

    @property
    def policy(self) -> p.PolicyView:
        """What is in force."""
        return self._approvals.policy

    @policy.setter
    def policy(self, view: p.PolicyView) -> None:
        self._approvals.policy = view

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/api/policy/lint", self._lint, methods=["GET"]),
            Route("/api/policy/tools", self._tools, methods=["GET"]),
            Route("/api/policy/sequences", self._sequences, methods=["GET"]),
            Route("/api/policy/calls", self._calls, methods=["GET"]),
            Route("/api/policy/explain", self._explain, methods=["POST"]),
            Route("/api/policy/profiles", self._profiles, methods=["GET"]),
            Route("/api/policy/profiles/compare", self._compare, methods=["GET"]),
            Route("/api/policy/profiles", self._choose, methods=["POST"]),
        ]

    async def _profiles(self, _request: Request) -> Response:
        return self._say(self.profiles)

    async def _compare(self, _request: Request) -> Response:
        return self._say(self.compared)

    async def _choose(self, request: Request) -> Response:
        body = p.ProfileBody.read_json(await request.body())
        left = [one for one in self.profiles.choices if one.agent_type != body.agent_type]
        made = p.ProfileChoice(agent_type=body.agent_type, profile=body.profile, reason=body.reason, by="ada", at=time.time())
        self.profiles = self.profiles.replaced(choices=[*left, made])
        return self._say(self.profiles)

    async def _lint(self, _request: Request) -> Response:
        return self._say(self.findings)

    async def _tools(self, _request: Request) -> Response:
        return self._say(self.tools)

    async def _sequences(self, _request: Request) -> Response:
        return self._say(self.sequences)

    async def _calls(self, request: Request) -> Response:
        rule = request.query_params["rule"]
        return self._say(v.JudgedView(rows=[one for one in self.calls if one.rule == rule]))

    async def _explain(self, request: Request) -> Response:
        body = v.ExplainBody.read_json(await request.body())
        self.asked.append(body)
        return self._say(self.answer or explained(body))

    def _say(self, view: Message) -> Response:
        return refuse(500, self.broken, "Look at the disk.") if self.broken else say(view)


def explained(body: v.ExplainBody) -> v.ExplainView:
    """Each part allowed, but what names rm."""
    words = [word.strip() for word in body.argument.split("&&")]
    parts = [
        v.ExplainedPart(
            text=word,
            verdict="deny" if word.startswith("rm") else "allow",
            rule=f"shell({word.split(' ')[0]}:*)",
            step="program",
            reason="a rule",
        )
        for word in words
    ]
    worst = next((part for part in parts if part.verdict == "deny"), parts[0])
    steps = (
        []
        if worst.verdict == "deny"
        else [v.ExplainedStep(argv=word.split(" "), program=f"/usr/bin/{word.split(' ')[0]}") for word in words]
    )
    whose = f"As {body.agent_id} now." if body.agent_id else "By the rules alone."
    return v.ExplainView(
        verdict=worst.verdict, rule=worst.rule, reason=worst.reason, parts=parts, parts_count=len(parts), steps=steps, words=whose
    )  # fmt: skip
