"""Which program file may be started: fixed places, never one that an agent could change or that lies where agents write."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.errors import Unavailable
from console.domain.process.asked import ASKED
from console.sandbox import programs
from console.sandbox.programs import Found, find, version
from console.sources.kinds import STARTS
from tests.fakes.terminal import until

ELSE = 54321
"""A uid that is nobody's here."""
CLAUDE = replace(STARTS["claude-code"], usual=("/nonexistent/claude",))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "bin" / "claude"
    made.parent.mkdir(mode=0o755)
    made.write_text("#!/bin/sh\necho '9.8.7 (Claude Code)'\n")
    made.chmod(0o755)
    return made


def found(named: str, home: Path, uid: int = ELSE, never_in: tuple[Path, ...] = ()) -> Found:
    return find(CLAUDE, named, home, uid, ELSE, never_in)


def why(named: str, home: Path, uid: int = ELSE, never_in: tuple[Path, ...] = ()) -> str:
    with pytest.raises(Unavailable) as refused:
        found(named, home, uid, never_in)
    return refused.value.what


def test_a_named_file_is_taken_through_its_links(program: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(program)
    assert found(str(link), tmp_path).path == program.resolve()
    real = program.resolve()
    assert found(str(link), tmp_path).binds(in_box=True) == ((real, "/opt/watchfloor-programs/claude"),)
    assert found(str(link), tmp_path).binds(in_box=False) == ((real, str(real)),)


def test_a_script_is_not_run_for_its_version(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    folder.mkdir()
    script = folder / "one.js"
    script.write_text("#!/bin/sh\necho 9.9.9\n")
    script.chmod(0o755)
    package = tmp_path / "package.json"
    package.write_text('{"version": "0.61.0"}')
    one = Found("gemini", script, needs=(folder,))
    assert version(one, os.geteuid(), os.getegid(), may_ask=True) == "0.61.0"
    script.touch()
    package.write_text('["broken"]')
    assert version(one, os.geteuid(), os.getegid(), may_ask=True) == "9.9.9"


def test_a_script_is_shown_with_its_folder_and_with_what_runs_it() -> None:
    folder, node = Path("/opt/one/bundle"), Path("/opt/node")
    one = Found("gemini", folder / "gemini.js", needs=(folder, node))
    assert one.binds(in_box=False) == ((folder, str(folder)), (node, str(node)))
    assert one.binds(in_box=True) == ((folder, "/opt/watchfloor-programs"),)


def test_without_a_name_it_is_looked_for_as_it_is_installed_and_relative_folders_of_path_never(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    assert "/nonexistent/claude: not there" in why("", tmp_path)
    (tmp_path / ".local" / "bin").mkdir(parents=True)
    (tmp_path / ".local" / "bin" / "claude").symlink_to(program)
    assert found("", tmp_path).path == program.resolve()


def test_it_is_found_on_path_and_where_package_managers_put_it(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable):
        find(CLAUDE, "", tmp_path, ELSE, ELSE, (), "bin:.:")
    assert find(CLAUDE, "", tmp_path, ELSE, ELSE, (), f"/nowhere:{program.parent}").path == program.resolve()
    for folder in (".bun/bin", ".npm-global/bin", ".local/share/pnpm", ".nvm/versions/node/v22.1.0/bin"):
        there = tmp_path / folder
        there.mkdir(parents=True)
        (there / "claude").symlink_to(program)
        assert find(CLAUDE, "", tmp_path, ELSE, ELSE, ()).path == program.resolve(), folder
        shutil.rmtree(there)


def test_what_an_agent_could_change_is_refused_and_said(program: Path, tmp_path: Path) -> None:
    program.chmod(0o757)
    assert f"uid {ELSE} may write {program.resolve()}" in why(str(program), tmp_path)
    program.chmod(0o755)
    program.parent.chmod(0o777)
    assert f"may write {program.parent.resolve()}" in why(str(program), tmp_path)
    program.parent.chmod(0o1777)  # sticky: nobody can put another in its place
    assert found(str(program), tmp_path).note == ""


def test_with_the_operators_own_rights_it_is_taken_and_said(program: Path, tmp_path: Path) -> None:
    assert "best effort" in found(str(program), tmp_path, uid=os.geteuid()).note


def test_never_where_agents_write_nor_what_is_no_program(program: Path, tmp_path: Path) -> None:
    assert "where agents write" in why(str(program), tmp_path, never_in=(tmp_path,))
    program.chmod(0o644)
    assert "no program" in why(str(program), tmp_path)
    assert "no program" in why(str(program.parent), tmp_path)
    assert "not absolute" in why("claude", tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "Too many levels" in why(str(loop), tmp_path)


def test_npms_script_leads_to_the_program_beside_it(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "@openai" / "codex"
    script = package / "bin" / "codex.js"
    real = package.parent / "codex-linux-x64" / "vendor" / "x" / "bin" / "codex"
    for file in (script, real):
        file.parent.mkdir(parents=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    assert find(STARTS["codex"], str(script), tmp_path, ELSE, ELSE, ()).path == real.resolve()
    real.unlink()
    with pytest.raises(Unavailable, match="not beside it"):
        find(STARTS["codex"], str(script), tmp_path, ELSE, ELSE, ())


def test_the_version_is_what_it_says_and_asked_once(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as folder:  # one that another user may enter
        Path(folder).chmod(0o711)
        _ask_for_it(Path(shutil.copy(program, folder)), monkeypatch)


def test_while_it_is_asked_its_process_is_known_as_our_own(tmp_path: Path) -> None:
    slow, note = tmp_path / "slow", tmp_path / "note"
    slow.write_text(f"#!/bin/sh\necho $$ > {note}\nsleep 1\necho 1.2.3\n")
    slow.chmod(0o755)
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(programs._asked, slow, str(tmp_path), (None, None))
        until(lambda: note.exists() and note.read_text().endswith("\n"))
        assert {int(note.read_text())} == ASKED
        assert told.result() == "1.2.3" and not ASKED


def test_a_program_that_says_no_end_is_read_to_a_bound_and_ended(tmp_path: Path) -> None:
    endless, note = tmp_path / "endless", tmp_path / "note"
    endless.write_text(f"#!/bin/sh\necho $$ > {note}\nyes 1.2.3 &\nexec yes 4.5.6\n")
    endless.chmod(0o755)
    began = time.monotonic()
    assert programs._asked(endless, str(tmp_path), (None, None)) in ("1.2.3", "4.5.6")
    assert time.monotonic() - began < programs.VERSION_S
    assert not Path(f"/proc/{note.read_text().strip()}").exists()


def _ask_for_it(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Found(CLAUDE.name, program)
    assert version(one, ELSE, ELSE, may_ask=False) == "unknown", "no program runs while everything is stopped"
    assert version(one, os.geteuid() or ELSE, os.getegid() or ELSE, may_ask=True) == "9.8.7"
    monkeypatch.setattr(programs, "_ask", lambda *_: "again")
    assert version(one, ELSE, ELSE, may_ask=True) == "9.8.7"
    program.write_text("#!/bin/sh\necho '\x1b[31mno version\n")
    os.utime(program, ns=(1, 1))
    assert version(one, ELSE, ELSE, may_ask=True) == "again"
