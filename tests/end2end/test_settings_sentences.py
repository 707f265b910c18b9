"""The administrator's files against a real supervisor: a broken one starts no agent, and a kill works all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.settings.layers import in_force_file
from tests.fakes.instance import ROOT, Instance, until


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "etc"
    (folder / "conf.d").mkdir(parents=True)
    monkeypatch.setenv("WATCHFLOOR_ETC", str(folder))
    return folder


@pytest.fixture
def it(etc: Path, state_dir: Path) -> Iterator[Instance]:
    (etc / "watchfloor.toml").write_text('locked = ["spawn.*", "heartbeat_s"]\n[spawn]\nmax_depth = 2\n')
    with Instance(state_dir) as instance:
        yield instance


def test_a_drop_in_that_breaks_takes_no_rule_away_and_is_shown(it: Instance, etc: Path) -> None:
    drop_in = etc / "conf.d" / "50-new.toml"
    os.mkfifo(drop_in)
    until(lambda: "50-new.toml: is no regular file" in it.api.status().configuration, words="the broken file is shown")
    kid = "print(agent.spawn(['sleep', '300'])['id'], flush=True); time.sleep(300)"
    parent = it.python(f"exec({kid!r})")
    until(lambda: [agent for agent in it.api.fleet().agents if agent.parent_id == parent], words="the child runs: rules as before")
    argv = [sys.executable, "-m", "console", "status", "--state-dir", str(it.state_dir)]
    said = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False).stdout
    assert "50-new.toml: is no regular file" in " ".join(said.split())
    drop_in.unlink()
    until(lambda: not it.api.status().configuration, words="the files are good again")


def test_a_start_with_a_broken_drop_in_starts_no_agent_and_kills_as_ever(it: Instance, etc: Path) -> None:
    agent = it.launch("sleep", "300")
    it.stop()
    (etc / "conf.d" / "50-new.toml").write_text("[spawn]\nmax_depth = 99\n")
    it.start()
    assert "spawn.max_depth takes a whole number from 1 to 20, not 99" in it.api.status().configuration
    with pytest.raises(Conflict, match="No agent starts: .*50-new.toml:2"):
        it.launch("sleep", "300")
    kept = json.loads(in_force_file(it.places).read_text())
    assert kept["spawn"]["max_depth"] == 2, "the last good ones"
    receipt = it.api.kill(agent, reason="test")
    assert receipt.verified_zero
    (etc / "conf.d" / "50-new.toml").write_text("[spawn]\nmax_depth = 2\n")
    until(lambda: not it.api.status().configuration, words="the files say what is in force")
    it.launch("sleep", "300")


def test_a_locked_key_is_refused_on_the_command_line_with_the_file_that_locks_it(it: Instance, etc: Path) -> None:
    it.stop()
    it.options = ("--heartbeat-s", "3")
    with pytest.raises(AssertionError, match=f"heartbeat_s cannot be changed here: {etc}/watchfloor.toml:1 locks it"):
        it.start()
    it.options = ()
    it.start()


def test_changed_files_are_on_record_at_the_next_start(it: Instance, etc: Path) -> None:
    it.stop()
    (etc / "conf.d" / "10.toml").write_text("heartbeat_s = 12\n")
    it.start()
    rows = until(lambda: [row for row in it.api.audit().rows if row.kind == "settings.in_force"], words="the change is on record")
    assert [row.what for row in rows] == [f"heartbeat_s: 30.0 -> 12.0, by {etc}/conf.d/10.toml:1"]


def test_a_change_on_the_command_line_is_on_record_and_in_force_after_a_start(it: Instance, etc: Path) -> None:
    def said(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "console", "config", *words, "--state-dir", str(it.state_dir)]
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)

    done = said("set", "canary_s", "45", "--reason", "quieter")
    assert done.returncode == 0 and "canary_s = 45.0 takes effect when the supervisor starts again." in " ".join(done.stdout.split())
    done = said("set", "spawn.max_depth", "9", "--reason", "more")
    assert done.returncode == 4 and "watchfloor.toml:1 locks it" in done.stderr
    kinds = {row.kind: row.what for row in it.api.audit().rows if row.actor.startswith("operator:")}
    assert kinds["settings.changed"] == "canary_s: 60.0 -> 45: quieter" and "spawn.max_depth" in kinds["settings.refused"]
    it.stop()
    it.start()
    assert next(row.value for row in it.api.settings().rows if row.key == "canary_s") == 45
