"""The worst decides; nothing judged is a denial."""

from console.domain.calls.permission import Verdict
from console.policy.rules.verdicts import Part, Step, denied, joined, no_looser_than, worst

STEP = Step(("ls",), "/usr/bin/ls", "/workspace")


def part(verdict: Verdict, rule: str = "r") -> Part:
    return Part("text", verdict, rule, "program", "why")


def test_deny_before_ask_before_allow_and_the_first_of_the_worst_is_named() -> None:
    found = worst([part(Verdict.ALLOW), part(Verdict.ASK), part(Verdict.DENY, "first"), part(Verdict.DENY, "second")], (STEP,))
    assert (found.verdict, found.rule, len(found.parts)) == (Verdict.DENY, "first", 4)
    assert found.steps == () and worst([part(Verdict.ASK)], (STEP,)).steps == (STEP,)


def test_nothing_judged_is_denied() -> None:
    assert worst([]).verdict is Verdict.DENY
    assert joined(worst([])).verdict is Verdict.DENY


def test_an_allow_names_the_rule_that_somebody_wrote() -> None:
    assert worst([part(Verdict.ALLOW, "unwrapped"), part(Verdict.ALLOW, "shell(ls:*)")]).rule == "shell(ls:*)"


def test_joining_never_loosens() -> None:
    allow = worst([part(Verdict.ALLOW)], (STEP,))
    assert joined(allow, denied("scope", "scopes", "no")).verdict is Verdict.DENY
    assert joined(allow, worst([part(Verdict.ASK)])).steps == (STEP,)


def test_a_floor_only_tightens() -> None:
    assert no_looser_than(part(Verdict.ALLOW), Verdict.ASK, "x", "y").rule == "x"
    assert no_looser_than(part(Verdict.DENY), Verdict.ASK, "x", "y").verdict is Verdict.DENY


def test_json_has_the_keys_that_are_promised() -> None:
    told = worst([part(Verdict.ASK)], (STEP,)).as_json()
    assert list(told) == ["verdict", "rule", "reason", "parts", "steps"]
    assert set(told["parts"][0]) == {"text", "verdict", "rule", "step", "reason"}
    assert told["steps"][0]["argv"] == ["ls"]
