"""What is not found has ended only for who looks from where it was recorded; after another boot for everybody."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from console.killswitch.store import registry
from console.killswitch.store.registry import NO_GROUP, NO_PROCESS, UNFOLLOWED, Place, here, is_mounted, place_from, why_unknown

ELSEWHERE = [replace(here(), pid_namespace=7), replace(here(), cgroup_namespace=7)]


@pytest.fixture
def gone(tmp_path: Path) -> str:
    """A removed leaf of a tree that is mounted."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "cgroup.procs").touch()
    return str(tmp_path / "agents" / "a-1-00000000")


def why(recorded: Place, folder: str = "", *, is_open: bool = False, pid: int = 9, is_loose: bool = False, is_held: bool = False) -> str:
    return why_unknown(recorded, folder=folder, is_open=is_open, pid=pid, is_loose=is_loose, is_held=is_held)


def test_what_was_removed_where_it_was_recorded_is_gone(gone: str) -> None:
    for recorded in (here(), Place()):  # a record of before says nothing of its place
        assert why(recorded, gone) == "" and why(recorded) == ""


@pytest.mark.parametrize("recorded", ELSEWHERE)
def test_from_elsewhere_nothing_that_is_not_found_is_gone(recorded: Place, gone: str) -> None:
    assert why(recorded, gone) == NO_GROUP and why(recorded) == NO_PROCESS
    assert why(recorded, gone, is_open=True) == "", "the kernel speaks of a cgroup to whoever has it open"
    assert why(recorded, pid=0) == "", "nothing of it ever ran"


def test_where_no_cgroups_are_mounted_none_is_gone(tmp_path: Path, gone: str) -> None:
    assert why(here(), str(tmp_path / "elsewhere" / "agents" / "a-1")) == NO_GROUP
    Path(gone).with_name("cgroup.procs").unlink()
    assert why(here(), gone) == NO_GROUP and not is_mounted(Path(gone)) and not is_mounted(Path("/"))


def test_whom_nobody_holds_together_and_nobody_followed_is_not_gone() -> None:
    assert why(here(), is_loose=True) == UNFOLLOWED and why(here(), is_loose=True, is_held=True) == ""


@pytest.mark.parametrize("recorded", [here(), *ELSEWHERE])
def test_another_boot_ended_everything(recorded: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = replace(recorded, boot="another")
    assert why(before, str(tmp_path / "a")) == why(before, is_loose=True) == ""
    monkeypatch.setattr(registry, "here", lambda: replace(recorded, boot=""))  # it cannot be told
    assert why(before, str(tmp_path / "a")) == NO_GROUP


def test_a_place_comes_back_as_it_was_and_what_is_odd_is_not_known() -> None:
    assert place_from(asdict(here())) == here() and here().boot and here().pid_namespace and here().cgroup_namespace
    odds: tuple[object, ...] = (None, [], "x", {"boot": 5, "pid_namespace": "7"})
    for odd in odds:
        assert place_from(odd) == Place()
