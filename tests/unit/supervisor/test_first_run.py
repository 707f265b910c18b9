"""What is told before the first agent: only what was seen is ticked, and a hook's diff is shown without a byte being written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from console.api.armed import ArmedView, PathView
from console.api.policy import policy_data
from console.api.policy.hooks import HooksView, ProgramHook
from console.domain.errors import NotFound, UsageProblem
from console.policy.rules.last_good import Kept
from console.services.hooks.installation import LINES_MAX, SHOWN_MAX, command_for, preview, put_hook
from console.services.policy.service import PolicyDesk
from console.settings.options import Options
from console.settings.places import Places
from console.sources.hook_settings import with_hook
from console.supervisor.first_run import NEVER, FirstLook, defaults, found_programs, hook_look
from console.wording.agent_kinds import PLACES


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    (made / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(made))
    return made


def heard(calls: int) -> ProgramHook:
    return ProgramHook(program="claude-code", calls=calls, last_at=9.0)


def test_a_hook_is_ticked_only_once_it_was_heard(places: Places, home: Path) -> None:
    assert hook_look("codex", home, None).state == "no_program"
    assert hook_look("claude-code", home, None).state == "not_installed"
    # Calls of what was started here reach us too: they say nothing about this user's settings.
    assert hook_look("claude-code", home, heard(4)).state == "not_installed"
    file = home / ".claude" / "settings.json"
    file.write_text(json.dumps(with_hook({}, command_for(places, "claude-code"), "x")))
    broken = hook_look("claude-code", home, heard(4))
    assert (broken.state, broken.available) == ("broken", False) and "its own file is gone" in broken.watching
    put_hook(places)
    silent = hook_look("claude-code", home, None)
    assert (silent.state, silent.available, silent.watching) == ("installed", False, NEVER)
    loud = hook_look("claude-code", home, heard(1))
    assert (loud.state, loud.available, loud.watching) == ("heard", True, "1 call")
    assert loud.looks_in == ["~/.claude/settings.json"]


def test_a_settings_file_that_cannot_be_read_is_doubt(home: Path, tmp_path: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.write_text("{")
    assert hook_look("claude-code", home, heard(3)).state == "unreadable"
    file.write_text("{" + " " * SHOWN_MAX + "}")
    assert hook_look("claude-code", home, heard(3)).state == "unreadable"
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert hook_look("claude-code", home, heard(3)).state == "unreadable"


def test_the_diff_of_a_hook_is_shown_and_nothing_is_written(places: Places, home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.write_bytes(b'{"model": "x\\u001b"}')
    told = preview(places, "claude-code")
    assert told.changed and told.file == str(file) and any(line.startswith("+") and "watchfloor-hook.py" in line for line in told.diff)
    assert all(line.isprintable() for line in told.diff) and told.gaps
    assert file.read_bytes() == b'{"model": "x\\u001b"}' and list(file.parent.iterdir()) == [file] and not places.hooks_dir.exists()
    file.write_text("[]")
    with pytest.raises(UsageProblem):
        preview(places, "claude-code")
    # Whoever may write this file may be an agent: it cannot keep the supervisor busy with comparing.
    for much in ("{" + " " * SHOWN_MAX + "}", json.dumps({"a": list(range(LINES_MAX))})):
        file.write_text(much)
        with pytest.raises(UsageProblem):
            preview(places, "claude-code")
    with pytest.raises(NotFound):
        preview(places, "../x")


def test_what_holds_is_what_the_settings_say(places: Places) -> None:
    good = PolicyDesk(places, lambda _text: None, policy_data.dangers, lambda _agent_id: None).kept
    usual = {d.name: d for d in defaults(Options(), good)}
    assert usual["Network"].words == "FULL; stricter with private data" and usual["Network"].amber
    assert usual["Cost"].words == "no limit is set" and usual["Cost"].amber
    assert usual["Unknown tool call"].words == "asks you" and usual["Approvals"].words == "denied by themselves in 10 min"
    assert usual["Depth and children"].words == "3 levels, 6 each"
    set_ = Options.read(
        {"budgets": {"agent": {"cost": 5}, "day": {"cost": 20}}, "network": {"modes": {"PUBLIC": "PROXIED", "INTERNAL": "PROXIED"}}}
    )
    told = {d.name: d for d in defaults(set_, Kept(problem="it is no JSON"))}
    assert told["Cost"].words == "$5.00 an agent, $20.00 a day" and not told["Cost"].amber
    assert told["Network"].words == "PROXIED; stricter with private data" and not told["Network"].amber
    assert told["Unknown tool call"].words == "denied, as every call: it is no JSON"


@pytest.mark.parametrize(
    ("state", "words", "amber"),
    [
        ("set", "takes your passphrase", False),
        ("not_set", "no passphrase set", True),
        ("broken", "cannot be checked", True),
        ("unknown", "not known yet", True),
    ],
)
async def test_before_the_first_kill_it_is_said_what_a_rearm_takes(places: Places, home: Path, state: str, words: str, amber: bool) -> None:
    armed = ArmedView(state="armed", paths=[])
    look = FirstLook(places, Options(), rules=Kept, heard=HooksView, armed=lambda: armed, sockets=lambda: 0, passphrase=lambda: state)
    told = {d.name: d for d in (await look.view()).defaults}["Rearm after a kill"]
    assert words in told.words and told.amber is amber


@pytest.mark.parametrize("state", ["proven", "in_doubt", "not_configured", "unavailable"])
async def test_the_kill_file_is_as_the_armed_light_says(places: Places, tmp_path: Path, home: Path, state: str) -> None:
    places = replace(places, run_dir=tmp_path / "run")
    places.agents_dir.mkdir(parents=True)
    path = PathView.read({"name": "remote", "state": state, "detail": "why"})

    def look(paths: list[PathView]) -> FirstLook:
        armed = ArmedView(state="in_doubt", paths=paths)
        return FirstLook(places, Options(), rules=Kept, heard=HooksView, armed=lambda: armed, sockets=lambda: 3)

    looks = {one.source: one for one in (await look([path]).view()).looks}
    assert list(looks) == ["agent_sockets", *(f"hook_{one}" for one in PLACES), "remote_file"]
    assert (looks["remote_file"].state, looks["remote_file"].available) == (state, state == "proven")
    assert (looks["agent_sockets"].state, looks["agent_sockets"].watching) == ("ready", "3 open")
    assert {one.source: one.state for one in (await look([]).view()).looks}["remote_file"] == "unknown", "nobody knows: never a tick"


def test_programs_are_found_by_their_file_or_by_what_they_wrote(tmp_path: Path) -> None:
    home, tools = tmp_path / "home", tmp_path / "tools"
    (home / ".claude").mkdir(parents=True)
    tools.mkdir()
    (tools / "goose").symlink_to("/bin/true")
    (home / ".npm-global" / "bin").mkdir(parents=True)
    (home / ".npm-global" / "bin" / "codex").write_text("")
    found = {one.kind: one for one in found_programs(home, f"relative:{tools}")}
    assert found["goose"].path == str(tools / "goose") and not found["goose"].source
    assert (found["claude-code"].path, found["claude-code"].source) == ("", "claude_code")
    assert found["claude-code"].wrote.endswith("/.claude") and found["codex"].path.endswith(".npm-global/bin/codex")
    assert "opencode" not in found and "gemini" not in found
