"""What ``watchfloor cost`` prints and answers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from console.domain.errors import UsageProblem
from console.settings.options import save_options
from console.settings.places import find_places
from console.supervisor.verbs.cost import cost, cost_arguments

pytestmark = pytest.mark.usefixtures("midnight_is_utc")


def given(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    cost_arguments(parser)
    return parser.parse_args(words)


def run(tmp_path: Path, *words: str) -> int:
    return cost(find_places(str(tmp_path / "state"), create=True), given(*words))


def made(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "home" / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_text(text)
    return tmp_path / "home"


def test_before_there_is_an_instance_it_reads_and_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = made(tmp_path, line("a", "claude-sonnet-4-5"))
    before = sorted(tmp_path.rglob("*"))
    assert cost(None, given("--home", str(home), "--json")) == 0
    assert json.loads(capsys.readouterr().out)["total_cost_usd"] == 0.0015
    assert sorted(tmp_path.rglob("*")) == before


def line(answer_id: str, model: str, **more: object) -> str:
    message = {"id": answer_id, "model": model, "usage": {"output_tokens": 100}}
    return json.dumps({"type": "assistant", "timestamp": "2026-11-21T12:00:00Z", "message": message} | more) + "\n"


def test_the_object_has_the_keys_that_programs_rely_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = made(tmp_path, line("a", "claude-sonnet-4-5") + line("b", "brand-new-model") + '{broken "output_tokens"\n')
    assert run(tmp_path, "--home", str(home), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["schema_version"] == 1 and said["total_cost_usd"] == 0.0015
    assert [d["day"] for d in said["by_day"]] == ["2026-11-21"] and said["by_tree"][0]["session"] == "s"
    assert said["unpriced"] == [{"model": "brand-new-model", "answers": 1, "tokens": 100}]
    assert said["prices"][0].startswith("genai-prices ") and "could not be read" in said["troubles"][0]


def test_people_read_sums_and_what_is_not_in_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = made(tmp_path, line("a", "claude-sonnet-4-5", cwd="/p\u202e\x1b]0;x") + line("b", "brand-new-model"))
    run(tmp_path, "--home", str(home))
    said = capsys.readouterr().out
    assert "$0.0015" in said and "Not priced, so not in the sums: brand-new-model, 1 answers" in said and "(+ 1 unpriced)" in said
    assert "\x1b" not in said and "\u202e" not in said


def test_days_bound_the_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = made(tmp_path, line("a", "claude-sonnet-4-5"))
    for words, total in (((), 0.0015), (("--since", "2026-11-23"), 0), (("--until", "2026-11-23"), 0.0015), (("--until", "2026-11-19"), 0)):
        run(tmp_path, "--home", str(home), "--json", *words)
        assert json.loads(capsys.readouterr().out)["total_cost_usd"] == total


def test_nothing_spent_says_where_it_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "empty"
    home.mkdir()
    assert run(tmp_path, "--home", str(home)) == 0
    said = capsys.readouterr().out
    assert "Nothing was spent" in said and f"{home}/.claude/projects" in said


def test_an_instance_beside_the_default_one_counts_nobody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path, line("a", "claude-sonnet-4-5"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    assert run(tmp_path) == 0
    said = capsys.readouterr().out
    assert "Nothing was spent" in said and "agents of this instance only" in said and "--home DIR" in said
    save_options(tmp_path / "state" / "settings.json", {"discover_root": str(home)})
    assert run(tmp_path) == 0 and "$0.0015" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ("--since", "yesterday"),
        ("--until", "2026-13-01"),
        ("--until", "9999-12-31"),
        ("--home", "/no/such/folder"),
        ("--since=2026-11-22", "--until=2026-11-21"),
    ],
)
def test_bad_words_are_refused(tmp_path: Path, words: tuple[str, str]) -> None:
    with pytest.raises(UsageProblem):
        run(tmp_path, *words)


def test_two_homes_have_sums_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = made(tmp_path, line("a", "claude-sonnet-4-5"))
    run(tmp_path, "--home", str(home), "--json")
    other = tmp_path / "other"
    other.mkdir()
    capsys.readouterr()
    run(tmp_path, "--home", str(other), "--json")
    assert json.loads(capsys.readouterr().out)["total_cost_usd"] == 0


def test_what_agents_that_were_started_here_spent_is_among_it_and_old_days_are_said_to_be_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setattr("console.sources.home_dirs.pwd.getpwall", list)
    places = find_places(str(tmp_path / "state"), create=True)
    folder = places.workspaces_dir / "ctx-1" / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_text(line("a", "claude-sonnet-4-5") + line("b", "claude-sonnet-4-5").replace("2026-11-21", "2025-01-02"))
    run(tmp_path, "--json")
    said = json.loads(capsys.readouterr().out)
    assert said["total_cost_usd"] == 0.003 and said["sums_before"] > "2025-01-02" and said["late_answers"] == 0
    (folder / "t.jsonl").write_text(line("c", "claude-sonnet-4-5").replace("2026-11-21", "2025-01-02"))
    run(tmp_path)
    assert "are kept as sums; 1 answers read of them only now are not counted" in capsys.readouterr().out
