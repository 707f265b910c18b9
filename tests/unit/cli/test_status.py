"""``watchfloor status`` with nobody alive: what the disk says."""

from __future__ import annotations

import pytest

from console.cli.terminal import out
from console.killswitch.store.latch import Latch
from console.settings.places import Places
from tests.fakes.verbs import Watchfloor


def test_a_latch_on_disk_reads_as_killed_with_everybody_dead(watchfloor: Watchfloor, places: Places) -> None:
    said = watchfloor("status", "--json")
    assert (said.code, said.json["state"], said.json["armed"]["state"]) == (6, "in_doubt", "in_doubt")
    places.guard_dir.mkdir()
    latch = Latch(places.guard_dir, run_dir=places.run_dir)
    latch.press("20261122-151544-5756a031", "odd writes")
    latch.save()
    said = watchfloor("status", "--json")
    assert (said.code, said.json["state"], said.json["armed"]["state"]) == (6, "killed", "killed")
    said = watchfloor("status")
    assert (
        said.out.startswith("EVERYTHING STOPPED: nothing can start until you rearm") and "the latch on disk holds: odd writes" in said.out
    )


def test_one_that_cannot_be_read_reads_as_killed_too(watchfloor: Watchfloor, places: Places) -> None:
    places.guard_dir.mkdir()
    latch = Latch(places.guard_dir, run_dir=places.run_dir)
    latch.save()
    assert watchfloor("status", "--json").json["state"] == "in_doubt"
    latch.path.write_text("nonsense")
    assert watchfloor("status", "--json").json["state"] == "killed"
    latch.path.unlink()
    assert watchfloor("status", "--json").json["state"] == "killed"


def test_at_a_terminal_no_line_of_it_is_wider(watchfloor: Watchfloor, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    said = watchfloor("status", "--state-dir", str(places.state_dir)).out.splitlines()
    words = [line for line in said if "/" not in line]  # a path stays in one piece
    assert max(map(len, words)) <= 80 and any(line.startswith("  ") for line in words), said
