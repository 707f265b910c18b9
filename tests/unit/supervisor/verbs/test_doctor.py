"""What doctor says of the sources: each looks once and says what it sees and stops."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from console.settings.options import Options
from console.settings.places import find_places
from console.sources.hook_settings import HookCommand, with_hook, written
from console.supervisor.installing import services
from console.supervisor.verbs import doctor


def test_each_source_says_what_it_sees_and_stops_and_where_it_looked(tmp_path: Path) -> None:
    (tmp_path / "home" / ".claude").mkdir(parents=True)
    (tmp_path / "home" / ".claude" / "sessions").write_text("no folder")
    places = find_places(str(tmp_path / "state"), create=True)
    said = doctor._sources(places, Options(discover_root=str(tmp_path / "home")))
    assert list(said) == [
        "source claude_code",
        "source codex",
        "source gemini",
        "source qwen",
        "source opencode",
        "source pi",
        "source aider",
        "source kilo",
        "source processes",
        "source otlp",
    ]
    assert all("Sees: " in words and "Stops: " in words and "Not " in words for words in said.values())
    assert "Not a directory" in said["source claude_code"] and said["source codex"].startswith("available: 0 seen now.")


def test_what_no_hook_can_hold_is_said_of_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    command = HookCommand("/usr/bin/python3", tmp_path / "hooks" / "watchfloor-hook.py", "claude-code", tmp_path / "hooks.sock", 600)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_bytes(written(with_hook({}, command, "f")))
    gone = f"not available, because every call is blocked, because its own file is gone: {command.hook}"
    assert doctor._hooks()["hook claude-code"].startswith(gone)
    command.hook.parent.mkdir()
    command.hook.touch()
    said = doctor._hooks()
    assert "the program goes on: not enforced in that case, because" in said["hook claude-code"]
    assert said["hook codex"].startswith("not available")


def test_a_user_reads_what_the_services_would_add(tmp_path: Path) -> None:
    assert services(tmp_path)[0] == "the package watchfloor-guard is not installed"
    assert "apt install ./watchfloor-guard_" in services(tmp_path)[1]
    assert "no agent can end it" in doctor._services() or doctor._services().startswith("available")
    unit = tmp_path / "lib" / "systemd" / "system" / "watchfloor-guard.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    why, how = services(tmp_path)
    assert why == "they were not started" and how.startswith("sudo systemctl enable --now watchfloor-guard")
    run = tmp_path / "var" / "lib" / "watchfloor" / "run"
    run.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as guard:
        guard.bind(str(run / "guard.sock"))
    assert services(tmp_path) == ("", "sudo usermod --append --groups watchfloor-operator $USER, then log in again")
