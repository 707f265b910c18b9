"""The profiles: what *coding* allows of ordinary calls, that hostile ones stay asked or denied, and what it never does."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from console.api.policy import policy_data
from console.domain.calls.permission import Verdict
from console.domain.errors import UsageProblem
from console.domain.network import Sensitivity
from console.policy.files.disk import Disk
from console.policy.judge import Call, Context, judge
from console.policy.review.expected_verdicts import Case, read_table
from console.policy.rules.loading import read_settings
from console.policy.rules.profiles import NOT_CONTAINED, WORK, Standing, observed, read_profile
from console.policy.rules.verdicts import Judgement
from console.policy.scopes import ALL
from console.policy.shell.check import Policy
from tests.fakes.policy_disk import PolicyDisk, StampedDisk
from tests.fakes.policy_world import DATA, catalogue, dangers, tools

CALLS: list[dict[str, str]] = [json.loads(line) for line in (DATA / "ordinary_calls.jsonl").read_text().splitlines()]
SEED = "watchfloor 15:"
HOSTILE = [
    case for case in read_table((DATA / "hostile_shell.jsonl").read_bytes(), "hostile_shell.jsonl") if case.verdict is not Verdict.ALLOW
]
CODING = read_table((DATA / "coding_calls.jsonl").read_bytes(), "coding_calls.jsonl")
"""Calls with the verdict that *coding* gives an agent in a sandbox, by the class that each stands for."""
RUNS_ITS_OWN = {
    *("./run.sh", "/workspace/run.sh", "/workspace/data/../run.sh", "./nothing", "./curl.sh", "./a.txt", "bash run.sh", "bash x.sh"),
    *("bash -c ls", "/usr/bin/../bin/bash -c id"),
    *("make", "make -f x", "make all", "npm run x", "node -e x", "node -e 1", "python3 -c x", "python3 run.py", "python3 -c 'import os'"),
    *("perl -e x", "perl -e 'system(1)'", "env python3 -c 1", ". ./run.sh", ". run.sh", "env"),
    *("source run.sh", "source ./activate", "cat a.txt & cat b.txt", "grep x a.txt &"),
    "docker ps",  # it looks at the engine of this host, as a program of the workspace may
}  # fmt: skip
"""Rows that do no more than run a program of the workspace: these are what *coding* allows in a sandbox, and asks about elsewhere."""

READ_BY_CODING = {
    *("cat <<EOF\nplain\nEOF", "cat <<'EOF'\nplain\nEOF", "cat <<-EOF\n\tx\nEOF", "echo $?", "FOO=1", "env A=b ls", "export A=b", "set -x"),
    *("exit", "break", "( grep x a.txt )", "! grep x a.txt", "[ a = a ]", "cat <<< x", "echo ${PATH}", "echo $HOME/x", "type curl"),
    *("ls *.py", "ls ?", "ls [a-z]", "echo a$'b'", "echo $!", "cat {a,b}.txt", "echo a{b,c}d", "echo {a,b}"),
    *("find data -exec cat {} \\;", "find data -exec grep -l x {} +"),
    *("echo $((1+1))", "[[ a = a ]]", "disown", "ulimit -n 1", "> a.txt", "< a.txt"),
    *("cd data && ls\ncat x", "cd data && ls || cat x", "cd data || cat x", "cd data; cat x.csv", "true || cd data && cat x"),
}  # fmt: skip
"""Rows that other rules deny because they are not static, and that *coding* reads: each command of them is judged, and none does harm."""


def held_back(call: dict[str, str]) -> bool:
    """Whether a call is of the quarter by which nothing was tuned."""
    return hashlib.sha256((SEED + call["argument"]).encode()).digest()[0] % 4 == 0


@functools.cache
def policy(name: str, workspace: str = "/workspace", more: str = "") -> Policy:
    document = json.loads(policy_data.profile_rules(name))
    for kind, rules in json.loads(more or "{}").items():
        document["permissions"][kind] = [*document["permissions"][kind], *rules]
    settings = read_settings(json.dumps(document).encode(), workspace=workspace)
    return Policy(settings, catalogue(), dangers(), None, policy_data.profile(name))


def context(made: Policy, files: Any, standing: Standing) -> Context:
    return Context(made, files, tools(), ALL, Sensitivity.PUBLIC, None, standing=standing)


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    """A small repository: folders that the calls name, and a few files."""
    for folder in (
        "src",
        "docs",
        "tests/unit",
        "lib",
        "core",
        "agents",
        "build",
        "dist",
        "node_modules",
        "packages/cli",
        "libs/model-profiles",
    ):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("src/index.ts", "README.md", "core/a.py", "agents/b.py", "package.json", "dist/app.js"):
        (tmp_path / name).write_text("x\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return str(tmp_path)


def judged(call: dict[str, str], made: Context) -> Judgement:
    grep = call["tool"] == "Grep"  # the hook hands over the folder that it searches
    return judge(Call("read_file" if grep else call["tool"], "." if grep else call["argument"]), made)


def test_the_ordinary_calls_are_many_different_and_each_has_an_origin() -> None:
    assert len(CALLS) >= 400 and len({(call["tool"], call["argument"]) for call in CALLS}) == len(CALLS)
    assert all(len(call["origin"]) > 8 for call in CALLS)
    plain = [re.sub(r"^cd \S+ && ", "", call["argument"]) for call in CALLS if call["tool"] == "Bash"]
    programs = Counter(next(word for word in text.split() if not re.match(r"\w+=", word)) for text in plain)
    assert max(programs.values()) <= 10 and len(programs) >= 100
    assert 0.2 < sum(map(held_back, CALLS)) / len(CALLS) < 0.35


@pytest.mark.parametrize("unseen", [False, True])
def test_coding_allows_ordinary_work_in_a_sandbox_and_denies_none(unseen: bool, workspace: str) -> None:
    made = context(policy("coding", workspace), Disk(), Standing.CONTAINED)
    found = {call["argument"]: judged(call, made) for call in CALLS if held_back(call) is unseen}
    refused = {text: one.rule for text, one in found.items() if one.verdict is not Verdict.ALLOW}
    assert len(refused) <= len(found) / 10, refused
    assert not [text for text, one in found.items() if one.verdict is Verdict.DENY]


@pytest.mark.parametrize("case", CODING, ids=lambda case: ascii(case.argument[:60]))
def test_what_coding_decides_of_each_class_of_calls(case: Case, workspace: str) -> None:
    found = judge(Call(case.tool, case.argument), context(policy("coding", workspace), Disk(), Standing.CONTAINED))
    assert found.verdict is case.verdict, (found.rule, found.reason)


def test_no_rule_of_coding_names_an_argument_of_an_ordinary_call() -> None:
    profile = policy_data.profile("coding")
    shell = [rule[6:-1].removesuffix(":*").split() for rule in profile.permissions["allow"] if rule.startswith("shell(")]
    assert all(len(words) == 1 for words in shell), "an allow rule names a program alone"
    rules = " ".join([*profile.permissions["allow"], *profile.permissions["ask"], *profile.permissions["deny"], *profile.work])
    operands = {word for call in CALLS for word in call["argument"].split()[1:] if re.search(r"[/.]\w", word)}
    assert not [word for word in operands if word in rules.split()]


def test_outside_a_sandbox_programs_of_the_workspace_are_asked_with_the_reason_and_allowed_once_accepted(workspace: str) -> None:
    for text in ("make test", "npm test", "./gradlew test", "python3 -m pytest -q", "cargo build && cargo test"):
        asked = judge(Call("Bash", text), context(policy("coding", workspace), Disk(), Standing.OPEN))
        assert (asked.verdict, asked.rule, asked.reason) == (Verdict.ASK, WORK, NOT_CONTAINED), text
        assert judge(Call("Bash", text), context(policy("coding", workspace), Disk(), Standing.ACCEPTED)).verdict is Verdict.ALLOW


@pytest.mark.parametrize("standing", list(Standing))
def test_hostile_rows_stay_denied_or_asked(standing: Standing) -> None:
    own = json.loads((DATA / "hostile_settings.json").read_bytes())["permissions"]
    made = context(policy("coding", more=json.dumps({"deny": own["deny"], "ask": own["ask"]})), StampedDisk(), standing)
    exempt = READ_BY_CODING | (RUNS_ITS_OWN if standing is not Standing.OPEN else set())
    loose = [case.argument for case in HOSTILE if judge(Call(case.tool, case.argument), made).verdict is Verdict.ALLOW]
    assert set(loose) <= exempt, sorted(set(loose) - exempt)[:20]


@pytest.mark.parametrize("standing", list(Standing))
def test_what_coding_denies_and_what_it_asks_whatever_holds_the_agent(standing: Standing, workspace: str) -> None:
    made = context(policy("coding", workspace), Disk(), standing)
    for text in (
        *("sudo make install", "cat ~root/.ssh/id_rsa /root/.ssh/id_rsa", "dd if=a of=/dev/sda", "crontab -e", "chmod u+s a"),
        *("echo x >> /root/.bashrc", "cp a .git/hooks/pre-commit", "unshare -r sh", "bash -c 'cat /etc/shadow'", "cat /etc/shadow"),
        *("pandoc -o /root/.bashrc a.md", "gcc -o .git/hooks/pre-commit a.c", "gcc a.c -o /usr/bin/ls", "gcc -o/usr/bin/ls a.c"),
        *("esbuild --outfile=/root/.bashrc a.js", "prettier --write /root/.bashrc"),
    ):  # fmt: skip
        assert judge(Call("Bash", text), made).verdict is Verdict.DENY, text
    for text in (
        *("curl https://example.com", "npm install", "pip install x", "python3 -m pip install x", "git push", "git fetch"),
        *("rm -rf ../other", "kill 1", "pkill node", "docker run x", "gh pr create", "FOO=1 curl e", "unknown-program x"),
        *("make && npm publish", "cat README.md | bash", "git reset --hard", 'echo "$TOKEN"', "LD_PRELOAD=/x ls"),
    ):  # fmt: skip
        assert judge(Call("Bash", text), made).verdict is Verdict.ASK, text


def test_a_literal_message_is_read_and_what_would_be_substituted_asks(workspace: str) -> None:
    made = context(policy("coding", workspace), Disk(), Standing.CONTAINED)
    commit = "git commit -m \"$(cat <<'EOF'\nFix it\n\nWith $HOME and `quotes`\nEOF\n)\""
    assert judge(Call("Bash", commit), made).verdict is Verdict.ALLOW
    assert judge(Call("Bash", commit.replace("'EOF'", "EOF")), made).verdict is Verdict.ASK
    assert judge(Call("Bash", commit + "; sudo id"), made).verdict is Verdict.DENY


def test_what_the_shell_reads_counts_as_a_program_of_the_workspace(workspace: str) -> None:
    (Path(workspace) / "env.sh").write_text("x")
    for standing, verdict in ((Standing.CONTAINED, Verdict.ALLOW), (Standing.OPEN, Verdict.ASK)):
        made = context(policy("coding", workspace), Disk(), standing)
        for text in (
            ". .venv/bin/activate",
            "source .venv/bin/activate && pytest -q",
            "python3 -m venv v && . v/bin/activate",
            "source env.sh",
        ):
            assert judge(Call("Bash", text), made).verdict is verdict, text
        for text in ("source ../x.sh", ". /etc/profile", "source nothing", "source $X", "source env.sh && git push"):
            assert judge(Call("Bash", text), made).verdict is Verdict.ASK, text


def test_a_sandbox_has_its_own_scratch_and_its_own_loopback(workspace: str) -> None:
    texts = (
        "make > /tmp/made.log 2>&1",
        "cat /tmp/made.log",
        "rm -rf /tmp/made",
        "curl -s localhost:8000/x",
        "curl -d a=b http://127.0.0.1:1/",
    )
    for standing, verdict in ((Standing.CONTAINED, Verdict.ALLOW), (Standing.OPEN, Verdict.ASK), (Standing.ACCEPTED, Verdict.ASK)):
        made = context(policy("coding", workspace), Disk(), standing)
        assert {text: judge(Call("Bash", text), made).verdict for text in texts} == dict.fromkeys(texts, verdict)
    contained = context(policy("coding", workspace), Disk(), Standing.CONTAINED)
    beside = f"/{workspace.split('/')[1]}/{workspace.split('/')[2]}/x"
    for text in (f"rm -rf {beside}", "cat /var/tmp/x", "curl localhost.example.com", "curl -L localhost", "curl -d @/etc/passwd localhost"):
        assert judge(Call("Bash", text), contained).verdict is Verdict.ASK, text
    assert judge(Call("WebFetch", "http://localhost:3000/"), contained).verdict is Verdict.ALLOW
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:  # noqa: S108
        for name, target in (("own", ""), ("python", sys.executable), ("who", "/usr/bin/whoami")):
            (Path(scratch) / name).symlink_to(target) if target else (Path(scratch) / name).write_text("x")
        allowed = [
            name
            for name in ("own", "python", "who", "none")
            if judge(Call("Bash", f"{scratch}/{name} x"), contained).verdict is Verdict.ALLOW
        ]
        assert allowed == ["own", "python", "none"], "a program there is the agent's, a link is what it leads to"


def test_a_search_by_a_tool_is_judged_by_the_folder_that_it_looks_in(workspace: str) -> None:
    made = context(policy("coding", workspace), Disk(), Standing.CONTAINED)
    assert judge(Call("Grep", "def x"), made).verdict is Verdict.ALLOW
    assert judge(Call("Grep", "x", detail=json.dumps({"pattern": "x", "path": "src"})), made).verdict is Verdict.ALLOW
    assert judge(Call("Grep", "x", detail=json.dumps({"pattern": "x", "path": "/etc"})), made).verdict is Verdict.ASK
    assert judge(Call("Grep", "x", detail=json.dumps({"pattern": "x", "path": "/root/.ssh/id_rsa"})), made).verdict is Verdict.DENY
    assert judge(Call("Grep", "/root/.ssh/id_rsa"), made).verdict is Verdict.DENY


def test_a_patch_is_judged_by_the_files_that_it_names(workspace: str) -> None:
    made = context(policy("coding", workspace), Disk(), Standing.CONTAINED)
    head = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-x\n+y\n"
    for name, content in (
        ("good", head.format("src/index.ts")),
        ("hook", head.format(".git/hooks/pre-commit")),
        ("ci", head.format(".github/workflows/x.yml")),
        ("up", head.format("../../x")),
        ("link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n"),
        ("ed", "1d\n" + head.format("src/index.ts")),
        ("text", "nothing"),
    ):
        (Path(workspace) / f"{name}.patch").write_text(content)
    for form in ("git apply {0}.patch", "git apply --check < {0}.patch", "patch -p1 < {0}.patch", "patch -p1 -i {0}.patch"):
        allowed = [name for name in ("good", "hook", "ci", "up", "link", "ed", "text", "none")
                   if judge(Call("Bash", form.format(name)), made).verdict is Verdict.ALLOW]  # fmt: skip
        assert allowed == ["good"], form
    for text in ("git apply", "patch -p1", "patch -d .. -i good.patch", "patch ../x good.patch", "cat good.patch | git apply"):
        assert judge(Call("Bash", text), made).verdict is not Verdict.ALLOW, text


def test_observe_allows_and_says_what_would_have_been() -> None:
    made = context(policy("observe"), PolicyDisk(), Standing.OPEN)
    found = observed(judge(Call("Bash", "sudo id"), made))
    assert found.verdict is Verdict.ALLOW and found.rule == "observe: would be denied" and "sudo" in found.reason
    assert observed(judge(Call("Bash", "make"), made)).rule == "observe: would be asked"
    assert observed(judge(Call("Bash", "ls"), made)).rule == "shell(ls:*)"


def test_strict_is_the_rules_of_an_instance_that_has_none() -> None:
    assert json.loads(policy_data.profile_rules("strict"))["permissions"] == json.loads(policy_data.default_rules())["permissions"]


def test_a_profile_that_is_not_understood_is_refused() -> None:
    with pytest.raises(UsageProblem, match="Profiles are strict, coding, observe"):
        policy_data.profile("../coding")
    with pytest.raises(UsageProblem, match="Fields are"):
        read_profile({"name": "x"})
    with pytest.raises(UsageProblem, match="no class"):
        read_profile({"name": "x", "title": "x", "why": "x", "permissions": {}, "denied": "sleeps"})
