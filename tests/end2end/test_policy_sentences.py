"""What somebody does who writes a policy: nothing runs, no supervisor, no instance; the answer is on the terminal and in the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEED = ROOT / "tests" / "data" / "policy" / "settings.json"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("x\n")
    (tmp_path / "w" / "leak").symlink_to("/etc/shadow")
    return tmp_path


def watchfloor(desk: Path, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    given = {"HOME": str(desk), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "console", "policy", *words]
    return subprocess.run(command, cwd=ROOT, env=given, input=stdin, capture_output=True, timeout=120, check=False)


def test_a_policy_from_the_documents_is_linted_mended_and_tested(desk: Path) -> None:
    """It loads; five rules are refused with what they swallow; marked, they are notes; the table of expected verdicts holds."""
    linted = watchfloor(desk, "lint", str(SEED))
    assert (
        linted.returncode == 1
        and b"shell(bash:*): bash runs whatever it is given" in linted.stdout
        and b"swallows 16 deny rules" in linted.stdout
    )
    asked = watchfloor(desk, "check", "--settings", str(SEED), "--workspace", str(desk / "w"), "shell", "python3 a.py")
    assert asked.returncode == 5 and asked.stdout.startswith(b"ask: shell(python3:*)")
    mended = json.loads(SEED.read_text())
    mended["permissions"]["unconfined"] = [f"shell({name}:*)" for name in ("python", "python3", "sh", "bash", "find")]
    (desk / "mine.json").write_text(json.dumps(mended))
    assert watchfloor(desk, "lint", str(desk / "mine.json")).returncode == 0
    allowed = watchfloor(desk, "check", "--settings", str(desk / "mine.json"), "--workspace", str(desk / "w"), "shell", "python3 a.py")
    assert allowed.returncode == 0
    table = ROOT / "tests" / "data" / "policy" / "settings_verdicts.json"
    tested = watchfloor(desk, "test", str(table), "--settings", str(SEED), "--workspace", str(desk / "w"))
    assert b"46 cases, 1 answered otherwise" in tested.stdout, "one of them is about a workspace in /workspace"


def test_a_batch_from_a_program_is_answered_line_by_line_and_what_is_broken_is_denied(desk: Path) -> None:
    calls = [("shell", "cat a.txt"), ("shell", "cat leak"), ("shell", "echo \u202ex"), ("read_file", "a.txt"), ("shell", "x" * 100_000)]
    lines = b"\n".join(json.dumps({"tool": tool, "argument": argument}).encode() for tool, argument in calls) + b"\n\xff\n"
    done = watchfloor(desk, "check", "--settings", str(SEED), "--workspace", str(desk / "w"), "--batch", "-", stdin=lines)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["verdict"] for line in done.stdout.splitlines()] == ["allow", "deny", "deny", "allow", "deny", "deny"]
    assert list(desk.iterdir()) == [desk / "w"], "it leaves nothing behind"
