"""Sentences about a state directory that is moved or deleted under a running instance: its agents can be stopped, on record."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from console.cli import embedded
from console.domain.errors import ConsoleError
from console.killswitch.client import moved_instance
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel.processes import is_the_same, start_ticks
from tests.fakes.in_time import code_in_time
from tests.fakes.instance import ROOT, Instance, until


@pytest.fixture
def home(state_dir: Path) -> Iterator[Path]:
    """The state directory, inside the test's own folder so that it can be moved."""
    folder = state_dir / "st"
    folder.mkdir(mode=0o711)
    yield folder
    for _, left in moved_instance.found_for(folder):
        shutil.rmtree(left)


def away(home: Path) -> None:
    """Deletes it, whatever a supervisor that ends there still writes and takes away beside us."""

    def gone() -> bool:
        shutil.rmtree(home, ignore_errors=True)
        return not home.exists()

    until(gone, words="the folder is deleted")


def watchfloor(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "console", *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def panic(home: Path) -> tuple[int, dict[str, Any], str]:
    done = watchfloor("panic", "--reason", "its state directory is gone", "--json", "--state-dir", str(home))
    return done.returncode, json.loads(done.stdout), done.stderr


def test_moved_it_is_panicked_from_the_old_name_and_is_killed_still_once_it_is_back(home: Path) -> None:
    with Instance(home) as it:
        agent = it.launch("sleep", "600")
        pid = it.agent_pid(agent)
        ticks, moved = start_ticks(pid), home.with_name("moved")
        assert ticks is not None
        home.rename(moved)
        try:
            until(lambda: list(moved_instance.found_for(home)), words="the guard records elsewhere")
            for verb in (("status",), ("fleet",), ("kill", agent, "--reason", "r"), ("audit", "tail"), ("secrets", "keys", "show")):
                said = watchfloor(*verb, "--state-dir", str(home))
                assert said.returncode == 3 and "is gone. Its guard still runs" in said.stderr and "panic" in said.stderr, (verb, said)
            code, receipt, _ = panic(home)
            assert not is_the_same(pid, ticks)
            assert code in (7, 8) and code_in_time(receipt) == 7 and receipt["verified_zero"] is True, receipt
            assert any(t["agent_id"] == agent for t in receipt["targets"])
            [(_, elsewhere)] = moved_instance.found_for(home)
            assert "press" in (elsewhere / "guard" / "journal.jsonl").read_text()
        finally:
            away(home)  # what the supervisor made anew there
            moved.rename(home)
        until(lambda: not list(moved_instance.found_for(home)), words="the guard records at home again")
        assert json.loads((home / "guard" / "latch.json").read_text())["body"]["latched"] is True
        assert (home / "guard" / "receipts" / f"{receipt['kill_id']}.json").is_file()


def test_deleted_with_supervisor_and_guard_dead_its_agents_are_found_by_their_cgroups_and_nothing_is_called_proven(home: Path) -> None:
    with Instance(home) as it:
        agent = it.launch("sleep", "600")
        marks = ("console.killswitch", "--state-dir", str(home), "--instance", "deadbeef")
        it.launch("python3", "-c", "import time; time.sleep(600)", *marks)
        it.launch("env", "WATCHFLOOR_INSTANCE=0badcafe", "sleep", "600")
        pid, guard = it.agent_pid(agent), os.pidfd_open(it.living_guard())
        ticks = start_ticks(pid)
        assert ticks is not None and it.process is not None
        it.process.send_signal(signal.SIGSTOP)  # it starts no other guard in between
        signal.pidfd_send_signal(guard, signal.SIGKILL)
        it.stop(signal.SIGKILL)
        os.close(guard)
        away(home)
        code, receipt, said = panic(home)
        assert not is_the_same(pid, ticks) and receipt["instance_id"] == it.places.instance_id, receipt
        assert "is not the guard of deadbeef" in said and "names instance 0badcafe" in said, said
        assert code == 9 and receipt["verified_zero"] is False, "what the lost record knew is unknown"


def test_a_new_instance_in_the_place_of_a_deleted_one_does_not_hide_the_old_one_s_agents(home: Path) -> None:
    """Whoever deletes the state directory and goes on working has another instance under the same name."""
    with Instance(home) as it:
        agent = it.launch("env", "-i", "/bin/sleep", "600")
        pid = it.agent_pid(agent)
        ticks, moved = start_ticks(pid), home.with_name("moved")
        assert ticks is not None
        home.rename(moved)
        try:
            until(lambda: list(moved_instance.found_for(home)), words="the guard records elsewhere")
            away(home)
            home.mkdir(mode=0o711)
            with Instance(home) as new:
                new.launch("sleep", "600")
                done = watchfloor("panic", "--reason", "both of them", "--json", "--state-dir", str(home))
                assert new.places.instance_id != it.places.instance_id
            receipts = [json.loads(text) for text in done.stdout.replace("}\n{", "}\0{").split("\0")]
            assert {one["instance_id"] for one in receipts} == {it.places.instance_id, new.places.instance_id}, done.stderr
            assert not is_the_same(pid, ticks) and any(t["agent_id"] == agent for one in receipts for t in one["targets"])
        finally:
            away(home)
            moved.rename(home)
        until(lambda: not list(moved_instance.found_for(home)), words="the guard records at home again")


def test_whoever_starts_a_new_instance_in_the_place_of_a_moved_one_is_told_that_the_other_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``watchfloor fleet`` starts one of its own and lists no agent, and those of the moved one run."""
    monkeypatch.setattr(embedded, "start_supervisor", lambda *_, **__: None)
    with Instance(home) as it:
        it.launch("sleep", "600")
        moved = home.with_name("moved")
        home.rename(moved)
        try:
            [one] = until(lambda: moved_instance.candidates_beside(home), words="the guard records elsewhere, and answers there")
            away(home)
            embedded.ensure_supervisor(str(home))
            said = " ".join(capsys.readouterr().err.split())
            assert f"Its guard still runs, and records in {one.folder}" in said and "watchfloor panic stops the agents of both" in said
        finally:
            away(home)
            moved.rename(home)
        until(lambda: not list(moved_instance.found_for(home)), words="the guard records at home again")


def test_a_panic_of_the_new_instance_in_the_place_of_a_moved_one_kills_the_old_one_s_agents_too(home: Path) -> None:
    """The window and the panic button know the new instance alone: they find it under the name of the old one."""
    with Instance(home) as it:
        agent = it.launch("env", "-i", "/bin/sleep", "600")
        pid = it.agent_pid(agent)
        ticks, moved = start_ticks(pid), home.with_name("moved")
        assert ticks is not None
        home.rename(moved)
        try:
            until(lambda: list(moved_instance.found_for(home)), words="the guard records elsewhere")
            away(home)
            home.mkdir(mode=0o711)
            with Instance(home) as new:
                new.launch("sleep", "600")
                assert is_the_same(pid, ticks), "a new instance alone kills nothing"
                new.api.activate("pressed in the window")
                until(lambda: not is_the_same(pid, ticks), words="the agent of the old instance is killed")
            [(_, elsewhere)] = moved_instance.found_for(home)
            assert json.loads((elsewhere / "guard" / "latch.json").read_text())["body"]["latched"] is True
        finally:
            away(home)
            moved.rename(home)
        until(lambda: not list(moved_instance.found_for(home)), words="the guard records at home again")


def test_where_nothing_ever_ran_panic_says_so(home: Path) -> None:
    done = watchfloor("panic", "--reason", "nothing there", "--state-dir", str(home / "never"))
    assert done.returncode == 3 and "nothing was ever started there" in done.stderr


def test_a_guard_that_holds_nothing_ends_with_its_state_directory(home: Path) -> None:
    with Instance(home) as it:
        guard = it.living_guard()
        ticks = start_ticks(guard)
        assert ticks is not None
        it.stop(signal.SIGKILL)
        away(home)
        until(lambda: not is_the_same(guard, ticks), words="the guard ends")
        assert not list(moved_instance.found_for(home))


def answer_of(guard: GuardClient) -> dict[str, Any]:
    """Its status; empty while its socket is not listened on yet."""
    with suppress(ConsoleError):
        return guard.status()
    return {}


def test_the_guard_is_reached_where_it_records(home: Path) -> None:
    with Instance(home) as it:
        it.launch("sleep", "600")
        moved = home.with_name("moved")
        home.rename(moved)
        try:
            [(_, elsewhere)] = until(lambda: list(moved_instance.found_for(home)), words="the guard records elsewhere")
            guard = GuardClient(elsewhere / "guard.sock")
            try:
                told = until(lambda: answer_of(guard), words="it answers there")
                assert any("was moved or deleted" in notice for notice in told["notices"])
            finally:
                guard.close()
        finally:
            away(home)
            moved.rename(home)
        until(lambda: not list(moved_instance.found_for(home)), words="the guard records at home again")
