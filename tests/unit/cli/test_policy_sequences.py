"""The forbidden sequences on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.cli.main import main
from console.settings.places import find_places

STEPS = '[{name: a, any: [{action: read}]}, {name: b, any: [{tools: ["x*"]}]}]'
OWN = f"watchfloor_sequences: 1\npatterns: [{{name: mine, why: w, steps: {STEPS}}}]\n"


def test_built_in_and_own_ones_are_shown_and_a_broken_file_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(OWN)
    assert main(["policy", "sequences", "--file", str(file)]) == 0
    told = capsys.readouterr().out
    assert "credential-then-network (built in, network NONE if PROXIED with the first step)" in told and "mine (own): w" in told
    assert main(["policy", "sequences", "--file", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["patterns"][-1]["steps"][1] == {"name": "b", "any": [{"tools": ["x*"]}]}
    file.write_text("watchfloor_sequences: 2\n")
    assert main(["policy", "sequences", "--file", str(file)]) == 1
    assert "no sequences" in capsys.readouterr().out
    assert main(["policy", "sequences", "--file", str(tmp_path / "none")]) != 0
    assert main(["policy", "sequences", "--state-dir", str(tmp_path / "nobody")]) == 0


def test_what_the_supervisor_would_deny_by_is_what_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = find_places(str(tmp_path / "s"), create=True)
    (places.state_dir / "sequences.yaml").write_text("")
    assert main(["policy", "sequences", "--state-dir", str(places.state_dir)]) == 1
    assert "nothing is allowed" in capsys.readouterr().out
    (places.state_dir / ".sequences-last-good.yaml").write_text(OWN)
    assert main(["policy", "sequences", "--state-dir", str(places.state_dir)]) == 1
    assert "mine (own)" in capsys.readouterr().out
    (places.state_dir / "sequences.yaml").unlink()
    assert main(["policy", "sequences", "--state-dir", str(places.state_dir)]) == 1
    told = capsys.readouterr().out
    assert "mine (own)" in told and "it is gone" in told, "what a file said that is gone stays in force"
    (places.state_dir / ".sequences-last-good.yaml").write_text("")
    assert main(["policy", "sequences", "--state-dir", str(places.state_dir)]) == 1
    assert "nothing is allowed" in capsys.readouterr().out
