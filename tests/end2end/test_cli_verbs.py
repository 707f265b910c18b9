"""From a terminal: the verbs that look, change and keep, and what they say to bad input."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli.main import main
from tests.fakes.terminal import Terminal, open_terminal

HOSTILE = "\x1b]0;owned\x07\u202e[bold]x[/bold]"


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    """One instance for all of this file: nothing here leaves an agent running or the kill switch latched."""
    folder = Path(os.environ["TMPDIR"]) / "pytest-of-verbs"
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    with open_terminal(folder) as made:
        made.serve()
        assert made("run", "--wait", "--name", HOSTILE, "--", "true").code == 0
        yield made
    shutil.rmtree(folder)


def test_status_says_that_and_how_this_host_can_be_stopped(terminal: Terminal) -> None:
    said = terminal("status", "--json")
    seen = said.json
    assert said.code == 0
    assert seen["instance"] == terminal.places.instance_id
    assert seen["guard"]["latched"] is False and seen["supervisor"]["guard_ok"] is True
    local = next(p for p in seen["kill_switch"]["paths"] if p["name"] == "local")
    assert local["state"] in ("proven", "in_doubt")
    assert "WAY TO STOP" in terminal("status").out


def test_doctor_names_each_part_as_available_or_says_why_not(terminal: Terminal) -> None:
    said = terminal("doctor", "--json")
    checks = said.json["checks"]
    assert said.code == 0
    assert {"managed", "bubblewrap", "docker", "envoy", "cgroups", "display"} <= set(checks)
    assert all(words.startswith(("available", "kept in")) or "because" in words for words in checks.values()), checks
    assert "because" in checks["docker"]


def test_hostile_names_reach_the_terminal_harmless_and_programs_whole(terminal: Terminal) -> None:
    for argv in (("fleet",), ("audit", "tail"), ("status",)):
        said = terminal(*argv)
        assert said.code == 0 and not {"\x1b", "\x07", "\u202e"} & set(said.out)
    assert HOSTILE in [a["name"] for a in terminal("fleet", "--json").json["agents"]]


def test_the_audit_log_is_whole_and_exported_and_a_change_in_it_is_found(terminal: Terminal, tmp_path: Path) -> None:
    assert terminal("audit", "verify").out.startswith("log intact: ")
    rows = terminal("audit", "tail", "-n", "50", "--json").json["records"]
    assert [r["seq"] for r in rows] == list(range(rows[0]["seq"], rows[0]["seq"] + len(rows)))
    assert any(r["kind"] == "launch" for r in rows)
    written = terminal("audit", "export", str(tmp_path / "audit.jsonl"))
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert written.code == 0 and f"{len(lines)} records written" in written.out
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    again = terminal("audit", "export", str(tmp_path / "audit.jsonl"))
    assert again.code == 1 and "already there" in again.err
    # A copy with one word changed.
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(terminal.places.state_dir / "instance.json", copy)
    source = sqlite3.connect(terminal.places.audit_db)
    target = sqlite3.connect(copy / "audit.db")
    source.backup(target)
    source.close()
    triggers = target.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        target.execute(f"DROP TRIGGER {name}")
    target.execute("UPDATE records SET what = 'nothing happened' WHERE seq = 2")
    for _, sql in triggers:
        target.execute(sql)
    target.commit()
    target.close()
    for checkpoints in terminal.places.state_dir.glob("audit*"):
        if checkpoints.is_file() and not (copy / checkpoints.name).exists() and checkpoints.suffix not in (".db-wal", ".db-shm", ".lock"):
            shutil.copy(checkpoints, copy)
    said = terminal("audit", "verify", "--state-dir", str(copy), "--json")
    assert said.code == 1 and said.json["whole"] is False
    assert said.json["first_bad"] == 2 and "changed after it was written" in said.json["why"]


@pytest.mark.envoy
def test_an_allowlist_entry_is_validated_by_envoy_listed_tested_and_removed(terminal: Terminal) -> None:
    added = terminal("allowlist", "add", "api.example.com", "--reason", "models", "--owner", "ops", "--json")
    assert added.code == 0, added
    entry = added.json["entry_id"]
    assert entry in terminal("allowlist", "list").out
    allowed = terminal("allowlist", "test", "https://api.example.com/v1")
    assert (allowed.code, allowed.out[:8]) == (0, "allowed:")
    assert terminal("allowlist", "test", "https://evil.example.com/").code == 4
    assert terminal("allowlist", "remove", entry, "--reason", "no more").code == 0
    assert terminal("allowlist", "test", "https://api.example.com/v1").code == 4
    assert terminal("allowlist", "remove", entry, "--reason", "again").code == 3


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("kill", "no-such-agent"), 3),
        (("kill", "x" * 100_000), 2),
        (("kill", ".."), 2),
        (("kill", "a/../../api/shutdown"), 2),
        (("freeze", HOSTILE), 3),
        (("receipt", "show", "nope"), 3),
        (("rollback", "show", "nope"), 3),
        (("rollback", "restore", "nope", "--reason", "r"), 3),
        (("allowlist", "add", "not a host", "--reason", "r", "--owner", "o"), 2),
        (("allowlist", "add", "1.2.3.4", "--reason", "r", "--owner", "o"), 2),
        (("allowlist", "add", "a.example.com", "--port", "70000", "--reason", "r", "--owner", "o"), 2),
        (("run", "--parent", "nobody-here", "--", "true"), 3),
        (("run", "--parent", HOSTILE, "--", "true"), 2),
        (("run", "--session", "../x", "--", "true"), 2),
        (("run", "--name", "n" * 100_000, "--", "true"), 2),
        (("run", "--sandbox", "paper", "--", "true"), 2),
        (("run", "--sensitivity", "medium", "--", "true"), 2),
        (("run", "--limit", "cost=1", "--limit", "cost=2", "--", "true"), 2),
        (("run", "--limit", "cost=nan", "--", "true"), 2),
        (("run", "--", "x" * 100_001), 2),
        (("run", "--sandbox", "gvisor", "--", "true"), 1),
        (("run", "--sandbox", "docker", "--", "true"), 1),
        (("rearm", "--reason", ""), 2),
        (("--state-dir", "/proc/nowhere", "run", "--", "true"), 1),
        (("--state-dir", "/dev/null", "fleet"), 1),
        (("--state-dir", "/nonexistent", "panic", "--reason", "r"), 3),
    ],
)
def test_bad_input_is_refused_with_words_and_its_documented_code(
    terminal: Terminal, argv: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATCHFLOOR_STATE_DIR", str(terminal.places.state_dir))
    done = main(list(argv))  # in this process: 30 starts of Python would take a minute
    err = capfd.readouterr().err
    assert done == code, err
    assert "Traceback" not in err and not {"\x1b", "\x07", "\u202e"} & set(err)
    assert len(err) < 5000
    assert terminal.processes() == []


def test_a_page_that_is_not_there_is_refused(terminal: Terminal) -> None:
    said = terminal("screenshot", "nosuch", "x.png")
    assert said.code == 2 and "Traceback" not in said.err


def test_bytes_that_are_no_text_are_refused(terminal: Terminal) -> None:
    said = terminal("kill", b"\xff\xfe")
    assert said.code == 2 and "not valid UTF-8" in said.err


def test_a_reader_that_goes_away_is_no_error(terminal: Terminal) -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$0" -m console fleet --json | true', sys.executable],
        env=terminal.environment,
        capture_output=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_working_folder_that_is_gone_is_no_problem(terminal: Terminal, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m console fleet', sys.executable],
        env=terminal.environment,
        cwd=tmp_path,
        capture_output=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_a_second_supervisor_is_refused_and_told_who_holds_the_instance(terminal: Terminal) -> None:
    said = terminal("supervisor")
    [first] = terminal.supervisors
    assert said.code == 1 and str(first) in said.err and "Traceback" not in said.err


def test_without_a_display_the_console_says_so(terminal: Terminal) -> None:
    for argv in ((), ("panic-button",)):
        said = terminal(*argv, DISPLAY="", WAYLAND_DISPLAY="", QT_QPA_PLATFORM="")
        assert said.code == 1 and "no display" in said.err


def test_keys_are_made_once_and_shown(terminal: Terminal, state_dir: Path) -> None:
    where = ("--state-dir", str(state_dir))
    made = terminal("secrets", "keys", "init", *where, "--json")
    assert made.code == 0, made
    assert terminal("secrets", "keys", "show", *where, "--json").json["kids"] == made.json["kids"]
    again = terminal("secrets", "keys", "init", *where)
    assert again.code == 1 and "Traceback" not in again.err
    released = terminal("remote", "release", "--reason", "r", *where)
    assert released.code == 1 and "not configured" in released.err


def test_a_page_is_rendered_without_a_display(terminal: Terminal, tmp_path: Path) -> None:
    picture = tmp_path / "fleet.png"
    said = terminal("screenshot", "fleet", str(picture), "--theme", "light", DISPLAY="", WAYLAND_DISPLAY="")
    assert said.code == 0, said
    assert picture.read_bytes().startswith(b"\x89PNG")
