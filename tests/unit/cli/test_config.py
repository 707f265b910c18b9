"""Settings and logs of an instance, with nothing running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.domain.errors import ExitCode
from console.settings.places import Places, find_places
from tests.fakes.verbs import Watchfloor


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = find_places(str(tmp_path / "state"), create=True)
    assert found is not None
    return found


def test_a_changed_setting_stands_beside_its_default(watchfloor: Watchfloor, places: Places) -> None:
    places.settings_file.write_text('{"spawn": {"max_depth": 7}}')
    said = watchfloor("config", "spawn.", "--state-dir", str(places.state_dir))
    assert said.code == 0
    assert [line.split() for line in said.out.splitlines()[1:3]] == [
        ["spawn.max_depth", "7", "3"],
        ["spawn.max_children", "6", "the", "same"],
    ]
    told = json.loads(watchfloor("config", "--json", "--state-dir", str(places.state_dir)).out)
    assert told["settings"]["spawn.max_depth"] == 7 and told["settings"]["approvals.ttl_s"]


def test_a_setting_that_is_not_there_and_a_broken_file_are_told(watchfloor: Watchfloor, places: Places) -> None:
    where = ("--state-dir", str(places.state_dir))
    said = watchfloor("config", "spwan", *where)
    assert said.code == ExitCode.NOT_FOUND and "There is no setting spwan." in said.err
    places.settings_file.write_text('{"spawn": {"max_depth": "deep"}}')
    assert "spawn.max_depth" in watchfloor("config", *where).err


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
