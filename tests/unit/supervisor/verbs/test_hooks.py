"""``hooks list`` and ``hooks remove``: every hook of an account is named and taken out, and nothing else in those files changes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError, NotFound, UsageProblem
from console.settings.places import Places
from console.supervisor.verbs import hooks as verb
from console.supervisor.verbs import install_hook
from console.wording.agent_kinds import PLACES

OWN = '{"model":   "opus"}'


@pytest.fixture
def home(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every program's hook is installed; one program had settings before."""
    made = tmp_path / "home"
    (made / ".claude").mkdir(parents=True)
    (made / PLACES["claude-code"]).write_text(OWN)
    monkeypatch.setenv("HOME", str(made))
    for program in PLACES:
        parser = argparse.ArgumentParser()
        parser.add_argument("--json", action="store_true")
        install_hook.install_arguments(parser)
        assert install_hook.install_hook(places, parser.parse_args([program, "--yes"])) == 0
    return made


def run(places: Places | None, *words: str) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    verb.hooks_arguments(parser)
    return verb.hooks(places, parser.parse_args(list(words)))


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert run(None, "list", "--json") == 0
    return {one["program"]: one["file"] for one in json.loads(capsys.readouterr().out)["hooks"] if not one["why_unknown"]}


def test_all_are_listed_and_taken_out_to_the_byte(places: Places, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys) == {program: str(home / place) for program, place in PLACES.items()}
    assert run(places, "remove", "--mine") == 0
    assert (home / PLACES["claude-code"]).read_text() == OWN and not (home / PLACES["codex"]).exists()
    assert listed(capsys) == {}
    with pytest.raises(NotFound):
        run(places, "remove", "--mine")


def test_a_file_that_cannot_be_changed_is_named_and_the_others_are_taken_out(
    places: Places, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = str(home / PLACES["gemini"])

    def write(file: Path, before: bytes, after: bytes) -> None:
        if str(file) == stuck:
            raise ConsoleError(f"{file} cannot be written: Read-only file system.")
        install_hook.write_settings(file, before, after)

    monkeypatch.setattr(verb, "write_settings", write)
    with pytest.raises(ConsoleError, match="1 hooks are still there.*gemini.*Read-only"):
        run(places, "remove", "--mine")
    assert listed(capsys) == {"gemini": stuck}


def test_hostile_settings_are_named_as_not_known_and_others_hooks_are_not_touched(
    places: Places, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / PLACES["codex"]).write_bytes(b"[" * 100_000)
    (home / PLACES["qwen"]).unlink()
    (home / PLACES["qwen"]).symlink_to("/etc/passwd")
    assert set(listed(capsys)) == set(PLACES) - {"codex", "qwen"}
    assert run(None, "list") == 0
    told = capsys.readouterr().out
    assert told.count("(not known: ") == 2 and "codex" in told and "qwen" in told, "what cannot be understood may hold a hook"
    with pytest.raises(ConsoleError, match="2 hooks are still there"):
        run(places, "remove", "--mine")
    for words in (("remove",), ("remove", "--all"), ("remove", "--mine", "--all")):
        with pytest.raises(UsageProblem):
            run(places, *words)
