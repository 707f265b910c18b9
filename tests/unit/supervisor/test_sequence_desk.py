"""Which sequences are in force, whatever becomes of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.domain.errors import Denied
from console.domain.permission import PermissionRequest
from console.policy.disk import Disk
from console.policy.judge import Call, judge, tool_named
from console.settings.places import Places, find_places
from console.supervisor.sequence_desk import SequenceDesk
from tests.fakes.policy_world import context, rules, tools

STEPS = "steps: [{name: a, any: [{action: read}]}, {name: b, any: [{action: write}]}]"
OWN = f"watchfloor_sequences: 1\npatterns:\n- {{name: mine, why: w, {STEPS}}}\n"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = find_places(str(tmp_path / "s"), create=True)
    assert found is not None
    return found


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
