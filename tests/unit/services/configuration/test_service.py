"""What a running instance makes of the files of its settings: broken ones, changed ones, and what goes on record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from console.api.settings import SettingBody
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Denied, NotFound, NotRecorded, UsageProblem
from console.services.configuration.service import SettingsDesk
from console.settings.layers import in_force
from console.settings.places import Places


class Book:
    """Records and notices as they came."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.notices: list[str] = []
        self.refuses = False

    def record(self, record: Record) -> None:
        self.records.append(record)

    def record_first(self, record: Record) -> None:
        if self.refuses:
            raise NotRecorded("The log is full.")
        self.records.append(record)

    def notice(self, text: str, level: str = "amber") -> None:
        self.notices.append(text)


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "etc"
    (folder / "conf.d").mkdir(parents=True)
    monkeypatch.setenv("WATCHFLOOR_ETC", str(folder))
    return folder


def started(places: Places) -> tuple[SettingsDesk, Book]:
    book = Book()
    desk = SettingsDesk(places, in_force(places), book, book.notice)
    desk.begin()
    return desk, book


async def test_a_file_that_breaks_takes_nothing_away_and_is_told_once(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text("heartbeat_s = 20\n")
    desk, book = started(places)
    await desk.look()
    assert desk.trouble == "" and not book.notices
    (etc / "conf.d" / "50.toml").write_text("heartbeat_s = ")
    await desk.look()
    await desk.look()
    assert desk.settings.options.heartbeat_s == 20 and "50.toml:1:15: is not TOML" in desk.trouble and "stay in force" in desk.trouble
    desk.refuse_start()
    assert len(book.notices) == 1 and [record.kind for record in book.records] == ["settings.broken"]
    (etc / "conf.d" / "50.toml").unlink()
    await desk.look()
    assert desk.trouble == "" and book.records[-1].kind == "settings.mended"


async def test_a_start_with_a_broken_file_blocks_starts_until_the_files_say_what_is_in_force(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text("heartbeat_s = 20\n")
    started(places)
    os.chown(etc / "watchfloor.toml", 65534, 0)
    desk, book = started(places)
    assert desk.settings.options.heartbeat_s == 20, "the last good ones"
    with pytest.raises(Conflict, match="No agent starts: .*belongs to uid 65534"):
        desk.refuse_start()
    assert book.records[0].kind == "settings.broken" and book.notices
    os.chown(etc / "watchfloor.toml", 0, 0)
    (etc / "watchfloor.toml").write_text("heartbeat_s = 21\n")
    await desk.look()
    with pytest.raises(Conflict, match="take effect when Watchfloor is started again: heartbeat_s"):
        desk.refuse_start()
    (etc / "watchfloor.toml").write_text("heartbeat_s = 20.0\n")
    await desk.look()
    desk.refuse_start()
    assert desk.trouble == ""


async def test_a_changed_file_takes_effect_at_the_next_start_and_is_on_record_then(etc: Path, places: Places) -> None:
    desk, book = started(places)
    assert book.records == [], "a first start changes nothing"
    places.settings_file.write_text('{"spawn": {"max_depth": 7}}')
    await desk.look()
    assert desk.trouble == "Changed settings take effect when Watchfloor is started again: spawn.max_depth." and book.notices
    desk, book = started(places)
    assert desk.trouble == ""
    assert book.records[0].what == f"spawn.max_depth: 3 -> 7, by {places.settings_file}"
    assert book.records[0].data == {"key": "spawn.max_depth", "old": 3, "new": 7, "origin": str(places.settings_file)}
    places.settings_file.write_text("{")
    await desk.look()
    assert "settings.json: the file" in desk.trouble and "stay in force" in desk.trouble


async def test_what_a_lock_ignores_is_told(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text('locked = ["heartbeat_s"]\n')
    places.settings_file.write_text('{"heartbeat_s": 5}')
    desk, book = started(places)
    assert desk.settings.options.heartbeat_s == 30 and "watchfloor.toml:1 locks it" in book.notices[0]


async def test_a_change_is_on_record_with_old_and_new_value_and_waits_for_the_next_start(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text("[spawn]\nmax_depth = 2\n")
    desk, book = started(places)
    view = await desk.change(SettingBody(key="spawn.max_depth", value=5, reason="the release"), "operator:1000")
    row = next(row for row in view.rows if row.key == "spawn.max_depth")
    assert (row.value, row.is_waiting, row.next_value, row.layer, row.origin) == (2, True, 5, "account", str(places.settings_file))
    assert "spawn.max_depth" in view.trouble
    record = book.records[0]
    assert (record.actor, record.kind, record.what) == ("operator:1000", "settings.changed", "spawn.max_depth: 2 -> 5: the release")
    assert record.data == {"key": "spawn.max_depth", "old": 2, "new": 5, "reset": False, "reason": "the release"}
    assert in_force(places).options.spawn.max_depth == 5
    view = await desk.change(SettingBody(key="spawn.max_depth", reset=True, reason="over"), "operator:1000")
    assert view.trouble == "" and in_force(places).options.spawn.max_depth == 2 and book.records[-1].data["new"] is None


async def test_a_change_that_cannot_be_recorded_is_not_made(etc: Path, places: Places) -> None:
    desk, book = started(places)
    book.refuses = True
    with pytest.raises(NotRecorded):
        await desk.change(SettingBody(key="spawn.max_depth", value=5, reason="x"), "operator:1000")
    assert not places.settings_file.exists()


async def test_a_locked_key_is_refused_on_record_and_a_wrong_value_changes_nothing(etc: Path, places: Places) -> None:
    (etc / "watchfloor.toml").write_text('locked = ["spawn.*"]\n')
    desk, book = started(places)
    assert next(row for row in (await desk.view()).rows if row.key == "spawn.max_depth").locked_by == f"{etc}/watchfloor.toml:1"
    with pytest.raises(Denied, match="watchfloor.toml:1 locks it"):
        await desk.change(SettingBody(key="spawn.max_depth", value=5, reason="x"), "operator:1000")
    assert (book.records[0].kind, book.records[0].verdict, book.records[0].actor) == ("settings.refused", "deny", "operator:1000")
    wrong: list[dict[str, Any]] = [{"value": "many"}, {"value": True}, {"value": None}, {"value": -1}, {"value": [3]}]
    for body in wrong:
        with pytest.raises(UsageProblem):
            await desk.change(SettingBody(key="canary_s", reason="x", **body), "operator:1000")
    with pytest.raises(NotFound):
        await desk.change(SettingBody(key="canary\x1b[31m", value=1, reason="x"), "operator:1000")
    (etc / "conf.d" / "1.toml").write_text("x")
    with pytest.raises(Conflict, match="1.toml:1:"):
        await desk.change(SettingBody(key="canary_s", value=5, reason="x"), "operator:1000")
    assert not places.settings_file.exists() and len(book.records) == 1
