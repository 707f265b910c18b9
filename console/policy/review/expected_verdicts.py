"""A table of expected verdicts: ``policy test FILE`` judges each call and says where the answer is another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.policy.rules.loading import read_json
from console.policy.rules.verdicts import Judgement

CASES_MAX = 100_000
_FIELDS = {"tool", "argument", "verdict", "rule", "why"}


@dataclass(frozen=True, slots=True)
class Case:
    """One call and what it should be answered with."""

    tool: str
    argument: str
    verdict: Verdict
    rule: str = ""
    """The rule that should decide; empty: any."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A call that is answered otherwise."""

    case: Case
    found: Judgement

    def as_json(self) -> dict[str, Any]:
        """As ``policy test`` shows it."""
        wanted = {"verdict": self.case.verdict.value, "rule": self.case.rule}
        return {"tool": self.case.tool, "argument": self.case.argument, "expected": wanted, "found": self.found.as_json()}


def read_table(data: bytes, name: str) -> tuple[Case, ...]:
    """``{"cases": [{"tool", "argument", "verdict", "rule"?, "why"?}]}``, or one such object a line. Raises UsageProblem with the place."""
    rows = list(_rows(data, name))
    if not rows:
        raise UsageProblem(f"{name} holds no case.", "A table of nothing proves nothing.")
    if len(rows) > CASES_MAX:
        raise UsageProblem(f"{name} holds {len(rows):,} cases; at most {CASES_MAX:,} are read.", "Split it.")
    return tuple(_case(row, f"{name}: case {at}") for at, row in enumerate(rows, 1))


def differences(cases: tuple[Case, ...], judged: Callable[[str, str], Judgement]) -> tuple[Difference, ...]:
    """The cases that are answered otherwise than expected."""
    found = ((case, judged(case.tool, case.argument)) for case in cases)
    return tuple(Difference(case, one) for case, one in found if one.verdict is not case.verdict or (case.rule and one.rule != case.rule))


def _rows(data: bytes, name: str) -> Iterator[Any]:
    if data.lstrip().startswith(b'{"cases"') or data.lstrip().startswith(b"{\n"):
        document = read_json(data, name)
        if not isinstance(document, dict) or not isinstance(document.get("cases"), list) or set(document) - {"_comment", "cases"}:
            raise UsageProblem(f"{name} holds no list called cases, or more than that.", "See docs/reference/policy.md.")
        yield from document["cases"]
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            yield read_json(line, f"{name}: line {number}")


def _case(row: Any, where: str) -> Case:
    if not isinstance(row, dict) or not set(row) <= _FIELDS or not {"tool", "argument", "verdict"} <= set(row):
        raise UsageProblem(f"{where} is not understood.", f"Fields are {', '.join(sorted(_FIELDS))}.")
    if not all(isinstance(value, str) for value in row.values()) or row["verdict"] not in list(Verdict):
        raise UsageProblem(f"{where}: a field is no string, or the verdict is none.", "Verdicts are allow, deny and ask.")
    return Case(row["tool"], row["argument"], Verdict(row["verdict"]), row.get("rule", ""))
