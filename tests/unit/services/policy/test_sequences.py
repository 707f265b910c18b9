"""Which sequences are in force, whatever becomes of the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.calls.permission import PermissionRequest
from console.domain.errors import Denied
from console.policy.files.disk import Disk
from console.policy.judge import Call, judge, tool_named
from console.services.policy import config_fallback
from console.services.policy.sequences import SequenceDesk
from console.settings.places import Places
from tests.fakes.policy_world import context, rules, tools

STEPS = "steps: [{name: a, any: [{action: read}]}, {name: b, any: [{action: write}]}]"
OWN = f"watchfloor_sequences: 1\npatterns:\n- {{name: mine, why: w, {STEPS}}}\n"


def names(desk: SequenceDesk) -> list[str]:
    return [pattern.name for pattern in desk.patterns() if not pattern.built_in]


def test_a_file_is_taken_up_and_the_last_good_one_survives_a_broken_one_and_a_restart(places: Places) -> None:
    alarms: list[str] = []
    desk = SequenceDesk(places, alarms.append)
    assert names(desk) == [] and len(desk.patterns()) == 3
    file = places.state_dir / "sequences.yaml"
    file.write_text(OWN)
    assert names(desk) == ["mine"] and not alarms
    file.write_text("broken: [")
    assert names(desk) == ["mine"] and len(alarms) == 1
    assert names(SequenceDesk(places, alarms.append)) == ["mine"]
    file.unlink()
    assert names(desk) == ["mine"] and "gone" in alarms[-1]
    file.write_text("watchfloor_sequences: 1\n")
    assert names(desk) == [] and desk.problem == ""


def test_a_broken_one_where_none_was_ever_good_denies(places: Places) -> None:
    alarms: list[str] = []
    (places.state_dir / "sequences.yaml").write_text("")
    desk = SequenceDesk(places, alarms.append)
    with pytest.raises(Denied):
        desk.patterns()
    assert len(alarms) == 1
    (places.state_dir / "sequences.yaml").write_text(OWN)
    assert names(desk) == ["mine"]


def test_a_broken_one_that_is_taken_away_leaves_what_was_in_force_before_it(places: Places) -> None:
    file = places.state_dir / "sequences.yaml"
    desk = SequenceDesk(places, lambda _words: None)
    file.write_text("[")
    with pytest.raises(Denied):
        desk.patterns()
    file.unlink()
    assert len(desk.patterns()) == 3 and desk.problem == ""


def test_what_changes_behind_a_link_is_changed_and_a_link_to_nothing_is_said(places: Places, tmp_path: Path) -> None:
    alarms: list[str] = []
    elsewhere = tmp_path / "reviewed.yaml"
    elsewhere.write_text(OWN)
    (places.state_dir / "sequences.yaml").symlink_to(elsewhere)
    desk = SequenceDesk(places, alarms.append)
    assert names(desk) == ["mine"]
    elsewhere.write_text(OWN.replace("mine", "another"))
    assert names(desk) == ["another"] and not alarms
    elsewhere.unlink()
    assert names(desk) == ["another"] and "a link to nothing" in alarms[-1]


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_plain_file_is_waited_for_by_nobody(places: Places, kind: str) -> None:
    alarms: list[str] = []
    file = places.state_dir / "sequences.yaml"
    file.write_text(OWN)
    desk = SequenceDesk(places, alarms.append)
    file.unlink()
    os.mkfifo(file) if kind == "pipe" else file.mkdir()
    assert names(desk) == ["mine"] and "no plain file" in alarms[-1]


def test_a_folder_read_whole_is_looked_through_on_this_disk(places: Places, tmp_path: Path) -> None:
    desk = SequenceDesk(places, lambda _words: None)
    work = tmp_path / "w"
    (work / "deep").mkdir(parents=True)
    found = judge(Call("shell", f"grep -r x {work}"), context(rules(allow=["shell(grep:*)", f"file(read:{work}/**)"]), Disk()))

    def patterns(contained: bool = False) -> list[str]:
        request = PermissionRequest("shell", "grep")
        return [m.pattern for m in desk.matches(request, tool_named(Call("shell", ""), tools()), found, contained)]

    assert patterns() == [] and patterns(contained=True) == ["credential-then-network"]
    (work / "deep" / ".env").write_text("K=1")
    assert patterns() == ["credential-then-network"]
    (work / "deep" / ".env").unlink()
    (work / "a").symlink_to("/run/secrets/token")
    assert patterns() == ["credential-then-network"]


def test_sequences_that_a_restart_would_not_know_of_deny_until_they_are_kept(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    alarms: list[str] = []
    desk = SequenceDesk(places, alarms.append)

    def no_room(*_anything: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(config_fallback, "AGAIN_S", 0.0)
    with monkeypatch.context() as full:
        full.setattr(config_fallback, "replace_file", no_room)
        full.setattr(os, "link", no_room)
        (places.state_dir / "sequences.yaml").write_text(OWN)
        with pytest.raises(Denied, match="No space left"):
            desk.patterns()
        assert "No space left" in alarms[0]
    assert names(desk) == ["mine"] and not desk.problem
