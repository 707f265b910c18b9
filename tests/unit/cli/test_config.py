"""Settings and logs of an instance, with nothing running."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from console.domain.errors import ExitCode
from console.settings.places import Places, find_places
from tests.fakes.canned_api import canned_api
from tests.fakes.verbs import Watchfloor


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = find_places(str(tmp_path / "state"), create=True)
    assert found is not None
    return found


def test_a_changed_setting_stands_beside_its_default(watchfloor: Watchfloor, places: Places) -> None:
    places.settings_file.write_text('{"spawn": {"max_depth": 7}}')
    said = watchfloor("config", "show", "spawn.", "--state-dir", str(places.state_dir))
    assert said.code == 0
    assert [line.split() for line in said.out.splitlines()[1:3]] == [
        ["spawn.max_depth", "7", "3", "-"],
        ["spawn.max_children", "6", "the", "same", "-"],
    ]
    told = json.loads(watchfloor("config", "show", "--json", "--state-dir", str(places.state_dir)).out)
    assert told["settings"]["spawn.max_depth"] == 7 and told["settings"]["approvals.ttl_s"]


def test_a_setting_that_is_not_there_and_a_broken_file_are_told(watchfloor: Watchfloor, places: Places) -> None:
    where = ("--state-dir", str(places.state_dir))
    said = watchfloor("config", "show", "spwan", *where)
    assert said.code == ExitCode.NOT_FOUND and "There is no setting spwan." in said.err
    places.settings_file.write_text('{"spawn": {"max_depth": "deep"}}')
    assert "spawn.max_depth" in watchfloor("config", "show", *where).err


def test_origin_and_locks_are_shown_and_hostile_names_are_harmless(
    watchfloor: Watchfloor, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc = tmp_path / "etc"
    (etc / "conf.d").mkdir(parents=True)
    (etc / "conf.d" / "a\x1b[31m.toml").write_text('locked = ["spawn.*"]\n[spawn]\nmax_depth = 2\n')
    monkeypatch.setenv("WATCHFLOOR_ETC", str(etc))
    where = ("--state-dir", str(places.state_dir))
    said = watchfloor("config", "show", "spawn.max_d", "--origin", *where)
    assert said.code == 0 and "a\\e[31m.toml:3" in said.out.replace("\n", "") and "\x1b" not in said.out
    told = watchfloor("config", "show", "--json", *where).json
    assert told["origins"]["spawn.max_depth"]["layer"] == "administrator" and told["origins"]["spawn.max_depth"]["locked_by"].endswith(":1")
    assert told["origins"]["heartbeat_s"] == {"layer": "default", "file": "", "line": 0, "locked_by": ""}


def test_check_names_every_fault_and_ends_with_1(
    watchfloor: Watchfloor, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc = tmp_path / "etc"
    (etc / "conf.d").mkdir(parents=True)
    monkeypatch.setenv("WATCHFLOOR_ETC", str(etc))
    where = ("--state-dir", str(places.state_dir))
    (etc / "watchfloor.toml").write_text('locked = ["heartbeat_s"]\n')
    said = watchfloor("config", "check", *where)
    assert said.code == 0 and "No fault was found." in said.out
    for name in ("README", "1.toml.dpkg-old", "1.toml.dpkg-new", ".1.swp", "1.toml~"):
        (etc / "conf.d" / name).write_text("[spawn]\n")
    assert "Not read" not in watchfloor("config", "check", *where).err
    (etc / "conf.d" / "10-limits.conf").write_text("[spawn]\nmax_depth = 1\n")
    said = watchfloor("config", "check", *where)
    assert said.code == 0 and "10-limits.conf" in said.err and "end in .toml" in said.err
    assert [Path(name).name for name in watchfloor("config", "check", "--json", *where).json["unread"]] == ["10-limits.conf"]
    (etc / "watchfloor.toml").chmod(0o600)
    said = watchfloor("config", "check", *where)
    assert said.code == ExitCode.FAILURE and "other accounts cannot read it" in said.out and "chmod 0644" in said.out
    (etc / "watchfloor.toml").chmod(0o644)
    places.settings_file.write_text('{"heartbeat_s": 5}')
    (etc / "conf.d" / "1.toml").write_text("[spawn]\nmax_depth = 99\n")
    (etc / "conf.d" / "2.toml").mkdir()
    said = watchfloor("config", "check", "--json", *where)
    assert said.code == ExitCode.FAILURE and not said.json["ok"]
    assert [(Path(fault["file"]).name, fault["line"]) for fault in said.json["faults"]] == [
        ("1.toml", 2),
        ("2.toml", 0),
        ("settings.json", 0),
    ]
    assert "locks it" in said.json["faults"][2]["what"]
    shown = watchfloor("config", "show", *where)
    assert shown.code == 0 and "1.toml:2: spawn.max_depth takes" in shown.err and "last in force" in shown.err
    assert watchfloor("config", "check", str(tmp_path / "none.toml")).code == ExitCode.NOT_FOUND
    draft = tmp_path / "draft.toml"
    draft.write_text("canary_s = 1\n")
    assert watchfloor("config", "check", str(draft)).code == 0


def test_the_newest_lines_of_both_logs_are_printed_without_control_characters(watchfloor: Watchfloor, places: Places) -> None:
    places.guard_dir.mkdir(parents=True, exist_ok=True)
    places.log_file.write_text("one\ntwo\nthree \x1b[31mred\n")
    (places.guard_dir / "guard.log").write_text("guard two\n")
    where = ("--state-dir", str(places.state_dir))
    said = watchfloor("logs", "-n", "2", *where)
    assert said.code == 0 and said.out.splitlines()[0] == "supervisor: two" and said.out.splitlines()[2] == "guard: guard two"
    assert "\x1b" not in said.out and "one" not in said.out
    assert watchfloor("logs", "--filter", "two", *where).out.splitlines() == ["supervisor: two", "guard: guard two"]
    assert "No log has such a line." in watchfloor("logs", "--filter", "four", *where).err


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_setting_that_takes_a_restart_says_so_and_how_the_supervisor_is_started_again(
    watchfloor: Watchfloor, places: Places, is_waiting: bool
) -> None:
    row = {"key": "spawn.max_depth", "value": 3 if is_waiting else 4, "next_value": 4, "is_waiting": is_waiting}
    with canned_api(places) as api:
        api.say("POST /api/settings", {"rows": [row]})
        places.supervisor_lock.write_text('{"pid": 4711}')
        said = watchfloor("config", "set", "spawn.max_depth", "4", "--reason", "r", "--state-dir", str(places.state_dir))
    shutil.rmtree(places.run_dir)
    assert said.code == 0
    assert ("takes effect when the supervisor starts again" in said.out) is is_waiting
    assert ("Now 3 holds. To start it again: press Ctrl-C in watchfloor supervisor" in said.err) is is_waiting
    assert ("If another verb started it: kill 4711. The next verb starts it again" in said.err) is is_waiting, "a hook may keep it up"


def test_a_file_that_this_account_cannot_read_is_named_once(
    watchfloor: Watchfloor, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc = tmp_path / "etc"
    (etc / "conf.d").mkdir(parents=True)
    monkeypatch.setenv("WATCHFLOOR_ETC", str(etc))
    (etc / "conf.d" / "1.toml").write_text("[spawn\n")
    (etc / "conf.d" / "1.toml").chmod(0o600)  # as root reads it: broken, and then not readable for others either
    said = watchfloor("config", "check", "--json", "--state-dir", str(places.state_dir))
    assert [fault["what"].split(":")[0] for fault in said.json["faults"]] == ["is not TOML"]
