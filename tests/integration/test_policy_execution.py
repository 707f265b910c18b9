"""What is allowed runs as the argv that was judged, and nothing else runs: every execve of the process tree is on a trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from console.domain.calls.permission import Verdict
from console.policy.files.disk import Disk
from console.policy.review.expected_verdicts import read_table
from console.policy.rules.loading import read_settings
from console.policy.rules.verdicts import Judgement, Step
from tests.fakes.policy_world import DATA, context, told

HOSTILE = read_table((DATA / "hostile_shell.jsonl").read_bytes(), "hostile_shell.jsonl")
PLAIN_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
FORGED = (
    # argv that a shell would read otherwise: as arguments they are text
    "printf '%s' '$(touch ran)'",
    "echo '`touch ran`' '; touch ran' '| touch ran' '&& touch ran'",
    'echo "a\\$(touch ran)b"',
    "grep -e '$(touch ran)' a.txt",
    "echo 'x\ntouch ran'",
    "printf '%s' '-v' 'a[$(touch ran)]'",
    "cat -- a.txt '--help'",
    "echo \\$\\(touch ran\\)",
    "sed -n 's/x/$(touch ran)/p' a.txt",
    "awk '{print \"$(touch ran)\"}' a.txt",
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "w"
    for folder in ("data", "logs", ".git"):
        (made / folder).mkdir(parents=True)
    for name, text in (("a.txt", "x y\na:b\n"), ("b.txt", "x\n"), ("data/x.csv", "1,2\n"), ("logs/app.log", "x\n")):
        (made / name).write_text(text)
    (made / "inside").symlink_to("data")
    return made


def execute(found: Judgement, folder: Path) -> list[list[str]]:
    """Executes the steps as they were judged, under strace, and returns the argv of every execve that succeeded."""
    traced: list[list[str]] = []
    for number, step in enumerate(found.steps):
        if step.program:
            traced += _traced(step, folder / f"trace{number}")
    return traced


def _traced(step: Step, log: Path) -> list[list[str]]:
    inherited = {name: value for name, value in os.environ.items() if name == "WATCHFLOOR_TEST_SESSION"}
    subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-s",
            "10000",
            "-v",
            "-e",
            "trace=execve,execveat",
            "-e",
            "signal=none",
            "-o",
            str(log),
            "-E",
            "LC_ALL=C.UTF-8",
        ]
        + ["--", step.program, *step.argv[1:]],
        cwd=step.cwd,
        env={**PLAIN_ENV, **inherited, **dict(step.environment)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=150,
        check=False,
    )
    calls = []
    for line in log.read_text().splitlines():
        call = re.match(r'\d+ +execve(?:at)?\("((?:[^"\\]|\\.)*)", \[(.*?)\], \[.*\) = 0$', line)
        if call:
            calls.append([_plain(one) for one in re.findall(r'"((?:[^"\\]|\\.)*)"', call.group(2))])
        assert call or "= -1 " in line or "execve" not in line, line
    return calls


def _plain(word: str) -> str:
    """Undoes strace's escapes (octal, and as in C)."""
    text = re.sub(r"\\(?:([0-7]{1,3})|(.))", lambda m: chr(int(m[1], 8)) if m[1] else {"n": "\n", "t": "\t"}.get(m[2], m[2]), word)
    return text.encode("latin-1").decode()


def unwrapped(argv: list[str], step: Step) -> bool:
    """Whether an execve is the step's own, or what its wrapper (nice, timeout, env ...) runs: a tail of its words."""
    words = list(step.argv)
    return argv[1:] == words[1:] or any(argv == words[at:] for at in range(1, len(words)))


def test_nothing_else_runs(workspace: Path) -> None:
    assert shutil.which("strace"), "strace is not there: packaging/test installs it"
    rules = read_settings((DATA / "hostile_settings.json").read_bytes(), workspace=str(workspace))
    made = context(rules, Disk())
    ran = 0
    texts = [
        case.argument for case in HOSTILE if case.verdict is Verdict.ALLOW and not case.argument.startswith(("git clone", "wget", "pip"))
    ]
    for text in [*texts, *FORGED]:
        found = told(made, "shell", text)
        if found.verdict is not Verdict.ALLOW:
            assert text not in FORGED, (text, found.reason)
            continue  # a file that this workspace has not
        log = workspace.parent / f"run{ran}"
        log.mkdir()
        calls = execute(found, log)
        steps = [step for step in found.steps if step.program]
        assert calls or not steps, text
        for argv in calls:
            assert any(unwrapped(argv, step) for step in steps), (text, argv)
        assert not (workspace / "ran").exists(), text
        ran += 1
    assert ran >= 60


def test_the_trace_sees_what_runs_besides(workspace: Path) -> None:
    """The control: a program that starts another is on the trace as such."""
    step = Step(("sh", "-c", "true; /usr/bin/touch ran"), "/bin/sh", str(workspace))
    calls = _traced(step, workspace.parent / "trace")
    assert ["/usr/bin/touch", "ran"] in calls and (workspace / "ran").exists()
    assert not all(unwrapped(argv, step) for argv in calls)
