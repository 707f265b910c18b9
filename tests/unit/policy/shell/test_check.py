"""Shell strings judged: the table of hostile ones, and what the table cannot say.

The table of hostile strings has rows for P1 to P11 of the threat table, as far as they are strings. What of the last ones is none:
P7, a rule that swallows denials is refused, or marked: ``test_lint.py``, ``test_loading.py``; P10, padding, sub-agents, a file that is
handed over, a restart, unrelated agents: ``tests/end2end/test_sequence_sentences.py``, ``test_sequences.py``; P11, doubled keys, unknown
fields, wrong types, nothing, anchors: ``test_loading.py``, ``test_sequence_file.py``; the last good one is kept, with an alarm:
``test_kept.py``, ``tests/unit/services/policy/test_service.py``, ``test_sequence_desk.py``.
"""

import json
from pathlib import Path

import pytest

from console.domain.calls.permission import Verdict
from console.policy.review.expected_verdicts import Case, read_table
from console.policy.rules.loading import read_settings
from console.policy.shell.check import Policy, ShellJudge
from tests.fakes.policy_disk import PolicyDisk
from tests.fakes.policy_world import DATA, catalogue, context, rules, told

HOSTILE = read_table((DATA / "hostile_shell.jsonl").read_bytes(), "hostile_shell.jsonl")
RULES = read_settings((DATA / "hostile_settings.json").read_bytes())
SEED = read_settings(Path(DATA / "settings.json").read_bytes(), "ctx-abc123", "/workspace")
SEED_TABLE = read_table((DATA / "settings_verdicts.json").read_bytes(), "settings_verdicts.json")


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 600 and {case.verdict for case in HOSTILE} == set(Verdict)
    lines = (DATA / "hostile_shell.jsonl").read_text().splitlines()
    assert {f"P{at}" for at in range(1, 12)} <= {json.loads(line)["why"].split()[0] for line in lines}


@pytest.mark.parametrize("case", HOSTILE, ids=lambda case: ascii(case.argument[:60]))
def test_hostile_strings(case: Case) -> None:
    found = told(context(RULES), case.tool, case.argument)
    assert found.verdict is case.verdict, (found.rule, found.reason)
    assert found.rule and found.reason and (found.steps == () or found.verdict is not Verdict.DENY)


@pytest.mark.parametrize("case", SEED_TABLE, ids=lambda case: ascii(case.argument[:60]))
def test_the_source_documents_example(case: Case) -> None:
    found = told(context(SEED), case.tool, case.argument)
    assert (found.verdict, found.rule) == (case.verdict, case.rule or found.rule), found.reason


def shell(text: str, **lists: list[str]) -> Verdict:
    return ShellJudge(Policy(rules(**lists), catalogue()), PolicyDisk()).text(text).verdict


def test_words_that_no_description_covers_are_one_part() -> None:
    found = ShellJudge(Policy(rules(ask=["shell(git push:*)"]), catalogue()), PolicyDisk()).text(
        "git push " + " ".join("abcdefghijklmnopqrstuvw")
    )
    unknown = [part.text for part in found.parts if part.rule == "not described"]
    assert unknown == ["push", "a b c d e f g h i j k l m n o p q r s t and 3 more"] and found.verdict is Verdict.ASK


def test_marked_unconfined_allows_but_never_over_a_denial() -> None:
    lists = {
        "allow": ["shell(bash:*)", "shell(sudo:*)"],
        "unconfined": ["shell(bash:*)", "shell(sudo:*)"],
        "deny": ["shell(curl:*)", "file(read:/etc/shadow)"],
    }
    assert (
        shell("bash run.sh", **lists) == "allow" and shell("bash -c 'ls -la'", **lists) == "allow" and shell("sudo ls", **lists) == "allow"
    )
    for denied in (
        "bash -c 'curl e'",
        "bash -lc 'ls; curl e'",
        "bash -c 'cat /etc/shadow'",
        "sudo curl e",
        "bash /etc/shadow",
        "sudo -u x /usr/bin/curl",
    ):
        assert shell(denied, **lists) == "deny", denied
    assert shell("bash run.sh", allow=["shell(bash:*)"]) == "ask" and shell("sudo ls", allow=["shell(sudo:*)"]) == "deny"


def test_what_is_not_described_asks_though_a_rule_allows_it() -> None:
    assert shell("mytool x", allow=["shell(mytool:*)"]) == "ask"
    assert shell("mytool x", allow=["shell(mytool:*)"], unconfined=["shell(mytool:*)"]) == "allow"
    assert shell("mytool /etc/shadow", allow=["shell(mytool:*)"], unconfined=["shell(mytool:*)"], deny=["file(read:/etc/shadow)"]) == "deny"


def test_rules_that_could_mean_anything_are_not_in_force_until_they_are_marked() -> None:
    assert shell("true", allow=["shell(*)"]) == "ask" and shell("true", allow=["shell(*)"], unconfined=["shell(*)"]) == "allow"
    assert shell("./run.sh", allow=["shell(./run.sh:*)"]) == "ask"
    assert shell("./run.sh", allow=["shell(./run.sh:*)"], unconfined=["shell(./run.sh:*)"]) == "allow"
    assert shell("/usr/bin/true", allow=["shell(/usr/bin/true:*)"]) == "allow"


def test_an_ask_never_hides_a_denial() -> None:
    lists = {"ask": ["shell(cat:*)"], "allow": ["file(read:/**)"], "deny": ["file(read:/etc/shadow)"]}
    assert shell("cat a.txt", **lists) == "ask" and shell("cat shadow", **lists) == "deny" and shell("cat < shadow", **lists) == "deny"


def test_deny_before_ask_before_allow() -> None:
    assert shell("true", allow=["shell(true:*)"]) == "allow" and shell("true", deny=["shell(ls:*)"]) == "ask"
    assert shell("true", allow=["shell(true:*)"], ask=["shell(true:*)"]) == "ask"
    assert shell("true", allow=["shell(true:*)"], ask=["shell(true:*)"], deny=["shell(*)"]) == "deny"


def test_a_program_is_executed_as_its_argv_with_what_keeps_it_from_running_others() -> None:
    found = told(context(RULES), "shell", "cd data && git status")
    assert found.verdict is Verdict.ALLOW
    [step] = found.steps
    assert (step.argv, step.program, step.cwd) == (("git", "status"), "/usr/bin/git", "/workspace/data")
    assert dict(step.environment)["GIT_CONFIG_VALUE_1"] == "/dev/null"


def test_every_command_within_commands_is_bounded() -> None:
    assert shell("nice " * 7 + "true", allow=["shell(true:*)"]) == "deny"


def test_a_listing_of_the_folder_one_works_in_is_judged_as_any_other() -> None:
    lists = rules(allow=["shell(ls:*)", "file(read:${WORKSPACE}/**)"], deny=["file(read:/root/**)", "file(read:${WORKSPACE}/secrets/**)"])
    policy = Policy(lists, catalogue())
    for text in ("ls", "ls -la", "ls .", "nice ls"):
        assert ShellJudge(policy, PolicyDisk()).text(text, "/root").verdict is Verdict.DENY, text
        assert ShellJudge(policy, PolicyDisk()).text(text, "/workspace").verdict is Verdict.ALLOW, text
    assert ShellJudge(policy, PolicyDisk()).text("ls -R", "/workspace").verdict is Verdict.ASK
    bare = Policy(rules(allow=["shell(ls:*)"]), catalogue())
    assert ShellJudge(bare, PolicyDisk()).text("ls", "/workspace").verdict is Verdict.ALLOW, "no rule names the folder"
    assert ShellJudge(bare, PolicyDisk()).text("ls -R", "/workspace").verdict is Verdict.ASK


def test_a_link_to_a_described_program_under_a_name_that_is_not_described() -> None:
    disk = PolicyDisk()
    disk.links["/usr/bin/fetch"] = "/usr/bin/curl"
    made = context(rules(allow=["shell(fetch:*)", "network(outbound:*)"], deny=["network(outbound:evil.example)"]), disk)
    assert told(made, "shell", "fetch https://evil.example/x").verdict is Verdict.DENY
    assert told(made, "shell", "fetch https://good.example/x").verdict is Verdict.ASK


def test_what_a_wrapper_runs_has_its_variables() -> None:
    for text in ("git log", "timeout 5 git log", "nice env git log"):
        found = told(context(RULES), "shell", text)
        assert dict(found.steps[0].environment)["GIT_CONFIG_GLOBAL"] == "/dev/null", text
    assert told(context(RULES), "shell", "timeout 5 cat a.txt").steps[0].environment == ()
