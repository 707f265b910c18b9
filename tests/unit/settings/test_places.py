"""Where an instance lives."""

from __future__ import annotations

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ConsoleError, UsageProblem
from console.settings.places import Places, choose_state_dir, default_state_dir, find_places, make_run_dir


def made(folder: Path) -> Places:
    return find_places(str(folder), create=True)


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHFLOOR_STATE_DIR", raising=False)


def test_a_new_instance_gets_an_id_that_stays(state_dir: Path) -> None:
    first = made(state_dir / "new")
    assert made(state_dir / "new") == first
    assert len(first.instance_id) == 8
    assert stat.S_IMODE((state_dir / "new").stat().st_mode) == 0o711
    assert stat.S_IMODE((state_dir / "new/instance.json").stat().st_mode) == 0o600
    assert not first.is_default


def test_two_first_starts_at_once_agree(state_dir: Path) -> None:
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(made(state_dir / "s").instance_id)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 16 and len(set(seen)) == 1
    assert [p.name for p in (state_dir / "s").iterdir()] == ["instance.json"]


def test_looking_makes_nothing(state_dir: Path) -> None:
    assert find_places(str(state_dir / "none"), create=False) is None
    assert list(state_dir.iterdir()) == []


def test_the_option_comes_before_the_variable_before_the_default(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> None:
    assert choose_state_dir(None) == (default_state_dir(), True)
    monkeypatch.setenv("WATCHFLOOR_STATE_DIR", str(state_dir / "v"))
    assert choose_state_dir(None) == (state_dir / "v", False)
    assert choose_state_dir(str(state_dir / "o")) == (state_dir / "o", False)


def test_the_default_stays_the_default_when_it_is_named(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 64323)
    monkeypatch.setenv("XDG_STATE_HOME", str(state_dir))
    (state_dir / "elsewhere").mkdir()
    (state_dir / "watchfloor").symlink_to("elsewhere")
    for named in (state_dir / "watchfloor", state_dir / "elsewhere"):
        assert choose_state_dir(str(named)) == (state_dir / "elsewhere", True)
    assert choose_state_dir(str(state_dir / "watchfloor" / "x")) == (state_dir / "elsewhere" / "x", False)


def test_a_folder_can_be_named_without_a_home(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> None:
    for uid in ("getuid", "geteuid"):
        monkeypatch.setattr(os, uid, lambda: 64323)  # no account of this machine
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError):
        default_state_dir()
    assert choose_state_dir(str(state_dir / "o")) == (state_dir / "o", False)


@pytest.mark.parametrize("named", ["", "relative"])
def test_a_relative_state_home_is_ignored(monkeypatch: pytest.MonkeyPatch, state_dir: Path, named: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 64323)
    monkeypatch.setenv("HOME", str(state_dir))
    monkeypatch.setenv("XDG_STATE_HOME", named)
    assert default_state_dir() == state_dir / ".local" / "state" / "watchfloor"


def test_the_default_is_the_systems_for_root_and_the_users_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_state_dir() == Path("/var/lib/watchfloor")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", "/x/state")
    assert default_state_dir() == Path("/x/state/watchfloor")


def test_a_nul_in_the_name_is_refused() -> None:
    with pytest.raises(UsageProblem):
        choose_state_dir("a\0b")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"instance_id": "../../etc"}', '{"instance_id": 5}', '{"instance_id": "ABCDEF01"}', "\x00"]
)
def test_a_damaged_instance_is_not_replaced(state_dir: Path, content: str) -> None:
    (state_dir / "instance.json").write_text(content)
    with pytest.raises(ConsoleError) as caught:
        find_places(str(state_dir), create=True)
    assert caught.value.remedy
    assert (state_dir / "instance.json").read_text() == content


def test_a_folder_that_cannot_be_used_is_named(state_dir: Path) -> None:
    (state_dir / "file").write_text("")
    with pytest.raises(ConsoleError, match="cannot be used"):
        find_places(str(state_dir / "file" / "below"), create=True)


def test_sockets_move_to_a_short_folder_when_the_path_is_long(state_dir: Path) -> None:
    short, long = made(state_dir / "s"), made(state_dir / ("d" * 90))
    assert short.run_dir == state_dir / "s" / "run"
    assert long.run_dir.name == f"watchfloor-{os.geteuid()}-{long.instance_id}"
    longest = long.agents_dir / ("a" * 24 + ".sock")
    assert len(os.fsencode(longest)) <= 107


def test_socket_folders_can_be_passed_but_not_listed_by_others(state_dir: Path) -> None:
    places = made(state_dir / "s")
    make_run_dir(places)
    make_run_dir(places)
    for folder in (places.run_dir, places.agents_dir):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o711


def test_a_planted_socket_folder_is_refused(state_dir: Path) -> None:
    places = made(state_dir / "s")
    (state_dir / "elsewhere").mkdir()
    places.run_dir.symlink_to(state_dir / "elsewhere")
    with pytest.raises(ConsoleError, match="belongs to another account"):
        make_run_dir(places)


def test_a_socket_folder_of_somebody_else_is_refused(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = made(state_dir / "s")
    places.run_dir.mkdir(mode=0o711)
    somebody_else = os.getuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody_else)
    with pytest.raises(ConsoleError, match="belongs to another account"):
        make_run_dir(places)


def test_every_path_is_inside_the_instance(state_dir: Path) -> None:
    places = made(state_dir / "s")
    names = [n for n, v in vars(Places).items() if isinstance(v, property) and n not in ("hidden", "passphrase_file")]
    assert len(names) >= 15
    assert not places.passphrase_file.is_relative_to(places.state_dir)  # never beside the latch
    assert {places.state_dir, places.run_dir, places.passphrase_file.parent} <= set(places.hidden)
    paths = [getattr(places, n) for n in names]
    assert len(set(paths)) == len(paths)
    assert all(p.is_relative_to(places.state_dir) for p in paths)
    assert json.loads((places.state_dir / "instance.json").read_text())["instance_id"] == places.instance_id


def test_workspaces_may_lie_in_a_shared_folder_that_agents_do_not_see(state_dir: Path) -> None:
    places = made(state_dir / "s")
    assert places.workspaces_dir == places.state_dir / "workspaces"
    shared = replace(places, shared_workspaces=state_dir / "shared")
    assert shared.workspaces_dir == state_dir / "shared" and state_dir / "shared" in shared.hidden


@pytest.mark.parametrize("damage", ["", "{", "{}", '{"instance_id": "../../x"}', None])
def test_a_lost_name_is_found_again_in_the_guards_registry(tmp_path: Path, damage: str | None) -> None:
    made = find_places(str(tmp_path), create=True)
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "registry.json").write_text(f'{{"body": {{"root": "/sys/fs/cgroup/watchfloor-{made.instance_id}"}}}}')
    marker = tmp_path / "instance.json"
    marker.unlink() if damage is None else marker.write_text(damage)
    found = find_places(str(tmp_path), create=False)
    assert found is not None
    assert found.instance_id == made.instance_id


def test_a_used_folder_without_any_name_is_damaged_and_no_new_instance(tmp_path: Path) -> None:
    (tmp_path / "guard").mkdir()
    with pytest.raises(ConsoleError, match="damaged"):
        find_places(str(tmp_path), create=True)


def test_an_instance_has_its_id_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut must not leave an instance without an id: nothing of it could be stopped."""
    told: list[str] = []
    for name in ("fsync", "link"):
        real = getattr(os, name)

        def tell(*arguments: Any, name: str = name, real: Any = real) -> None:
            told.append(f"{name} {os.readlink(f'/proc/self/fd/{arguments[0]}') if name == 'fsync' else ''}".strip())
            real(*arguments)

        monkeypatch.setattr(os, name, tell)
    assert find_places(str(tmp_path / "s"), create=True) is not None
    [link] = [at for at, what in enumerate(told) if what == "link"]
    assert any(".instance-" in what for what in told[:link]), "the file"
    assert told[link + 1 :] == [f"fsync {tmp_path / 's'}"], "then its name"
