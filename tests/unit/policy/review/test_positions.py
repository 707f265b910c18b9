"""The line of each rule, whatever stands around it."""

from __future__ import annotations

from console.api.policy.policy_data import default_rules
from console.policy.review.positions import lines_of
from console.policy.rules.loading import read_settings

TEXT = r"""{"_comment": "\"permissions\": { \"deny\": [\"shell(x)\"]",
 "permissions": {
  "deny": ["shell(rm:*)",
           "file(read:/a\u00e9/**)"],
  "unconfined": ["shell(ls)"],
  "allow": [

    "shell(rm:*)", "shell(ls)", "shell(ls)"]
 }}"""


def test_each_rule_has_the_line_of_its_own_list() -> None:
    assert lines_of(TEXT.encode()) == {
        ("deny", "shell(rm:*)"): 3,
        ("deny", "file(read:/a\u00e9/**)"): 4,
        ("allow", "shell(rm:*)"): 8,
        ("allow", "shell(ls)"): 8,
    }


def test_every_rule_of_the_products_own_is_found_where_it_stands() -> None:
    data = default_rules()
    rules = read_settings(data)
    found = lines_of(data)
    lines = data.decode().split("\n")
    every = [(name, rule.text) for name in ("deny", "ask", "allow") for rule in getattr(rules, name)]
    assert set(found) == set(every)
    assert all(f'"{text}"' in lines[found[name, text] - 1] for name, text in every)


def test_what_is_no_policy_has_no_lines() -> None:
    for data in (b"", b"]]]}}}", b'{"permissions": "deny"}', b'["deny", ["shell(ls)"]]', b"\xff\xfe", b'"\\q" [ { "'):
        assert lines_of(data) == {}
