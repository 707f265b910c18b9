"""What agents spent, said by three who know: the program itself, a well-known reader of its files, and ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from console.settings.places import find_places
from tests.fakes.instance import Instance, until

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
PEERS = Path(sys.prefix) / "peers" / "node_modules"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of somebody who has used Claude Code and Codex: files that the real programs wrote."""
    made = tmp_path / "home"
    shutil.copytree(DATA / "claude-code" / "projects-tree", made / ".claude" / "projects")
    rollouts = made / ".codex" / "sessions" / "2026" / "11" / "21"
    rollouts.mkdir(parents=True)
    shutil.copy(DATA / "codex" / "rollout.jsonl", rollouts / "rollout-2026-11-21T20-33-01-01a1ffcf-dfdd-77a3-ace2-eaa2ca9f7954.jsonl")
    find_places(str(made / "state"), create=True)
    return made


def watchfloor(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC", "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "console", "cost", "--state-dir", str(home / "state"), "--home", str(home), *words]
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False)


def ccusage(home: Path) -> dict[str, Any]:
    programs = list(PEERS.glob("@ccusage/ccusage-linux-*/bin/ccusage"))
    assert programs, "ccusage is not there: packaging/test installs it"
    given = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "TZ": "UTC"}
    command = [str(programs[0]), "claude", "daily", "--json", "--offline"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=120, check=True)
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said


def test_all_three_say_the_same_to_the_last_digit(home: Path) -> None:
    text = next((home / ".claude").rglob("ca*.jsonl")).read_text()
    itself = next(json.loads(line) for line in text.splitlines() if '"cost-state"' in line)
    done = watchfloor(home, "--json")
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout)
    other = ccusage(home)["totals"]
    by_source = {row["source"]: row for row in ours["by_source"]}
    assert by_source["claude_code"]["cost_usd"] == itself["totalCostUSD"] == other["totalCost"] == 0.0706986
    assert by_source["claude_code"]["tokens"] == other["totalTokens"]
    assert by_source["codex"]["cost_usd"] == 0.005684
    assert ours["total_cost_usd"] == 0.0763826 and ours["unpriced"] == [] and ours["troubles"] == []


def test_a_person_reads_it_without_a_supervisor_and_the_second_time_nothing_is_read_again(home: Path) -> None:
    first = watchfloor(home)
    assert first.returncode == 0 and "$0.0764" in first.stdout and "by tree" in first.stdout and "genai-prices" in first.stdout
    for transcript in (home / ".claude").rglob("*.jsonl"):
        transcript.chmod(0o600)
    shutil.rmtree(home / ".claude" / "projects")  # swept by the program after some weeks
    assert watchfloor(home).stdout == first.stdout
    assert watchfloor(home, "--since", "tomorrow").returncode == 2


def test_what_sessions_spent_today_is_in_the_days_sum_though_none_of_them_runs_any_more(home: Path, state_dir: Path) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    message = {"id": "m1", "model": "claude-sonnet-4-5", "usage": {"output_tokens": 100_000}}
    line = json.dumps({"type": "assistant", "message": message, "timestamp": now, "sessionId": "over"})
    next((home / ".claude" / "projects").iterdir()).joinpath("over.jsonl").write_text(line + "\n")
    with Instance(state_dir, "--discover-root", str(home)) as it:
        until(lambda: it.api.fleet().spend_today_usd == 1.5, words="today's, and nothing of the days before")
        assert it.api.fleet().agents == []
        until(lambda: it.api.budgets().totals.spend_today_usd == 1.5, words="the Budgets page says the same")
