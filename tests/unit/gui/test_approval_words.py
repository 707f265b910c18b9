"""What the approvals page makes of a request: every hostile character visible, titles from the judged call, floods as one item."""

from __future__ import annotations

import pytest

from console.api.policy.approvals import ApprovalDetailView, ApprovalPart, ApprovalsView, GrantRow
from console.gui.pages.approvals.book import Book
from console.gui.pages.approvals.case import case_of
from console.gui.pages.approvals.hostile import top_findings, visible
from console.gui.pages.approvals.rows import grant_words
from console.gui.pages.approvals.words import call_line, clock_words, gone_words, is_bound, is_late, numbered, title_of, whole_input
from console.gui.widgets.safe_text import is_plain
from tests.fakes import approval_routes as fake
from tests.fakes.gui_fixture import HOSTILE_NAMES


def detail(tool: str, argument: str, parts: list[ApprovalPart], **more: str) -> ApprovalDetailView:
    row = fake.row(1, tool, argument, says="harmless", detail=more.get("detail", ""))
    return ApprovalDetailView(row=row, parts=parts, detail=more.get("detail", ""))


def part(text: str, verdict: str = "ask", step: str = "program") -> ApprovalPart:
    return ApprovalPart(text=text, verdict=verdict, rule="r", step=step)


def test_a_grant_in_a_list_says_how_many_lines_it_has_beyond_the_first() -> None:
    given = GrantRow(approval_id="ap-1", session="s", tool="shell", argument="ls\nrm -rf /\nx", digest="", by="operator:0", at=1.0)
    assert call_line(given) == "⏎+2 ls" and "⏎+2 ls, by root (uid 0)" in grant_words(given, "item")


@pytest.mark.parametrize("text", [*HOSTILE_NAMES, *fake.HOSTILE, "a\u2029b\x85c", "\u3000\u00a0", "\udc80", "\U000e0041tag"])
def test_nothing_hostile_is_shown_raw_and_nothing_is_left_out(text: str) -> None:
    shown = visible(text)
    assert all(is_plain(line.text) or len(line.text) > 2000 for line in shown.lines)
    assert "".join(line.text for line in shown.lines).isprintable()
    kept = [c for c in text if c.isascii() and c.isalnum()]
    assert len([c for line in shown.lines for c in line.text if c.isascii() and c.isalnum()]) >= len(kept)


def test_each_character_is_a_chip_with_its_code_and_what_a_terminal_would_show() -> None:
    shown = visible(fake.PUBLISH)
    assert [line.number for line in shown.lines] == [1, 2, 3, 4] and shown.hidden == 3
    codes = [line.text[c.at : c.at + c.length] for line in shown.lines for c in line.chips]
    assert codes == ["<U+200B>", "<U+202E>", "<ESC>"]
    words = {one.code: one.words for one in top_findings(shown)}
    assert "this is not “$CARGO_TOKEN”" in words["U+200B"]
    assert "a terminal would show “crates.io” at line 3" in words["U+202E"]
    assert "wiped the line" in words["ESC [2K"]


def test_padding_cannot_push_the_end_out_of_sight() -> None:
    assert visible("rm /" + " " * 3000 + "#").lines[0].text == "rm /<SPACE ×3,000>#"
    lines = visible("ls" + "\n" * 501 + "rm -rf /home").lines
    assert [(line.number, line.text) for line in lines] == [(1, "ls"), (2, "<500 empty lines>"), (502, "rm -rf /home")]
    assert visible("x\rsafe").findings[0].words.startswith("goes back: a terminal would show “safe”")
    assert visible("p\u0430y").lines[0].text == "p<U+0430>y" and visible("да").hidden == 0


def test_titles_come_from_the_judged_call_alone() -> None:
    line = [part("git fetch origin", "allow"), part("cargo publish --token x"), part("printf a", "allow")]
    assert title_of(detail("shell", "…", line)) == "cargo publish, in a shell line of 3 commands"
    danger = [part("ls -l"), part("rm -rf /"), part("rm -rf /", "ask", "danger")]
    assert title_of(detail("shell", "…", danger)) == "rm, in a shell line of 2 commands"
    assert title_of(detail("shell", "…", [part("ls", "allow"), part("curl x", "deny")])).startswith("curl")
    assert title_of(detail("http_request", "…", [part("reach https://osv.dev", "ask", "network")])) == "reach https://osv.dev"
    assert title_of(detail("launch\nrocket", "now", [])) == "launch rocket, checked by its name alone"
    assert "harmless" not in title_of(detail("x", "y", []))


def test_a_call_in_a_list_says_what_is_beyond_its_line() -> None:
    assert call_line(fake.row(1, "shell", "ls\nrm -rf /\n")) == "⏎+2 ls"
    assert call_line(fake.row(1, "shell", "rm /" + " " * 900 + "# x")) == "rm / [900 spaces] # x"


def test_the_digest_is_computed_here_and_the_whole_input_is_shown_where_it_says_more() -> None:
    found = detail("shell", "ls", [], detail='{"command":"ls","timeout":5}')
    assert is_bound(found) and whole_input(found)
    assert not whole_input(detail("shell", "ls", [], detail='{"command":"ls"}'))
    changed = found.replaced(row=found.row.replaced(argument="rm -rf /"))
    assert not is_bound(changed)
    assert "digest is not that" in case_of([changed.row], [changed]).why_not_approve()
    assert any("timeout" in line.text for line in case_of([found.row], [found]).shown.lines)


def test_what_cannot_be_shown_whole_is_not_approved() -> None:
    huge = detail("shell", "\u202e\u200b" * 32_768, [])
    assert case_of([huge.row], [huge]).is_whole is False and "only be denied" in case_of([huge.row], [huge]).why_not_approve()
    long = detail("shell", "A" * 65_536, [], detail='"' + "b" * 262_000 + '"')
    assert case_of([long.row], [long]).why_not_approve() == ""
    assert case_of([long.row, huge.row], [long]).why_not_approve() == "It is still being read."


def test_a_flood_is_one_item_least_time_left_first() -> None:
    book = Book()
    rows = fake.mockup()
    assert book.take(ApprovalsView(waiting=rows, items=5), 0.0) == [] and book.items_waiting == 5
    items = book.items("", set())
    assert [item.first.row.agent_name for item in items] == [
        "dependency-audit", "cert-rotator", "cve-lookup", "inbox-reader", "backfill-worker",
    ]  # fmt: skip
    assert items[3].is_group and len(items[3].entries) == 12
    opened = book.items("", {items[3].first.row.group})
    assert len(opened) == 5 + 12 and sum(item.within for item in opened) == 12
    assert [item.first.row.agent_name for item in book.items("CARGO publish", set())] == ["dependency-audit"]


def test_what_was_looked_at_stays_with_the_word_until_it_is_left() -> None:
    book = Book()
    rows = fake.mockup()[:2]
    book.take(ApprovalsView(waiting=rows), 0.0)
    ended = rows[0].replaced(state="void", words="the call changed", decided_by="supervisor")
    new = fake.row(50, "shell", "true")
    assert book.take(ApprovalsView(waiting=[rows[1], new], decided=[ended]), 1.0) == [new]
    assert book.entries[ended.id].gone == "void by supervisor: the call changed" and len(book.items("", set())) == 3
    assert book.forget_gone({ended.id}) is False and book.forget_gone(set()) is True
    assert gone_words(rows[0].replaced(state="used", scope="session")) == "approved for the session and used"


def test_the_clock() -> None:
    assert [clock_words(s) for s in (0, 48.9, 228, 3661)] == ["0:00", "0:48", "3:48", "1:01:01"]
    assert is_late(149, 600) and not is_late(151, 600)


def test_a_command_judged_by_two_rules_is_one_command() -> None:
    one = ApprovalPart(text="git push origin main", verdict="ask", rule="shell(git push:*)", step="program")
    twice = [one, one.replaced(rule="no rule")]
    assert [number for number, _ in numbered([*twice, ApprovalPart(text="main", verdict="ask", rule="r", step="options")])] == [1, 1, 1]
    other = ApprovalPart(text="ls", verdict="allow", rule="r", step="program")
    assert [number for number, _ in numbered([*twice, other])] == [1, 1, 2]
