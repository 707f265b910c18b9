"""Which sequences are in force, whatever becomes of the file."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.calls.permission import PermissionRequest
from console.domain.errors import Denied
from console.policy.files.disk import Disk
from console.policy.files.paths import Files
from console.policy.files.walk import Listing
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


class Hidden(Disk):
    """A disk that shows no folder."""

    def listing(self, folder: str) -> Listing:
        return Listing(state="unreadable")


ORDINARY = ["grep", "git", "rg", "ls", "find", "du", "tree", "fd", "cp", "tar"]


def taken(places: Places, work: Path, command: str, files: Files | None = None) -> list[str]:
    """Names of the patterns of which a command in a folder is a step."""
    allowed = rules(allow=[*(f"shell({name}:*)" for name in ORDINARY), f"file(read:{work}/**)", f"file(write:{work}/**)"])
    asked = replace(context(allowed, files or Disk()), cwd=str(work))
    found = judge(Call("shell", command), asked)
    assert found.verdict != "deny", found
    request = PermissionRequest("shell", command)
    desk = SequenceDesk(places, lambda _words: None)
    return [m.pattern for m in desk.matches(request, tool_named(Call("shell", command), tools()), found, asked.files)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as people have it: a virtual environment with its links, many files, and the home of the agent's own program."""
    work = tmp_path / "w"
    for folder in ("src", ".venv/lib", ".watchfloor/claude/sessions", "many"):
        (work / folder).mkdir(parents=True)
    (work / ".venv" / "lib64").symlink_to("lib")
    (work / ".watchfloor" / "claude" / "sessions" / "6.1b7a.key").write_text("k")
    for number in range(4000):
        (work / "many" / f"{number}.txt").touch()
    subprocess.run(["git", "init", "-q", work], check=True)
    return work


@pytest.mark.parametrize("command", ["grep -rn x .", "git add -A", "rg x", "git diff", "cp -r . ../copy", "tar -cf ../a.tar .", "fd x"])
def test_ordinary_reads_of_a_whole_project_read_no_credential(places: Places, project: Path, command: str) -> None:
    assert taken(places, project, command) == []


@pytest.mark.parametrize(
    "command",
    ["ls -R", "find . -name '*.py'", "find .", "du -sh .", "tree", "fd -H x", "grep -rn x src", "find . -name '*.py' -exec grep x {} +"],
)
def test_who_sees_the_name_of_a_credential_or_reads_beside_it_has_not_read_it(places: Places, project: Path, command: str) -> None:
    (project / ".env").write_text("K=1")
    assert taken(places, project, command) == []


@pytest.mark.parametrize(
    "command", ["grep -rn x .", "git add -A", "git add .", "rg --hidden x", "cp -r . ../copy", "find . -exec grep x {} +"]
)
def test_a_credential_among_what_is_read_whole_is_read(places: Places, project: Path, command: str) -> None:
    (project / "src" / ".env").write_text("K=1")
    assert taken(places, project, command) == ["credential-then-network"]


def test_what_git_ignores_or_does_not_know_is_not_read_by_it(places: Places, project: Path) -> None:
    (project / "src" / ".env").write_text("K=1")
    assert taken(places, project, "git diff") == [], "it is not tracked"
    (project / ".gitignore").write_text(".env\n")
    assert taken(places, project, "git add -A") == []
    subprocess.run(["git", "-C", project, "add", "-f", "src/.env"], check=True)
    assert taken(places, project, "git diff") == taken(places, project, "git add -A") == ["credential-then-network"]


def test_a_link_that_is_followed_and_a_folder_that_no_disk_shows_may_hold_a_credential(places: Places, project: Path) -> None:
    (project / "src" / "a").symlink_to("/run/secrets/token")
    assert taken(places, project, "grep -rn x .") == [], "grep follows no link below a folder"
    assert taken(places, project, "grep -Rn x .") == ["credential-then-network"]
    assert taken(places, project, "grep -rn x .", Hidden()) == ["credential-then-network"]


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
