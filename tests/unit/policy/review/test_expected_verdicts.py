"""Tables of expected verdicts."""

import pytest

from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.policy.review.expected_verdicts import differences, read_table
from console.policy.rules.verdicts import Judgement

LINE = b'{"tool": "shell", "argument": "ls", "verdict": "allow"}\n'


def test_lines_and_documents_read_alike() -> None:
    assert read_table(LINE + b"\n" + LINE, "t") == read_table(b'{"cases": [' + LINE + b"," + LINE + b"]}", "t")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"x",
        b'{"cases": []}',
        b'{"cases": {}}',
        b'{"tool": "x"}',
        LINE.replace(b"allow", b"maybe"),
        LINE.replace(b'"ls"', b"1"),
        b'{"cases": [1], "x": 2}',
    ],
)
def test_what_is_no_table_is_refused(data: bytes) -> None:
    with pytest.raises(UsageProblem):
        read_table(data, "t")


def test_differences_in_verdict_and_rule() -> None:
    cases = read_table(LINE + LINE[:-2] + b', "rule": "r"}\n', "t")
    assert len(differences(cases, lambda tool, argument: Judgement(Verdict.DENY, "r", ""))) == 2
    [one] = differences(cases, lambda tool, argument: Judgement(Verdict.ALLOW, "other", ""))
    assert one.case.rule == "r" and one.as_json()["found"]["rule"] == "other"
