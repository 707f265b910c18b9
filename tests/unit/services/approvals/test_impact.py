"""What a call could touch is said from its judged parts; what is not known is amber, never green."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.domain.agent import Agent, AgentId, ContextId
from console.domain.calls.approval import Approval, AskedPart
from console.domain.calls.permission import PermissionRequest
from console.domain.network import NetworkMode, Sensitivity
from console.policy.rules.verdicts import RUN_BY_OPTION
from console.services.approvals.impact import blast_of
from tests.fakes.playbook import Playbook


def approval(*parts: AskedPart, tool: str = "shell") -> Approval:
    request = PermissionRequest(tool, "x")
    return Approval("q-1", AgentId("a"), AgentId("a"), ContextId("c"), request, "d", "rule", "why", 1.0, 2.0, parts)


def agent(level: Sensitivity = Sensitivity.PUBLIC, mode: NetworkMode = NetworkMode.PROXIED) -> Agent:
    return replace(Playbook().run("a").agent("a"), sensitivity=level, network_mode=mode)


def told(*parts: AskedPart, who: Agent | None = None, tool: str = "shell") -> dict[str, tuple[str, str]]:
    return {line.kind: (line.words, line.level) for line in blast_of(approval(*parts, tool=tool), who or agent())}


def test_a_call_judged_by_its_name_alone_is_never_said_to_touch_nothing() -> None:
    lines = told()
    assert lines["files"] == ("not known: the call was checked by its name alone", "warn") and lines["undo"][1] == "warn"


@pytest.mark.parametrize(("verdicts", "level"), [(("allow",), "plain"), (("allow", "ask"), "warn"), (("ask", "deny"), "danger")])
def test_the_worst_part_decides_the_colour(verdicts: tuple[str, ...], level: str) -> None:
    parts = [AskedPart(f"write /w/{n}", verdict, "rule", "file") for n, verdict in enumerate(verdicts)]
    assert told(*parts)["files"][1] == level


def test_many_are_named_in_part_and_counted() -> None:
    words, _ = told(*(AskedPart(f"read /w/{n}", "allow", "r", "file") for n in range(9)))["files"]
    assert words == "read /w/0, read /w/1, read /w/2 and 6 more"


def test_secret_data_that_may_leave_is_red() -> None:
    out = AskedPart("evil.example", "ask", "no rule", "network")
    assert told(out, who=agent(Sensitivity.SECRET))["data"][1] == "danger"
    assert told(out, who=agent(Sensitivity.SECRET, NetworkMode.NONE))["data"] == ("Secret data stays: network NONE", "plain")
    assert {line.kind: line.level for line in blast_of(approval(out), None)}["data"] == "warn"


def test_undo_is_promised_only_where_a_record_is_written() -> None:
    part = AskedPart("write /w/x", "ask", "r", "file")
    assert told(part, tool="write_file")["undo"] == ("a rollback record is written first", "plain")
    assert told(part)["undo"][1] == "warn"


@pytest.mark.parametrize(
    ("parts", "files"),
    [
        ((AskedPart("make clean", "ask", "no rule", "program"),), "No file named. May touch others"),
        (
            (AskedPart("dd of=/dev/sda", "ask", "r", "program"), AskedPart("of=/dev/sda", "ask", "not described", "options")),
            "No file named",
        ),
        ((AskedPart("to: all", "ask", "no rule", "tool"),), "No file named. May touch others"),
        ((AskedPart("rm -rf /", "deny", "shell(rm:*)", "program"),), "not known: it was denied before they were looked at"),
        ((AskedPart("make", "ask", "r", "program"), AskedPart("evil.example", "allow", "r", "network")), "No file named"),
    ],
)
def test_what_nobody_looked_into_is_never_said_to_touch_nothing_on_disk(parts: tuple[AskedPart, ...], files: str) -> None:
    lines = told(*parts)
    assert lines["files"][0].startswith(files) and lines["files"][1] == "warn"
    assert lines["undo"] == ("Cannot be undone", "warn")
    harmless = told(AskedPart("echo hi", "allow", "shell(echo:*)", "program"), AskedPart("evil.example", "ask", "no rule", "network"))
    assert harmless["files"] == ("No file found in the command", "plain") and harmless["undo"][1] == "plain"


def test_harmless_parts_in_front_hide_no_worse_one() -> None:
    parts = [AskedPart(f"read /w/{n}", "allow", "rule", "file") for n in range(9)] + [AskedPart("write /etc/passwd", "ask", "rule", "file")]
    words, level = told(*parts)["files"]
    assert words.startswith("write /etc/passwd, read /w/0") and words.endswith("and 7 more") and level == "warn"


@pytest.mark.parametrize(
    ("level", "mode", "words", "colour"),
    [
        (Sensitivity.PUBLIC, NetworkMode.NONE, "Public data stays: network NONE", "plain"),
        (Sensitivity.PUBLIC, NetworkMode.FULL, "Public data: no host found in the command, network FULL", "plain"),
        (Sensitivity.SECRET, NetworkMode.FULL, "Secret data: no host found in the command, network FULL", "warn"),
    ],
)
def test_that_data_stays_is_said_only_where_there_is_no_network(level: Sensitivity, mode: NetworkMode, words: str, colour: str) -> None:
    assert told(AskedPart("./a.out", "ask", "rule", "program"), who=agent(level, mode))["data"] == (words, colour)


def test_programs_are_named_once_and_words_that_are_not_described_are_none() -> None:
    twice = [AskedPart("git push origin x", "ask", rule, "program") for rule in ("shell(git push:*)", "no rule")]
    unknown = AskedPart("push", "ask", "not described", "options")
    assert told(*twice, unknown)["programs"] == ("git push origin x", "warn")
    helper = AskedPart("ext::sh", "deny", RUN_BY_OPTION, "options")
    assert told(*twice, helper)["programs"] == ("ext::sh, git push origin x", "danger")
