"""The verb: diff, record first, undo to the byte, and what it refuses."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, UsageProblem
from console.domain.process import durable
from console.services.hooks import installation
from console.services.hooks.installation import HOOK_FILE, SOURCE
from console.settings.places import Places
from console.sources.hook_settings import installed
from console.supervisor.verbs import install_hook as verb

OWN = b'{"permissions":{"allow":["Bash(ls *)"]},   "hooks":{}}'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "settings.json"
    made.parent.mkdir()
    made.write_bytes(OWN)
    made.chmod(0o640)
    return made


def run(places: Places, file: Path, *flags: str, program: str = "claude-code") -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    verb.install_arguments(parser)
    return verb.install_hook(places, parser.parse_args([program, f"--settings={file}", *flags]))


@pytest.mark.parametrize("typed", ["", "\n", "n\n", "yes please\n"])
def test_any_answer_but_yes_and_the_end_of_input_change_nothing(
    places: Places, file: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    with pytest.raises(Conflict, match=r"Nothing was changed\."):
        run(places, file)
    assert file.read_bytes() == OWN
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert run(places, file) == 0 and file.read_bytes() != OWN


def test_in_and_out_again_to_the_byte(places: Places, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(places, file, "--check") == 1
    assert run(places, file, "--dry-run") == 0 and file.read_bytes() == OWN
    assert run(places, file, "--yes") == 0 and run(places, file, "--check") == 0
    settings = json.loads(file.read_bytes())
    assert str(places.hooks_sock) in installed(settings, "f") and file.stat().st_mode & 0o777 == 0o640
    assert (places.hooks_dir / HOOK_FILE).read_bytes() == SOURCE.read_bytes()
    told = capsys.readouterr().out
    assert "+" in told and "the program goes on: not enforced in that case, because" in told
    assert run(places, file, "--undo", "--yes") == 0 and file.read_bytes() == OWN


@pytest.mark.parametrize(("program", "name"), [("claude-code", "settings.json"), ("opencode", "plugin/watchfloor.js")])
def test_a_hook_whose_files_are_gone_is_told_and_installed_again(
    places: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, program: str, name: str
) -> None:
    file, gone = tmp_path / "home of mine" / name, tmp_path / "old venv" / "bin" / "python"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(gone))
        assert run(places, file, "--yes", program=program) == 0
    capsys.readouterr()
    assert run(places, file, "--check", program=program) == 1
    said = capsys.readouterr().out
    assert f"every call is blocked, because the Python of its command is gone: {gone}" in said
    assert f"Install it again: watchfloor install-hook {program}" in said
    assert run(places, file, "--yes", program=program) == 0 and run(places, file, "--check", program=program) == 0
    (places.hooks_dir / HOOK_FILE).unlink()
    capsys.readouterr()
    assert run(places, file, "--check", program=program) == 1 and "its own file is gone" in capsys.readouterr().out
    assert run(places, file, "--yes", program=program) == 0 and run(places, file, "--check", program=program) == 0


def test_a_hook_goes_on_when_the_virtual_environment_is_moved(
    places: Places, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python3").symlink_to(os.path.relpath(os.path.realpath(sys.executable), venv / "bin"))
    (venv / "bin" / "python").symlink_to("python3")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "prefix", str(venv))
        patch.setattr(sys, "executable", str(venv / "bin" / "python"))
        run(places, file, "--yes")
    venv.rename(tmp_path / "moved")
    command = installed(json.loads(file.read_bytes()), "f")
    done = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, timeout=60, check=False)
    assert done.returncode == 2 and done.stderr.startswith(b"Watchfloor: "), "the hook itself has judged it"
    assert run(places, file, "--check") == 0


def test_what_was_changed_since_is_kept_when_it_comes_out(places: Places, file: Path) -> None:
    run(places, file, "--yes")
    settings = json.loads(file.read_bytes())
    settings["model"] = "mine"
    file.write_text(json.dumps(settings))
    run(places, file, "--undo", "--yes")
    assert json.loads(file.read_bytes()) == {"permissions": {"allow": ["Bash(ls *)"]}, "model": "mine"}


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(places: Places, tmp_path: Path) -> None:
    file = tmp_path / "new" / ".codex" / "hooks.json"
    run(places, file, "--yes", program="codex")
    assert file.stat().st_mode & 0o777 == 0o600 and "codex" in installed(json.loads(file.read_bytes()), "f")


@pytest.mark.parametrize(("program", "name"), [("qwen", "settings.json"), ("opencode", "plugin/watchfloor.js")])
def test_a_file_that_we_made_is_gone_when_the_hook_comes_out(places: Places, tmp_path: Path, program: str, name: str) -> None:
    file = tmp_path / "new" / name
    assert run(places, file, "--yes", program=program) == 0 and run(places, file, "--check", program=program) == 0
    assert run(places, file, "--undo", "--yes", program=program) == 0 and not file.exists()


def test_without_a_record_nothing_is_changed(places: Places, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = durable.replace_file

    def full(path: Path, data: bytes, mode: int = 0o600) -> None:
        if path.name.startswith("record-"):
            raise OSError(28, "No space left on device")
        real(path, data, mode)

    monkeypatch.setattr(verb, "replace_file", full)
    with pytest.raises(ConsoleError, match="No rollback record"):
        run(places, file, "--yes")
    assert file.read_bytes() == OWN


def test_a_change_in_between_is_not_overwritten(places: Places, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "keep_record", lambda *_: file.write_bytes(b'{"other": 1}'))
    with pytest.raises(Conflict):
        run(places, file, "--yes")
    assert file.read_bytes() == b'{"other": 1}'


def test_what_is_refused(places: Places, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    with pytest.raises(UsageProblem, match="is a link"):
        run(places, link, "--yes")
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)
    with pytest.raises(ConsoleError):
        run(places, fifo, "--yes")
    with pytest.raises(NotFound):
        run(places, file, "--undo", "--yes")
    with pytest.raises(UsageProblem, match="a confirmation needs a terminal"):
        run(places, file, "--json")
    file.write_bytes(b"{")
    with pytest.raises(UsageProblem, match="not JSON"):
        run(places, file, "--yes")
    file.write_bytes(OWN)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    found: Any = type("F", (), {"data": OWN, "uid": 0, "whole": True})()
    monkeypatch.setattr(installation, "read_foreign", lambda *_: type("F", (), {"data": OWN, "uid": 7, "whole": True})())
    with pytest.raises(Denied):
        run(places, file, "--yes")
    monkeypatch.setattr(installation, "read_foreign", lambda *_: found)
    assert run(places, file, "--check") == 1
