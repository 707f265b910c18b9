"""The desk of the allowlist: no change is lost to another, none is live before it is kept, and nobody gets to the kill file."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.api import allowlist_review as r
from console.api import messages as m
from console.domain.engine.command import Record
from console.domain.errors import Conflict, Denied, NotRecorded, UsageProblem
from console.domain.network import Allowlist, AllowlistEntry, EgressRecord
from console.egress.allowlist_file import write_file
from console.egress.answers import Applied, Availability, Validation
from console.ledger.store import Ledger
from console.policy.review.allowlist_review import Mark, overlaps
from console.services.network import service as networks
from console.services.network.review import ReviewDesk
from console.services.network.service import NetworkDesk
from console.settings.options import Options


class StubbornLedger(Ledger):
    """Keeps allowlists unless told not to."""

    refuses = False

    def save_allowlist(self, allowlist: Allowlist, by: str, reason: str, at: float) -> None:
        if self.refuses:
            raise NotRecorded("The ledger could not be written: no space left.", "Make room.")
        super().save_allowlist(allowlist, by, reason, at)


class World:
    """A desk, and an Envoy that takes whatever it gets unless told not to."""

    def __init__(self, folder: Path, bucket: str = "", endpoint: str = "") -> None:
        self.ledger = StubbornLedger(folder / "ledger.db")
        self.live = Allowlist()
        self.told: list[tuple[str, str]] = []
        self.notices: list[str] = []
        self.takes = True
        self.bucket, self.endpoint = bucket, endpoint
        self.start()

    def start(self) -> None:
        options = Options.read({"remote": {"bucket": self.bucket, "endpoint": self.endpoint}})
        scribe = SimpleNamespace(ledger=self.ledger, record_first=self.told_of, record=self.told_of)
        egress = SimpleNamespace(
            available=lambda: Availability(True, "here"), validate=lambda _: Validation(True, "", 1.0), apply=self.apply,
            attached=list, health=lambda: ("healthy", ""),
        )  # fmt: skip
        core = SimpleNamespace(state=SimpleNamespace(killed=False), hub=SimpleNamespace(publish=lambda *_: None))
        parts: Any = SimpleNamespace(
            options=options, scribe=scribe, egress=egress, core=core, notice=lambda text, level="amber": self.notices.append(text)
        )
        self.desk = NetworkDesk(parts.core, parts.scribe, parts.egress, parts.options, parts.notice, self.ledger.allowlist())
        self.review = ReviewDesk(parts.scribe, self.desk)

    def told_of(self, record: Record) -> None:
        self.told.append((record.kind, record.verdict))

    def apply(self, allowlist: Allowlist) -> Applied:
        if not self.takes:
            return Applied(self.live.version, 1.0, 0, False, "it is not well")
        self.live = allowlist
        return Applied(allowlist.version, 1.0, 0, True, "")

    def hosts(self) -> list[str]:
        """Of the live list, which Envoy, desk and ledger must agree on."""
        live = [e.host for e in self.live.entries]
        assert [e.host for e in self.desk.allowlist.entries] == live
        assert [e.host for e in self.ledger.allowlist().entries] == live
        return live


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.ledger.close()


def body(host: str, **fields: Any) -> m.AllowlistEntryBody:
    return m.AllowlistEntryBody.read({"host": host, "reason": "tests", "owner": "ops", **fields})


def add(world: World, *hosts: str) -> list[str]:
    return [asyncio.run(world.desk.add(body(host), "ann")).entry_id for host in hosts]


def together(*changes: Any) -> list[Any]:
    async def run() -> list[Any]:
        return list(await asyncio.gather(*changes, return_exceptions=True))

    return asyncio.run(run())


def test_two_who_add_at_once_without_naming_a_version_lose_nothing(world: World) -> None:
    done = together(*(world.desk.add(body(f"h{n}.example.com"), "ann") for n in range(4)))
    kept = [d for d in done if isinstance(d, m.AllowlistChangedView)]
    assert len(kept) == 1 and all(isinstance(d, Conflict) for d in done if d not in kept)
    assert len(world.hosts()) == 1


def test_a_list_is_compared_with_itself_once_for_each_version_and_never_on_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def watched(live: Allowlist) -> dict[str, tuple[Mark, ...]]:
        threads.append(threading.current_thread())
        return overlaps(live)

    monkeypatch.setattr(networks, "overlaps", watched)
    add(world, "a.example.com", "*.example.com")
    views = [asyncio.run(world.desk.view()) for _ in range(3)]
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
    assert [mark.kind for mark in views[2].entries[0].marks] == ["overlap"]
    add(world, "b.example.com")
    asyncio.run(world.desk.view())
    assert len(threads) == 2


@pytest.mark.parametrize("second", ["edit", "remove", "revert", "import"])
def test_a_change_never_takes_back_what_another_did_meanwhile(world: World, second: str) -> None:
    first, _ = add(world, "a.example.com", "b.example.com")
    file = write_file((AllowlistEntry("x", "d.example.com", reason="r", owner="o"),))
    change: Callable[[], Coroutine[Any, Any, object]] = {
        "edit": lambda: world.desk.edit(first, body("a2.example.com"), "bob"),
        "remove": lambda: world.desk.remove(first, None, "bob", "gone"),
        "revert": lambda: world.review.revert(r.RevertBody(version=1, reason="back"), "bob"),
        "import": lambda: world.review.take_file(r.ImportBody(text=file, reason="file"), "bob"),
    }[second]

    async def meanwhile() -> list[Any]:
        async with world.desk._lock:  # a change is under way
            ours = [asyncio.ensure_future(world.desk.remove(_id(world, "b.example.com"), None, "ann", "gone"))]
            ours.append(asyncio.ensure_future(change()))  # type: ignore[arg-type]
            while len(getattr(world.desk._lock, "_waiters", None) or ()) < 2:  # both have read what they change, and wait
                await asyncio.sleep(0.01)
        return list(await asyncio.gather(*ours, return_exceptions=True))

    removed, other = asyncio.run(meanwhile())
    assert isinstance(removed, m.AllowlistChangedView) and isinstance(other, Conflict)
    assert world.hosts() == ["a.example.com"]


def _id(world: World, host: str) -> str:
    return next(e.entry_id for e in world.desk.allowlist.entries if e.host == host)


@pytest.mark.parametrize("version", [0, 2, 9])
def test_a_version_that_is_not_live_is_a_conflict(world: World, version: int) -> None:
    (first,) = add(world, "a.example.com")
    file = write_file(())
    done = together(
        world.desk.add(body("b.example.com", base_version=version), "ann"),
        world.desk.edit(first, body("b.example.com", base_version=version), "ann"),
        world.desk.remove(first, version, "ann", "gone"),
        world.review.revert(r.RevertBody(version=0, reason="back", base_version=version), "ann"),
        world.review.take_file(r.ImportBody(text=file, replace=True, reason="file", base_version=version), "ann"),
    )
    assert [type(d) for d in done] == [Conflict] * 5
    assert world.hosts() == ["a.example.com"]


def test_a_list_that_cannot_be_kept_is_never_live(world: World) -> None:
    add(world, "a.example.com")
    seen: list[Allowlist] = []
    world.desk._egress.apply = lambda allowlist: seen.append(allowlist) or world.apply(allowlist)  # type: ignore[func-returns-value, method-assign]
    world.ledger.refuses = True
    with pytest.raises(NotRecorded):
        add(world, "b.example.com")
    assert seen == []
    assert ("allowlist.add", "failed") in world.told
    world.ledger.refuses = False
    assert world.hosts() == ["a.example.com"]
    add(world, "c.example.com")
    assert world.hosts() == ["a.example.com", "c.example.com"]


def test_what_envoy_did_not_take_is_taken_back_in_the_history_too(world: World) -> None:
    add(world, "a.example.com")
    world.takes = False
    with pytest.raises(UsageProblem, match="it is not well"):
        add(world, "b.example.com")
    assert world.hosts() == ["a.example.com"]
    assert "not taken by Envoy" in world.ledger.allowlist_history()[0].reason
    world.takes = True
    add(world, "c.example.com")
    assert world.hosts() == ["a.example.com", "c.example.com"]


def test_a_way_back_that_cannot_be_kept_is_said_and_blocks_nothing_later(world: World) -> None:
    add(world, "a.example.com")
    world.takes = False
    keep = world.ledger.save_allowlist

    def once(*args: Any) -> None:
        keep(*args)
        world.ledger.refuses = True

    world.ledger.save_allowlist = once  # type: ignore[method-assign, assignment]
    with pytest.raises(UsageProblem, match="next start"):
        asyncio.run(world.desk.add(body("b.example.com"), "ann"))
    del world.ledger.save_allowlist
    world.ledger.refuses, world.takes = False, True
    assert [e.host for e in world.desk.allowlist.entries] == ["a.example.com"]
    add(world, "c.example.com")
    assert world.hosts() == ["a.example.com", "c.example.com"]


KILL_HOSTS = [
    "storage.googleapis.com", "ours.storage.googleapis.com", "theirs.storage.googleapis.com", "*.storage.googleapis.com",
    "*.googleapis.com", "www.googleapis.com", "storage.us-east1.rep.googleapis.com",
]  # fmt: skip


@pytest.mark.parametrize("host", KILL_HOSTS)
def test_nobody_is_let_to_the_bucket_of_the_kill_file(tmp_path: Path, host: str) -> None:
    world = World(tmp_path, bucket="ours")
    file = write_file((AllowlistEntry("x", host, reason="r", owner="o"),))
    done = together(world.desk.add(body(host), "ann"), world.review.take_file(r.ImportBody(text=file, reason="file"), "ann"))
    assert [type(d) for d in done] == [Denied, Denied]
    assert world.hosts() == []
    world.ledger.close()


def test_other_hosts_of_the_same_provider_and_a_bucket_elsewhere(tmp_path: Path) -> None:
    world = World(tmp_path, bucket="ours", endpoint="https://Objects.Example.com:9000")
    add(world, "storage.googleapis.com", "example.com", "notobjects.example.com")
    for host in ("objects.example.com", "ours.objects.example.com", "x.ours.objects.example.com", "*.example.com"):
        with pytest.raises(Denied):
            add(world, host)
    world.ledger.close()


def test_entries_older_than_the_bucket_leave_the_list_at_the_start_recorded(tmp_path: Path) -> None:
    world = World(tmp_path)
    add(world, "a.example.com", "*.storage.googleapis.com", "storage.googleapis.com")
    world.bucket = "ours"
    world.start()
    asyncio.run(world.desk.keep_from_the_kill_file())
    world.apply(world.desk.allowlist)
    assert world.hosts() == ["a.example.com"]
    assert world.told[-1] == ("allowlist.remove", "allow")
    assert "storage.googleapis.com" in world.notices[0]
    with pytest.raises(Denied):
        asyncio.run(world.review.revert(r.RevertBody(version=3, reason="back"), "ann"))
    assert world.hosts() == ["a.example.com"]
    told = len(world.told)
    world.start()
    asyncio.run(world.desk.keep_from_the_kill_file())
    assert len(world.told) == told  # once
    world.ledger.close()


def test_they_leave_even_when_that_cannot_be_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    add(world, "a.example.com", "storage.googleapis.com")
    world.bucket = "ours"
    world.start()
    world.ledger.refuses = True
    asyncio.run(world.desk.keep_from_the_kill_file())
    assert [e.host for e in world.desk.allowlist.entries] == ["a.example.com"]
    world.ledger.close()


def imported(world: World, text: str, **fields: Any) -> r.ImportView:
    return asyncio.run(world.review.take_file(r.ImportBody.read({"text": text, "reason": "file", **fields}), "ann"))


def test_the_same_destination_twice_in_a_file_is_said_also_when_it_is_known(world: World) -> None:
    add(world, "a.example.com")
    one = AllowlistEntry("x", "a.example.com", reason="first", owner="o")
    two = AllowlistEntry("x", "a.example.com", reason="second", owner="o", private_networks=("10.0.0.0/8",))
    for replaces in (False, True):
        with pytest.raises(UsageProblem, match="twice"):
            imported(world, write_file((one, two)), replace=replaces)


def test_an_import_loses_none_of_two_entries_for_one_destination(world: World) -> None:
    add(world, "a.example.com")
    asyncio.run(world.desk.add(body("a.example.com", private_networks=["10.0.0.0/8"]), "ann"))
    add(world, "b.example.com")
    text = write_file(world.desk.allowlist.entries)
    for replaces in (False, True):
        assert imported(world, text, replace=replaces, dry_run=True).changes == []
    imported(world, write_file((AllowlistEntry("x", "c.example.com", reason="r", owner="o"),)))
    assert world.hosts() == ["a.example.com", "a.example.com", "b.example.com", "c.example.com"]
    imported(world, write_file((AllowlistEntry("x", "a.example.com", reason="new", owner="o"),)))
    assert [e.reason for e in world.desk.allowlist.entries] == ["new", "tests", "tests", "r"]


@pytest.mark.parametrize("fields", [{"methods": ["GET"]}, {"paths": ["/v1/"]}, {"port": 80, "methods": ["CONNECT"]}])
def test_what_cannot_be_enforced_is_refused_by_every_door(world: World, fields: dict[str, Any]) -> None:
    (kept,) = add(world, "b.example.com")
    wrong = body("a.example.com", **fields)
    for asked in (
        world.desk.add(wrong, "ann"),
        world.desk.edit(kept, wrong, "ann"),
        world.desk.test(m.UrlTestBody(url="https://a.example.com/", entry=wrong)),
        world.review.backtest(r.BacktestBody(entry=wrong)),
    ):
        (error,) = together(asked)
        assert isinstance(error, UsageProblem) and "cannot be" in str(error)
    entry = AllowlistEntry("x", "a.example.com", fields.get("port", 443), tuple(fields.get("methods", ())), tuple(fields.get("paths", ())))
    with pytest.raises(UsageProblem, match="cannot be"):
        imported(world, write_file((replace(entry, reason="r", owner="o"),)))
    assert world.hosts() == ["b.example.com"]


def test_an_exact_duplicate_is_refused_and_names_the_entry_that_is_there(world: World) -> None:
    first, second = add(world, "a.example.com", "b.example.com")
    for asked in (
        world.desk.add(body("a.example.com", owner="others"), "ann"),
        world.desk.edit(second, body("a.example.com"), "ann"),
        world.desk.test(m.UrlTestBody(url="https://a.example.com/", entry=body("a.example.com"))),
    ):
        (error,) = together(asked)
        assert isinstance(error, UsageProblem) and f"Entry {first} allows exactly this" in str(error)
    asyncio.run(world.desk.edit(first, body("a.example.com", reason="another reason"), "ann"))
    add(world, "*.example.com")


def test_what_a_reviewer_should_see_of_a_draft_comes_before_it_is_saved(world: World) -> None:
    view = asyncio.run(world.desk.test(m.UrlTestBody(url="https://gist.github.com/", entry=body("gist.github.com"))))
    assert [(mark.kind, mark.danger) for mark in view.marks] == [("publishing", True)] and world.hosts() == []
    assert asyncio.run(world.desk.test(m.UrlTestBody(url="https://a.example.com/"))).marks == []


def backtested(world: World, **change: Any) -> r.BacktestView:
    return asyncio.run(world.review.backtest(r.BacktestBody.read(change)))


def test_a_backtest_says_that_it_cannot_know_where_a_name_led(world: World) -> None:
    private = body("in.example.com", private_networks=["10.0.0.0/8"])
    entry_id = asyncio.run(world.desk.add(private, "ann")).entry_id
    at = time.time()
    passed = EgressRecord(at, "a1", "CONNECT", "in.example.com", "", 200, 1, 1, True, f"entry {entry_id}")
    led = EgressRecord(at, "a1", "CONNECT", "other.example.com", "", 403, 1, 1, False, "entry e9: the name leads to a private address")
    refused = EgressRecord(at, "a1", "CONNECT", "b.example.com", "", 403, 1, 1, False, "no entry for CONNECT b.example.com:443")
    world.ledger.add_egress([passed, led, refused])
    for change in ({"entry": body("in.example.com"), "replaces": entry_id}, {"remove": entry_id}, {"entry": private}):
        seen = backtested(world, **change)
        unknown = "the change of private networks" in seen.words
        assert unknown is ("entry" not in change or change["entry"] != private), seen.words
        assert seen.left_out == 1
    assert "if their names lead where an entry lets them" in backtested(world, entry=body("b.example.com")).words
