"""The guard of the host's own instance: its id is made once, its settings are heard, and broken ones do not keep it from starting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.killswitch import service
from console.killswitch.__main__ import _parser
from console.settings.places import find_places


def test_the_first_start_makes_the_instance_that_the_supervisor_finds(tmp_path: Path) -> None:
    named = service.instance(tmp_path)
    assert service.instance(tmp_path) == named
    places = find_places(str(tmp_path), create=False)
    assert places is not None and places.instance_id == named
    assert sorted(f.name for f in tmp_path.iterdir()) == ["instance.json"]


def test_the_settings_reach_the_guard(tmp_path: Path) -> None:
    kept = {
        "engine_socket": "/run/other.sock",
        "heartbeat_s": 12.5,
        "kill": {"return_watch_s": 30},
        "remote": {"bucket": "b"},
        "agents": {"uid": 1234},
    }
    (tmp_path / "settings.json").write_text(json.dumps(kept))
    words = service.arguments(tmp_path)
    wanted = {
        "--engine-socket=/run/other.sock",
        "--heartbeat-s=12.5",
        "--return-watch-s=30",
        "--lease",
        f"--run-dir={tmp_path}/run",
        "--agents-uid=1234",
    }
    assert wanted <= set(words)
    assert _parser().parse_args(words).orphan_s == float("inf")


def test_what_was_in_force_counts_more_than_the_accounts_file(tmp_path: Path) -> None:
    """The supervisor joins the administrator's files with it; the guard, of the standard library alone, reads what came of that."""
    (tmp_path / "settings.json").write_text('{"heartbeat_s": 99}')
    (tmp_path / "settings-in-force.json").write_text('{"heartbeat_s": 12.5}')
    assert "--heartbeat-s=12.5" in service.arguments(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"heartbeat_s": "soon", "kill": 3, "remote": [], "agents": {"uid": true}}', "\x00"])
def test_broken_settings_leave_a_guard_with_its_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    words = service.arguments(tmp_path)
    assert not [w for w in words if w.startswith(("--heartbeat", "--return-watch", "--lease", "--agents-uid"))]
    _parser().parse_args(words)


@pytest.mark.parametrize("text", ["", "{}", '{"instance_id": "../../etc"}', '{"instance_id": 5}'])
def test_a_damaged_instance_file_is_no_new_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "instance.json").write_text(text)
    monkeypatch.setattr(service, "STATE_DIR", tmp_path)
    assert service.main() == 1
    assert "instance.json" in capsys.readouterr().err
    assert (tmp_path / "instance.json").read_text() == text
