"""Rules on tools of MCP servers: a name that can be read in several ways is denied by one reading, and allowed by all."""

from __future__ import annotations

from typing import Any

import pytest

from console.domain.errors import UsageProblem
from console.policy.rules.mcp import readings
from console.policy.rules.rule import Family, read_rule
from tests.fakes.policy_world import context, rules, told

RULES = rules(
    allow=["mcp(docs:*)", "mcp(git-hub:get_issue)", "mcp(git-hub:get_*)", "mcp(a:b)", "mcp(mailer:*)", "mcp(bank:send_payment)"],
    ask=["mcp(docs:write_page)"],
    deny=["mcp(*:delete_*)", "mcp(evil:*)"],
)


def judged(tool: str, **more: Any) -> tuple[str, str]:
    found = told(context(RULES, **more), tool, "{}")
    return found.verdict.value, found.rule


@pytest.mark.parametrize(
    ("tool", "verdict", "rule"),
    [
        ("mcp__docs__search", "allow", "mcp(docs:*)"),
        ("mcp__docs__write_page", "ask", "mcp(docs:write_page)"),
        ("mcp__docs__delete_page", "deny", "mcp(*:delete_*)"),
        ("mcp__evil__search", "deny", "mcp(evil:*)"),
        ("mcp__git-hub__get_issue", "allow", "mcp(git-hub:get_issue)"),
        ("mcp__git-hub__get_pull", "allow", "mcp(git-hub:get_*)"),
        ("mcp__git-hub__create_issue", "ask", "no rule"),
        ("mcp__other__search", "ask", "no rule"),
        ("docs_search", "ask", "no rule"),
        ("mcp__a__b", "allow", "mcp(a:b)"),
        # docs, or a server called docs__x: only one of them is allowed.
        ("mcp__docs__x__search", "ask", "no rule"),
        ("mcp__docs__evil__search", "ask", "no rule"),
        ("mcp__docs__x__delete_page", "deny", "mcp(*:delete_*)"),
        ("mcp__evil__x__search", "deny", "mcp(evil:*)"),
    ],
)
def test_a_rule_means_a_server_and_its_tool(tool: str, verdict: str, rule: str) -> None:
    assert judged(tool) == (verdict, rule)


def test_what_spends_or_sends_is_allowed_by_its_own_name_and_never_by_a_pattern() -> None:
    assert judged("mcp__mailer__send_email")[0] == "ask"
    assert judged("mcp__bank__send_payment") == ("allow", "mcp(bank:send_payment)")


def test_readings_of_a_name() -> None:
    assert readings("mcp__a__b") == (("a", "b"),)
    assert readings("mcp__a__b__c") == (("a", "b__c"), ("a__b", "c"))
    assert readings("mcp____x") == () == readings("mcp__x__") == readings("a__b") == readings("mcp__")


@pytest.mark.parametrize("text", ["mcp()", "mcp(a)", "mcp(a:)", "mcp(:b)", "mcp(a b:c)", "mcp(a*:c)", "mcp(a:b:c)", "mcp(a:b/c)"])
def test_a_rule_that_names_no_tool_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        read_rule(text, "here", {})


def test_a_servers_name_is_compared_as_programs_write_it() -> None:
    rule = read_rule("mcp(my.server:do)", "here", {})
    assert rule.family is Family.MCP and rule.words == ("my.server", "do")
    found = told(context(rules(allow=["mcp(my.server:do)"])), "mcp__my_server__do", "{}")
    assert found.verdict.value == "allow"
