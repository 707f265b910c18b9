"""The permission matrix in force: none without a file, the last good one when it breaks or goes, a type's own before everybody's."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from console.domain.agent import Agent
from console.domain.errors import Denied
from console.services.policy import config_fallback
from console.services.policy.matrix import COMPILED_MAX, MatrixDesk
from console.settings.places import Places
from tests.fakes.playbook import Playbook

ROWS = {"tools": {"read_file": {"paths": ["${WORKSPACE}/**"]}}}


@pytest.fixture
def alarms() -> list[str]:
    return []


def agent(name: str = "a") -> Agent:
    return Playbook().run(name).agent(name)


def write(file: Path, document: object) -> None:
    file.parent.mkdir(exist_ok=True)
    draft = file.with_suffix(".new")
    draft.write_text(document if isinstance(document, str) else json.dumps(document))
    draft.replace(file)


def names(desk: MatrixDesk, who: Agent | None = None) -> list[str] | None:
    found = desk.of(who or agent(), "/w")
    return None if found is None else list(found)


def test_without_a_file_there_is_none_and_an_edit_holds_for_the_next_call(places: Places, alarms: list[str]) -> None:
    desk = MatrixDesk(places, alarms.append)
    assert names(desk) is None and desk.problem == "" and desk.general() is None
    write(places.state_dir / "matrix.json", ROWS)
    assert names(desk) == ["read_file"] and alarms == []
    write(places.state_dir / "matrix.json", {"tools": {}})
    assert names(desk) == []
    write(places.state_dir / "matrix.json", {"tools": None})
    assert names(desk) is None, "all bounds are taken away in so many words"


@pytest.mark.parametrize("breaks", ["broken", "folder", "link", "gone", "pipe"])
def test_one_that_breaks_changes_nothing_and_says_so_after_a_restart_too(places: Places, alarms: list[str], breaks: str) -> None:
    file = places.state_dir / "matrix.json"
    write(file, ROWS)
    MatrixDesk(places, alarms.append)
    file.unlink()
    match breaks:
        case "broken":
            file.write_text("{")
        case "folder":
            file.mkdir()
        case "link":
            file.symlink_to("nowhere")
        case "pipe":
            os.mkfifo(file)
    desk = MatrixDesk(places, alarms.append)
    assert names(desk) == ["read_file"] and desk.problem
    assert len(alarms) == 1, "said once"


@pytest.mark.parametrize("kept", ["{", None])
def test_a_last_good_one_that_nobody_can_read_any_more_was_something_in_force(places: Places, alarms: list[str], kept: str | None) -> None:
    write(places.state_dir / "matrix.json", ROWS)
    MatrixDesk(places, alarms.append)
    (places.state_dir / "matrix.json").unlink()
    good = places.state_dir / ".matrix-last-good.json"
    good.unlink()
    if kept is None:
        good.mkdir()
    else:
        good.write_text(kept)
    desk = MatrixDesk(places, alarms.append)
    with pytest.raises(Denied):
        desk.of(agent(), "/w")
    assert alarms
    write(places.state_dir / "matrix.json", {"tools": None})
    assert names(desk) is None and not desk.problem


def test_with_none_that_was_ever_good_nothing_is_known_and_so_denied(places: Places, alarms: list[str]) -> None:
    (places.state_dir / "matrix.json").write_text('{"tools": {"a": {"typo": 1}}}')
    desk = MatrixDesk(places, alarms.append)
    with pytest.raises(Denied, match="not understood"):
        desk.of(agent(), "/w")
    with pytest.raises(Denied, match="not understood"):
        desk.general()
    assert len(alarms) == 1


def test_a_type_has_its_own_and_whoever_has_none_has_everybodys(places: Places, alarms: list[str]) -> None:
    types = {"a": "reader", "b": "", "c": "other"}
    desk = MatrixDesk(places, alarms.append, lambda one: types[one.agent_id])
    write(places.state_dir / "matrix.json", ROWS)
    write(places.state_dir / "matrix" / "reader.json", {"tools": {"shell": {}}})
    assert [names(desk, agent(name)) for name in "abc"] == [["shell"], ["read_file"], ["read_file"]]
    (places.state_dir / "matrix" / "reader.json").unlink()
    assert names(desk, agent("a")) == ["shell"], "gone is no reason for others, which may allow more"


def test_it_is_read_once_for_each_workspace_and_anew_when_it_changed(places: Places, alarms: list[str]) -> None:
    file = places.state_dir / "matrix.json"
    write(file, ROWS)
    desk = MatrixDesk(places, alarms.append)

    def covered(workspace: str, path: str) -> bool:
        found = desk.of(agent(), workspace)
        assert found is not None
        return found["read_file"].paths[0].covers_path(path)

    assert covered("/w", "/w/x") and not covered("/w", "/v/x")
    assert covered("/v", "/v/x") and not covered("/v", "/w/x"), "another workspace has its own"
    assert desk.of(agent(), "/w") is desk.of(agent(), "/w")
    for at in range(COMPILED_MAX + 5):
        desk.of(agent(), f"/many/{at}")
    assert len(desk._all._compiled) == COMPILED_MAX
    write(file, {"tools": {"read_file": {"paths": ["/other/**"]}}})
    assert covered("/w", "/other/x") and not covered("/w", "/w/x")


def test_bounds_that_a_restart_would_not_know_of_deny_until_they_are_kept(
    places: Places, alarms: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = MatrixDesk(places, alarms.append)

    def no_room(*_anything: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(config_fallback, "replace_file", no_room)
    monkeypatch.setattr(config_fallback, "AGAIN_S", 0.0)
    with monkeypatch.context() as linkless:
        linkless.setattr(os, "link", no_room)
        write(places.state_dir / "matrix.json", ROWS)
        for _ in range(2):
            with pytest.raises(Denied, match="No space left"):
                desk.of(agent(), "/w")
        assert "No space left" in desk.problem and len(alarms) == 1
    assert names(desk) == ["read_file"] and not desk.problem, "a second name of the file takes no room"
    (places.state_dir / "matrix.json").unlink()
    assert names(MatrixDesk(places, alarms.append)) == ["read_file"], "a restart knows it"
