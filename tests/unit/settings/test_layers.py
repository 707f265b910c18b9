"""Layers of the settings: which one wins, what a lock holds, and what counts while a file is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.settings.admin_files import Refused
from console.settings.layers import change, changed, check_file, in_force, in_force_file, keep, last_values, parse_value, resolve, values_of
from console.settings.options import Options
from console.settings.places import Places, find_places
from console.settings.table import KEYS


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "etc"
    (folder / "conf.d").mkdir(parents=True)
    monkeypatch.setenv("WATCHFLOOR_ETC", str(folder))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return folder


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return find_places(str(tmp_path / "state"), create=True)


def test_the_later_layer_wins_and_its_place_is_told(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text("heartbeat_s = 20\ncanary_s = 20\n[spawn]\nmax_depth = 2\nmax_children = 2\n")
    (etc / "conf.d" / "10.toml").write_text("canary_s = 10\n[spawn]\nmax_depth = 4\n")
    (etc / "conf.d" / "20.toml").write_text("spawn.max_depth = 5\n")
    places.settings_file.write_text('{"spawn": {"max_children": 9}}')
    now = resolve(places.settings_file)
    spawn = now.options.spawn
    assert (now.options.heartbeat_s, now.options.canary_s, spawn.max_depth, spawn.max_children) == (20, 10, 5, 9)
    told = {name: str(row.origin) for name, row in now.settings.items()}
    assert told["heartbeat_s"] == f"{etc}/watchfloor.toml:1" and told["canary_s"] == f"{etc}/conf.d/10.toml:1"
    assert told["spawn.max_depth"] == f"{etc}/conf.d/20.toml:1" and told["spawn.max_children"] == str(places.settings_file)
    assert told["linger_s"] == "built-in default"


def test_a_locked_key_keeps_the_administrators_value(etc: Path, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    (etc / "watchfloor.toml").write_text('locked = ["panic.*", "heartbeat_s", "engine_socket"]\nheartbeat_s = 20\n')
    (etc / "conf.d" / "10.toml").write_text("heartbeat_s = 12\n")
    places.settings_file.write_text('{"heartbeat_s": 99, "panic": {"include_observed": true}, "canary_s": 5}')
    monkeypatch.setenv("DOCKER_HOST", "unix:///other.sock")
    now = resolve(places.settings_file)
    assert (now.options.heartbeat_s, now.options.panic.include_observed, now.options.canary_s) == (12, False, 5)
    assert now.options.engine() == "/var/run/docker.sock"
    assert set(now.ignored) == {"heartbeat_s", "panic.include_observed"}
    with pytest.raises(Denied, match=f"heartbeat_s cannot be changed here: {etc}/watchfloor.toml:1 locks it"):
        change(places, {"heartbeat_s": 5.0})
    with pytest.raises(Denied, match="panic.include_observed"):
        change(places, {"panic.include_observed": True})
    assert "99" in places.settings_file.read_text()


def test_a_change_is_checked_and_kept_for_the_account_alone(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text("[spawn]\nmax_depth = 2\n")
    change(places, {"spawn.max_depth": 3, "canary_s": 5})
    assert json.loads(places.settings_file.read_text()) == {"spawn": {"max_depth": 3}, "canary_s": 5.0}
    assert resolve(places.settings_file).options.spawn.max_depth == 3
    change(places, {"spawn.max_depth": None})
    assert resolve(places.settings_file).options.spawn.max_depth == 2
    with pytest.raises(NotFound, match="no setting spawn.max_deep") as refused:
        change(places, {"spawn.max_deep": 3})
    assert refused.value.remedy == "Did you mean spawn.max_depth?"
    with pytest.raises(UsageProblem, match="a whole number from 1 to 20, not 99"):
        change(places, {"spawn.max_depth": 99})
    with pytest.raises(UsageProblem):
        change(places, {"panic.include_observed": "yes"})


def test_docker_host_counts_where_no_file_names_a_socket(etc: Path, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///other.sock")
    now = resolve(places.settings_file)
    assert now.options.engine_socket == "/other.sock" and str(now.settings["engine_socket"].origin) == "DOCKER_HOST"
    (etc / "watchfloor.toml").write_text('engine_socket = "/named.sock"\n')
    assert resolve(places.settings_file).options.engine_socket == "/named.sock"


def test_a_broken_file_leaves_the_last_good_settings(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text("heartbeat_s = 20\n")
    good = resolve(places.settings_file)
    keep(places, good.options)
    (etc / "conf.d" / "50-new.toml").write_text("heartbeat_s = \n")
    places.settings_file.write_text('{"heartbeat_s": 99}')
    with pytest.raises(Refused, match=r"50-new.toml:1:15: is not TOML"):
        resolve(places.settings_file)
    now = in_force(places)
    assert now.options == good.options and now.faults[0].line == 1 and now.settings["heartbeat_s"].origin.layer == "last"
    in_force_file(places).unlink()
    assert in_force(places).options == Options(), "without one, the built-in defaults"
    (etc / "conf.d" / "50-new.toml").unlink()
    assert in_force(places).options.heartbeat_s == 99 and not in_force(places).faults


def test_the_accounts_broken_file_is_still_an_error(etc: Path, places: Places) -> None:
    places.settings_file.write_text("{")
    with pytest.raises(ConsoleError, match="settings.json"):
        in_force(places)


@pytest.mark.parametrize(
    ("text", "words", "remedy", "line"),
    [
        ("x = 1\nheartbeat = 3\n", "there is no setting 'x'", "config show", 1),
        ("[spawn]\nmax_deph = 3\n", "there is no setting 'spawn.max_deph'", "Did you mean spawn.max_depth?", 2),
        ("spawn = 3\n", "spawn is a section", "[spawn]", 1),
        ("[heartbeat_s]\nx = 1\n", "heartbeat_s takes a number above 0", "config show heartbeat_s", 1),
        ('"spawn.max_depth" = 3\n', "there is no setting '\"spawn.max_depth\"'", "Did you mean spawn.max_depth?", 0),
        ("[panic]\ninclude_observed = 1\n", "takes true or false, not 1", "config show", 2),
        ("[panic]\ninclude_observed = 'true'\n", "takes true or false, not 'true'", "config show", 2),
        ("heartbeat_s = inf\n", "takes a number above 0, not Infinity", "config show", 1),
        ("heartbeat_s = nan\n", "takes a number above 0, not NaN", "config show", 1),
        ("[spawn]\nmax_depth = 2.5\n", "a whole number from 1 to 20, not 2.5", "config show", 2),
        ("[spawn]\nmax_depth = 0xffffffffffffffffffffffff\n", "a whole number from 1 to 20", "config show", 2),
        ("[remote]\nlease = 'maybe'\n", "takes one of stop, alarm, not 'maybe'", "config show", 2),
        ("[remote]\npoll_s = 1979-05-27\n", "takes a number above 0 and up to 10", "config show", 2),
        ("[budgets.day]\ncost = -5\n", "budgets.day", "config show", 1),
        ("[environment.bot]\nnames = ['API_KEY']\n", "environment.bot.names: API_KEY reads as a secret's name", "config show", 1),
        ("[agents]\nuid = 0\n", "agents.uid takes a whole number of at least 1, not 0", "config show", 2),
        ("locked = 'panic.*'\n", "locked takes a list of keys", "locked = [", 1),
        ("[spawn]\nlocked = ['spawn.*']\n", "locked is in the section 'spawn'", "above the first section", 2),
        ("locked = ['panik.*']\n", "no such setting", "Did you mean panic.*?", 1),
        ("locked = ['policy.*']\n", "'policy.*': rules and profiles are no settings", "watchfloor-operator", 1),
        ("[policy]\nprofile = 'strict'\n", "'policy': rules and profiles are no settings", "watchfloor-operator", 1),
        ("locked = ['allowlist.*']\n", "neither set nor lock them", "watchfloor-operator", 1),
        ("locked = ['panic']\n", "no such setting", "Did you mean panic.*?", 1),
    ],
)
def test_each_mistake_is_named_with_its_line_and_what_to_do(tmp_path: Path, text: str, words: str, remedy: str, line: int) -> None:
    file = tmp_path / "draft.toml"
    file.write_text(text)
    fault = check_file(file)[0]
    assert words in fault.what and remedy in fault.remedy and fault.line == line


def test_every_mistake_of_a_file_is_told_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "draft.toml"
    file.write_text("heartbeat_s = -1\ncanary_s = 0\n[spawn]\nmax_depth = 4\n")
    assert [fault.line for fault in check_file(file)] == [1, 2]
    file.write_text("# nothing\n")
    assert check_file(file) == []


def test_a_hostile_value_is_shown_without_control_characters(tmp_path: Path) -> None:
    file = tmp_path / "draft.toml"
    file.write_text('[remote]\nlease = "\\u001b[31m\\u202e"\n')
    assert "\x1b" not in check_file(file)[0].what and "\u202e" not in check_file(file)[0].what


def test_what_is_kept_is_known_at_the_next_start(places: Places) -> None:
    assert last_values(places) is None
    keep(places, Options())
    before = last_values(places)
    assert before == values_of(Options()) and set(before) == set(KEYS)
    assert changed(before, before | {"heartbeat_s": 5}) == {"heartbeat_s": (30.0, 5)}
    in_force_file(places).write_text("{")
    assert last_values(places) is None


def test_a_typed_value_is_read_by_the_kind_of_its_key() -> None:
    assert parse_value(KEYS["host_name"], "7") == "7" and parse_value(KEYS["spawn.max_depth"], "7") == 7
    assert parse_value(KEYS["panic.include_observed"], "true") is True and parse_value(KEYS["budgets.day"], '{"cost": 3}') == {"cost": 3}
    with pytest.raises(UsageProblem, match="takes true or false, not 'yes'"):
        parse_value(KEYS["panic.include_observed"], "yes")
