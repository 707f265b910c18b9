"""Sources against real processes and a real engine. What is started here is named and ended here."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.sources.claude_code.source import ClaudeCodeSource
from console.sources.codex.source import CodexSource
from console.sources.processes import ProcessTable

ROOT = Path(__file__).resolve().parents[2]
SLEEP = shutil.which("sleep") or "/usr/bin/sleep"


@contextlib.contextmanager
def program(folder: Path, name: str, *, argv0: str | None = None, keep_open: Path | None = None) -> Iterator[int]:
    """A real process whose executable is called ``name``; yields its pid."""
    exe = folder / name
    if not exe.exists():
        shutil.copy(SLEEP, exe)
    held = keep_open.open("rb") if keep_open else None
    process = subprocess.Popen([argv0 or str(exe), "60"], executable=exe, pass_fds=(held.fileno(),) if held else ())
    if held:
        held.close()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def wait_for(look: Callable[[], bool]) -> bool:
    """Whether it comes true within 60 s."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if look():
            return True
        time.sleep(0.05)
    return False


def record(home: Path, pid: int, start: int | None) -> None:
    folder = home / ".claude" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{pid}.json").write_text(json.dumps({"pid": pid, "sessionId": f"s-{pid}", "procStart": str(start), "status": "busy"}))


def test_a_live_claude_is_seen_and_gone_with_its_process(tmp_path: Path) -> None:
    source = ClaudeCodeSource(tmp_path)
    with program(tmp_path, "claude") as pid:
        record(tmp_path, pid, ProcessTable().start_ticks(pid))
        (seen,) = source.look().sightings
        assert seen.process is not None
        assert (seen.process.pid, seen.status) == (pid, "busy")
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: source.look().sightings == ())  # a zombie is gone too
    assert "is gone" in source.look().reason


def test_forged_records_that_name_others_processes_give_nobody_a_process(tmp_path: Path) -> None:
    source = ClaudeCodeSource(tmp_path)
    table = ProcessTable()
    with program(tmp_path, "ledgerd", argv0="claude") as victim, program(tmp_path, "claude") as other:
        record(tmp_path, victim, table.start_ticks(victim))  # right number, right start, calls itself claude, is not
        record(tmp_path, other, (table.start_ticks(other) or 0) - 1)  # a later process of that number
        record(tmp_path, 1, table.start_ticks(1))
        record(tmp_path, os.getpid(), table.start_ticks(os.getpid()))
        report = source.look()
        assert report.sightings == ()
        assert "left out: 4" in report.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another account")
def test_a_record_written_by_another_account_gives_nobody_a_process(tmp_path: Path) -> None:
    with program(tmp_path, "claude") as pid:
        record(tmp_path, pid, ProcessTable().start_ticks(pid))
        os.chown(tmp_path / ".claude" / "sessions" / f"{pid}.json", 65534, 65534)
        report = ClaudeCodeSource(tmp_path).look()
        assert report.sightings == ()
        assert "uid 65534" in report.reason


def test_codex_is_known_by_its_executable_and_the_rollout_it_holds(tmp_path: Path) -> None:
    thread = "01a1ffcf-dfdd-77a3-ace2-eaa2ca9f7954"
    folder = tmp_path / "sessions" / "2026" / "11" / "21"
    folder.mkdir(parents=True)
    rollout = folder / f"rollout-2026-11-21T20-32-55-{thread}.jsonl"
    rollout.write_text(json.dumps({"type": "session_meta", "payload": {"id": thread, "cwd": "/w", "cli_version": "0.169.0"}}) + "\n")
    source = CodexSource(tmp_path)
    with program(tmp_path, "codex", keep_open=rollout) as pid, program(tmp_path, "tailer", argv0="codex", keep_open=rollout):
        assert wait_for(lambda: len(source.look().sightings) == 1)
        (seen,) = source.look().sightings
        assert seen.process is not None
        assert (seen.process.pid, seen.session, seen.cwd, seen.name) == (pid, thread, "/w", "codex 0.169.0")
    assert source.look().sightings == ()


def test_a_look_over_all_processes_is_quick_and_quiet() -> None:
    began = time.monotonic()
    for source in (ClaudeCodeSource(pids=lambda pid: False), CodexSource(pids=lambda pid: False)):
        report = source.look()
        assert report.available
        assert report.sightings == ()
    assert time.monotonic() - began < 30


AUDITED = """
import sys, time
from pathlib import Path
opened = []
kinds = ("open", "os.open", "os.listdir", "os.scandir")
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event in kinds and args else None)
from console.sources.claude_code.source import ClaudeCodeSource
from console.sources.codex.source import CodexSource
from console.sources.folder_watch import FolderWatch
from console.sources.kinds import KINDS, PROGRAMS, TRANSCRIPTS, VENDORS
from console.sources.plain_processes import ProcessSource
from console.sources.programs import Programs
from console.sources.spend.rates import RateBook
from console.sources.spend.of_session import SessionSpend
home, programs = Path(sys.argv[1]), Programs(PROGRAMS)
spend = SessionSpend(home / "cost.db", TRANSCRIPTS, RateBook(VENDORS, lambda: None), home)
source = ClaudeCodeSource(home, spend=spend, programs=programs)
watch = FolderWatch("t", source.folders, lambda paths: [Path(p).exists() for p in paths])
seen = [len(source.look().sightings) for _ in range(2)]
watch.start()
while watch.problem: time.sleep(0.01)
(home / ".claude" / "sessions" / "9.bb.key").write_text("another secret")
for one in (CodexSource(home, programs=programs, spend=spend), ProcessSource(programs, KINDS, home)): one.look()
spend.end(); watch.end()
keys = [name for name in opened if name.endswith(".key")]
print(seen, [name for name in keys if not name.endswith("9.bb.key")], len([name for name in keys if name.endswith("9.bb.key")]))
print(any(name.endswith(".json") for name in opened))
"""


def test_no_open_of_any_kind_reaches_a_key(tmp_path: Path) -> None:
    """By the interpreter's own audit of every open, in everything that looks at a home."""
    with program(tmp_path, "claude") as pid:
        record(tmp_path, pid, ProcessTable().start_ticks(pid))
        (tmp_path / ".claude" / "sessions" / f"{pid}.0a1b.key").write_text("a secret")
        command = [sys.executable, "-c", AUDITED, str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
        # The one key that was opened is the one that the test itself wrote.
        assert done.stdout.splitlines() == ["[1, 1] [] 1", "True"], done.stdout + done.stderr
