"""The webhook's worker: what becomes of an alert when the receiver, the keyring or the disk refuse."""

from __future__ import annotations

import asyncio
import errno
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from console.api.alerts import AlertView
from console.credentials.keyring_store import Store
from console.domain.engine.command import Record
from console.domain.errors import NotRecorded, Unavailable, UsageProblem
from console.services.webhook import address, outbox, service
from console.services.webhook.service import Webhook
from tests.fakes.daemons import alerts_into
from tests.fakes.webhook_receiver import receiving


class Book:
    """Takes records, or refuses them."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.refuses = False

    def record(self, record: Record) -> None:
        self.kinds.append(record.kind)

    def record_first(self, record: Record) -> None:
        if self.refuses:
            raise NotRecorded("It could not be recorded.")
        self.record(record)


class Room:
    """A webhook whose worker runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.book, self.notices = folder, Book(), list[str]()
        self.keyring = Store("00c0ffee", folder / "keys", backend="file")
        self.webhook = self.made()
        self.worker = asyncio.create_task(self.webhook.run())

    def made(self) -> Webhook:
        return Webhook(self.folder, self.keyring, self.book, lambda text, _level="amber": self.notices.append(text))  # type: ignore[arg-type]

    async def end(self) -> None:
        self.worker.cancel()
        await asyncio.wait([self.worker])

    async def restart(self) -> None:
        await self.end()
        self.webhook = self.made()
        self.worker = asyncio.create_task(self.webhook.run())

    def alert(self) -> AlertView:
        return alerts_into([]).test()

    async def until(self, what: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not what():
            assert time.monotonic() < end and not self.worker.done(), (self.webhook.view(), self.notices)
            await asyncio.sleep(0.01)


@pytest.fixture
async def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.setattr(service, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(service, "LONGEST_PAUSE_S", 0.05)
    made = Room(tmp_path)
    yield made
    await made.end()


async def test_without_a_webhook_alerts_are_dropped(room: Room) -> None:
    room.webhook.take(room.alert())
    await asyncio.sleep(0.05)
    assert room.webhook.view().waiting == 0 and not (room.folder / "webhook").exists()


async def test_a_change_that_cannot_be_recorded_is_not_made(room: Room) -> None:
    room.book.refuses = True
    with pytest.raises(NotRecorded):
        await room.webhook.set("https://example.com/", "", "operator:0")
    assert not room.webhook.view().url and room.keyring.get("webhook") is None
    with pytest.raises(UsageProblem):
        await room.webhook.set("https://example.com/", "whsec_short", "operator:0")


async def test_it_is_on_disk_before_it_is_sent_and_gone_after(room: Room) -> None:
    with receiving() as receiver:
        secret = (await room.webhook.set(receiver.url, "", "operator:0")).secret
        receiver.status = 503
        alert = room.alert()
        room.webhook.take(alert)
        await room.until(lambda: len(receiver.got) >= 3)
        assert len(list((room.folder / "webhook").glob("*.json"))) == 1
        receiver.status = 200
        await room.until(lambda: room.webhook.view().waiting == 0)
        assert not list((room.folder / "webhook").glob("*.json"))
        assert {one["id"] for one in receiver.alerts(secret)} == {alert.id}
        assert len([text for text in room.notices if "takes no alerts" in text]) == 1


async def test_one_that_the_receiver_never_takes_holds_up_no_other(room: Room) -> None:
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        receiver.status = 400
        first, second = room.alert(), room.alert()
        room.webhook.take(first)
        await room.until(lambda: receiver.got)
        room.webhook.take(second)
        await room.until(lambda: {headers["webhook-id"] for headers, _ in receiver.got} >= {first.id, second.id})


async def test_410_gone_stops_it_until_a_test_succeeds_and_nothing_is_lost(room: Room) -> None:
    with receiving() as receiver:
        secret = (await room.webhook.set(receiver.url, "", "operator:0")).secret
        receiver.status = 410
        room.webhook.take(room.alert())
        await room.until(lambda: [text for text in room.notices if "410 Gone" in text])  # said once it is on disk
        await room.restart()
        tried = len(receiver.got)
        room.webhook.take(room.alert())
        await room.until(lambda: room.webhook.view().waiting == 2)
        await asyncio.sleep(0.2)
        view = room.webhook.view()
        assert view.stopped and view.next_try_s is None and len(receiver.got) == tried
        assert not (await room.webhook.test(room.alert())).delivered and room.webhook.view().stopped
        receiver.status = 200
        assert (await room.webhook.test(room.alert())).delivered
        await room.until(lambda: room.webhook.view().waiting == 0)
        assert len({one["id"] for one in receiver.alerts(secret)}) == 4


async def test_after_a_day_it_is_given_up_seen_and_on_record(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        receiver.status = 503
        room.webhook.take(room.alert())
        await room.until(lambda: receiver.got)
        monkeypatch.setattr(service, "DAY_S", 0.0)
        await room.until(lambda: room.webhook.view().waiting == 0)
        view = room.webhook.view()
        assert view.given_up == 1 and view.given_up_since and "webhook.given_up" in room.book.kinds
        await room.restart()
        assert room.webhook.view().given_up == 1
        receiver.status = 200
        assert (await room.webhook.test(room.alert())).delivered and room.webhook.view().given_up == 0


async def test_more_than_the_bound_takes_the_oldest_away(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST", 3)
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        receiver.status = 503
        for _ in range(8):
            room.webhook.take(room.alert())
        await room.until(lambda: room.webhook.view().waiting == 3)
        assert room.webhook.view().given_up == 5
        await room.until(lambda: len(list((room.folder / "webhook").glob("*.json"))) == 3)


async def test_without_its_secret_it_waits_and_says_so(room: Room) -> None:
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        room.keyring.delete("webhook")
        room.webhook.take(room.alert())
        await room.until(lambda: "secret is missing" in room.webhook.view().trouble)
        assert not receiver.got and room.webhook.view().waiting == 1
        await room.webhook.set(receiver.url, "", "operator:0")
        await room.until(lambda: room.webhook.view().waiting == 0)
        assert len(receiver.got) == 1


async def test_a_full_disk_keeps_none_from_being_sent(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(outbox, "replace_file", full)
        room.webhook.take(room.alert())
        await room.until(lambda: receiver.got)
        await room.until(lambda: room.webhook.view().waiting == 0)
        assert [text for text in room.notices if "No space left" in text]


async def test_a_damaged_state_file_still_delivers_from_the_keyring(room: Room) -> None:
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        for broken in ("{", '{"url": 7}', '{"other": 1}', ""):
            (room.folder / "webhook.json").write_text(broken)
            await room.restart()
            assert "cannot be read" in room.webhook.view().url
            receiver.got.clear()
            room.webhook.take(room.alert())
            await room.until(lambda: receiver.got)


async def test_removed_it_drops_what_waits_and_the_secret(room: Room) -> None:
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        receiver.status = 503
        room.webhook.take(room.alert())
        await room.until(lambda: receiver.got)
        view = await room.webhook.remove("operator:0")
        assert not view.url and view.waiting == 0 and room.keyring.get("webhook") is None
        assert not list((room.folder / "webhook").glob("*.json")) and not (room.folder / "webhook.json").exists()


async def test_a_pause_doubles_has_jitter_and_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_S", 5.0)
    monkeypatch.setattr(service, "LONGEST_PAUSE_S", 3600.0)
    assert all(2.5 <= service.pause_after(1) <= 7.5 for _ in range(50))
    assert all(1800 <= service.pause_after(n) <= 5400 for n in (12, 100, 10_000))


@pytest.mark.parametrize("turns", range(6))
async def test_it_ends_when_it_is_told_to_at_whatever_moment(room: Room, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_S", 600.0)
    monkeypatch.setattr(service, "LONGEST_PAUSE_S", 600.0)
    with receiving() as receiver:
        await room.webhook.set(receiver.url, "", "operator:0")
        receiver.status = 503
        room.webhook.take(room.alert())
        await room.until(lambda: room.webhook.view().trouble)
        await asyncio.sleep(0.05)  # it sleeps now, until its pause is over
        room.webhook.take(room.alert())
        for _ in range(turns):
            await asyncio.sleep(0)
        room.worker.cancel()
        done, _ = await asyncio.wait([room.worker], timeout=20)
        assert done, "its cancellation was lost"


OLD, NEW = "https://old.example/old-hidden-topic", "https://new.example/new-hidden-topic"


def disk_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(address, "replace_file", full)


async def test_a_change_that_the_disk_refuses_leaves_the_former_receiver(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await room.webhook.set(OLD, "", "operator:0")
    before = room.keyring.get("webhook")
    disk_that_refuses(monkeypatch)
    with pytest.raises(OSError, match="No space"):
        await room.webhook.set(NEW, "", "operator:0")
    assert room.keyring.get("webhook") == before and room.webhook.view().url == "https://old.example/[hidden]"


async def test_the_first_receiver_that_the_disk_refuses_is_none(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_that_refuses(monkeypatch)
    with pytest.raises(OSError, match="No space"):
        await room.webhook.set(NEW, "", "operator:0")
    assert room.keyring.get("webhook") is None and not room.webhook.view().url


async def test_the_new_receiver_is_shown_where_the_keyring_does_not_take_the_former_back(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await room.webhook.set(OLD, "", "operator:0")
    disk_that_refuses(monkeypatch)
    kept, seen = room.keyring.set, list[str]()

    def once(name: str, value: str) -> None:
        seen.append(value)
        if len(seen) > 1:
            raise Unavailable("The keyring is locked.", "")
        kept(name, value)

    monkeypatch.setattr(room.keyring, "set", once)
    with pytest.raises(OSError, match="No space"):
        await room.webhook.set(NEW, "", "operator:0")
    assert NEW in str(room.keyring.get("webhook")) and room.webhook.view().url == "https://new.example/[hidden]"


async def test_a_change_that_broke_off_before_the_disk_is_shown_after_the_next_try(room: Room) -> None:
    with receiving() as receiver:
        await room.webhook.set(OLD, "", "operator:0")
        secret = json.loads(str(room.keyring.get("webhook")))["secret"]
        await room.end()
        room.keyring.set("webhook", json.dumps({"url": receiver.url, "secret": secret}))  # and then the power went
        await room.restart()
        assert room.webhook.view().url == "https://old.example/[hidden]"
        assert (await room.webhook.test(room.alert())).delivered
        assert room.webhook.view().url == f"http://127.0.0.1:{receiver.port}/[hidden]"
        await room.restart()
        assert room.webhook.view().url == f"http://127.0.0.1:{receiver.port}/[hidden]"


async def test_what_an_earlier_version_showed_of_the_path_is_hidden(room: Room) -> None:
    await room.webhook.set(OLD, "", "operator:0")
    file = room.folder / "webhook.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "url": "https://old.example/old-hidden-topic"}))
    await room.restart()
    assert room.webhook.view().url == "https://old.example/[hidden]"


async def test_user_path_and_query_are_hidden_wherever_they_would_be_shown(room: Room) -> None:
    await room.webhook.set("https://the-user%40:the-password@example.com/my-own-topic/part?key=the-query", "", "operator:0")
    said = "my-own-topic/part the-user%40 the-user@ the-password key=the-query example.com"
    assert room.keyring.redactor.redact(said) == " ".join(["[secret]"] * 5 + ["example.com"])
    await room.webhook.set("https://example.com/my-own-topic", "", "operator:0")
    assert room.keyring.redactor.redact("posted to my-own-topic") == "posted to [secret]"
    await room.webhook.set("https://survivors:a-password@example.com/operator", "", "operator:0")
    assert room.keyring.redactor.redact("operator: 0 survivors, not a-password") == "operator: 0 survivors, not [secret]", (
        "a word is no secret"
    )
