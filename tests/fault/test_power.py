"""Fault 4: the power fails at any sync or rename. What was promised before holds in every copy of the disk; killed stays killed."""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from console.api.secrets import TokenBody
from console.credentials.api_key import ApiKey
from console.credentials.keyring_store import Store
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError
from console.domain.kill import StepName, StepStatus
from console.domain.network import NetworkMode, Sensitivity
from console.settings.places import find_places
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import audited, check_invariants, latched, living
from tests.fakes.nursery import ROOT, Nursery
from tests.fakes.power import SOCKET_VARIABLE, Copy, Kind, Recorder, copies

HOOKED = "tests.fakes.power_hooks"
REGISTERS = """level = "CONFIDENTIAL"
while level:
    try: answer = agent.private_data("letters", level); print("raised", level, answer["network_mode"], flush=True); level = input()
    except client.Refused as e: print("refused", e, flush=True); time.sleep(0.05)
"""
WRITES = (
    'print("verdict", agent.permission("write_file", "f.txt")["verdict"], flush=True); open("f.txt", "w").write("new"); time.sleep(300)'
)
FOREVER = 1 << 30


@dataclass
class Promises:
    """What was answered, and from which moment on."""

    levels: list[tuple[int, str, Sensitivity, NetworkMode]] = field(default_factory=list)
    launched: list[tuple[int, str]] = field(default_factory=list)
    audited: list[tuple[int, str]] = field(default_factory=list)
    """Kinds of records."""
    killed: list[tuple[int, int]] = field(default_factory=list)
    """From when the receipt says that the latch is on disk until the rearm was asked for."""
    free: list[tuple[int, int]] = field(default_factory=list)
    """From ready, or the rearm's answer, until the next press."""
    tokens: list[tuple[int, str]] = field(default_factory=list)
    """Operator tokens that are refused."""
    keys: list[tuple[int, str]] = field(default_factory=list)
    """API keys that are refused."""
    accepted: list[tuple[int, int, str]] = field(default_factory=list)
    """API keys that are in force."""
    ready: int = 0
    """When the first start was over."""

    def ratchet(self, number: int) -> dict[str, tuple[Sensitivity, NetworkMode]]:
        return {context: (level, mode) for since, context, level, mode in self.levels if since <= number}

    def chapter(self, number: int) -> int:
        """Changes whenever something is promised or no longer promised."""
        spans = [*self.killed, *self.free, *((since, end) for since, end, _ in self.accepted)]
        told = [since for since, *_ in self.levels] + [since for since, _ in (*self.launched, *self.audited, *self.tokens, *self.keys)]
        return sum(at <= number for at in {self.ready, *told, *(at for span in spans for at in span)})

    def must_be_killed(self, number: int) -> bool | None:
        """None: either."""
        for spans, answer in ((self.killed, True), (self.free, False)):
            if any(since <= number < until for since, until in spans):
                return answer
        return None


@dataclass(frozen=True)
class Story:
    """A recorded run: the looks at its disk, and what it promised."""

    recorder: Recorder
    promises: Promises


@pytest.fixture(scope="module")
def story(nursery: Nursery) -> Story:
    """One instance from its first start on, that launches, tightens, is killed, rotates, is rearmed and killed again."""
    folder = Path(tempfile.mkdtemp(prefix="p"))
    folder.chmod(0o711)
    state = folder / "s"
    state.mkdir(mode=0o711)
    state.chmod(0o711)
    it = Broken(state, nursery)
    it.module = HOOKED
    recorder = Recorder(state, folder / "recorder")
    patch = pytest.MonkeyPatch()
    patch.setenv(SOCKET_VARIABLE, str(folder / "recorder"))
    promises = Promises()
    try:
        it.start_guard(HOOKED)
        it.start()
        _tell(it, recorder, promises)
    finally:
        it.close()
        recorder.close()
        patch.undo()
        shutil.rmtree(folder)
    return Story(recorder, promises)


def _tell(it: Broken, recorder: Recorder, said: Promises) -> None:
    said.ready = since = recorder.now
    # Launches, private data, a snapshot before a write, a key.
    agent = it.python(REGISTERS, context_id="vault", sensitivity="INTERNAL")
    said.launched.append((recorder.now, agent))
    said.levels.append((recorder.now, "vault", Sensitivity.INTERNAL, NetworkMode.FULL))
    it.says(agent, "raised CONFIDENTIAL")
    said.levels.append((recorder.now, "vault", Sensitivity.CONFIDENTIAL, NetworkMode.PROXIED))
    writer = it.python(WRITES, context_id="desk")
    it.says(writer, "verdict allow")
    said.audited.append((recorder.now, "permission"))
    key = it.api.new_api_key().api_key
    said.accepted.append((recorder.now, 0, key))
    token = it.api.operator_token(TokenBody(api_key=key)).token
    # A freeze, a kill of one, an isolation.
    it.api.freeze(writer, reason="look")
    it.api.isolate(writer, reason="look")
    it.api.kill(writer, reason="one")
    # The press, its rotation, the way back, and once more.
    said.free.append((since, recorder.now))
    said.accepted[-1] = (said.accepted[-1][0], recorder.now, key)
    kill_id = it.api.activate("the test").kill_id  # its answer waits for no disk: it calls the latch pending until it is there
    until(lambda: it.api.receipt(kill_id).latch.status is StepStatus.OK, words="the latch is on disk")
    at = recorder.now
    receipt = it.receipt_of(kill_id)
    assert [s.status for s in receipt.steps if s.name is StepName.ROTATE] == [StepStatus.OK]
    said.tokens.append((recorder.now, token))
    said.keys.append((recorder.now, key))
    said.killed.append((at, recorder.now))
    it.api.rearm("looked at it", kill_id=receipt.kill_id)
    since = recorder.now
    said.audited.append((since, "kill.rearm"))
    agent = it.launch("sleep", "300", context_id="desk")
    said.launched.append((recorder.now, agent))
    said.free.append((since, recorder.now))
    assert it.receipt_of(it.press_guard()).latch.status is StepStatus.OK
    said.killed.append((recorder.now, FOREVER))


def facts_of(state_dir: Path, copy: Copy, said: Promises) -> None:
    """What the files alone must say; nothing runs."""
    number, places = copy.number, find_places(str(state_dir), create=True)
    if number < said.ready:
        return  # nothing was promised yet; that it starts is looked at by starting it
    must = said.must_be_killed(number)
    if must is not None:
        assert latched(places) is must, f"latched must be {must}"
    check_invariants(places, killed=latched(places), ratchet=said.ratchet(number))
    rows = audited(places) if places.audit_db.exists() else []
    kinds = {kind for kind, _, _, _ in rows}
    assert {kind for since, kind in said.audited if since <= number} <= kinds
    assert {agent for since, agent in said.launched if since <= number} <= {agent for kind, _, agent, _ in rows if kind == "launch"}
    if (places.keys_dir / "secrets.json").exists():
        store = Store(places.instance_id, places.keys_dir, backend="file")
        for since, token in said.tokens:
            assert since > number or not _accepts(store, token), "a token that a receipt says is refused"
        for since, key in said.keys:
            assert since > number or not ApiKey(store).accepts(key), "a key that a receipt says is refused"
        for since, end, key in said.accepted:
            assert not since <= number < end or ApiKey(store).accepts(key), "a key that was shown is lost"


def _accepts(store: Store, token: str) -> bool:
    try:
        return Tokens(store).accepts(token, "operator")
    except ConsoleError:
        return False


def boots(it: Broken, copy: Copy, said: Promises) -> None:
    """A guard and a supervisor start on it, as after a power cut: nothing of ours lives."""
    it.start()
    fleet = it.api.fleet()
    must = said.must_be_killed(copy.number)
    assert must is None or fleet.killed is must, f"killed must be {must}: {it.api.kill_switch().reason}"
    assert not living(it.places), "nobody is brought back"
    assert {agent for since, agent in said.launched if since <= copy.number} <= {agent.id for agent in fleet.agents}
    assert not [agent.id for agent in fleet.agents if agent.state == "running"]
    notices = " ".join(it.api.status().notices)
    if copy.number < said.ready and notices:
        # Its guard's first start was cut off: what may have been lost reads as killed or stopped, and it says so.
        assert fleet.killed or "stays frozen" in notices, notices
        return
    assert "set aside" not in notices and "lost" not in notices and "could not be read" not in notices, notices
    if fleet.killed:
        with pytest.raises(ConsoleError, match=r"stopped|killed"):
            it.launch("true")
    else:
        it.state_becomes(it.launch("sleep", "300"), "running")
    check_invariants(it.places, killed=fleet.killed, ratchet=said.ratchet(copy.number))


def wrong_in(state_dir: Path, copy: Copy, look: Callable[[], None]) -> list[str]:
    """Lays the copy out, looks, and takes it away again; what did not hold."""
    try:
        copy.lay_out(state_dir)
        look()
    except (AssertionError, ConsoleError, OSError, sqlite3.Error) as error:
        return [f"{copy}: {type(error).__name__} {str(error)[:600]}"]
    finally:
        for entry in state_dir.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    return []


def distinct(story: Story, kinds: tuple[Kind, ...] = tuple(Kind)) -> Iterator[Copy]:
    """Every copy that differs from all before it, or is looked at with other promises."""
    seen = set()
    for copy in copies(story.recorder, dict.fromkeys(range(len(story.recorder.points)), kinds)):
        key = (copy.digest, story.promises.chapter(copy.number))
        if key not in seen:
            seen.add(key)
            yield copy


def sample(story: Story, number: int) -> Iterator[Copy]:
    """As many at random; those are looked at in the ordinary run, all with --long."""
    moments = random.Random().sample(range(story.promises.ready, len(story.recorder.points)), number)  # noqa: S311 - not for secrets
    yield from copies(story.recorder, {at: (list(Kind)[place % 4],) for place, at in enumerate(moments)})


def test_what_was_not_synced_is_in_no_copy_but_that_of_a_mere_kill(tmp_path: Path) -> None:
    """The recorder itself: a rename before the sync, a name whose folder was not synced."""
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "old").write_bytes(b"old")
    recorder = Recorder(folder, tmp_path / "sock")
    try:
        (folder / "draft").write_bytes(b"new" * 1000)
        (folder / "draft").rename(folder / "old")
        recorder.note("rename", 0)
        recorder.note("fsync folder", folder.stat().st_ino)
        recorder.note("fsync file", (folder / "old").stat().st_ino)
        recorder.note("after", 0)
    finally:
        recorder.close()
    found = {(c.number, c.kind): {path: data for path, _, data in c.files} for c in copies(recorder, dict.fromkeys(range(4), tuple(Kind)))}
    new = {"old": b"new" * 1000}
    assert found[0, Kind.ALL] == new and found[0, Kind.NONE] == {"old": b"old"} and found[0, Kind.NAMES] == {"old": b""}
    assert found[2, Kind.NONE] == {"old": b""}, "renamed and not synced: the name alone is durable"
    assert len(found[2, Kind.TORN]["old"]) <= 3000 and set(found[2, Kind.TORN]["old"]) <= set(b"new\0")
    assert all(found[3, kind] == new for kind in Kind)


def test_the_recording_saw_what_is_synced_by_python_and_by_sqlite(story: Story) -> None:
    """Or the tests below would look at nothing."""
    told = {point.what.replace(str(story.recorder.folder), "") for point in story.recorder.points}
    wanted = (
        "sqlite /ledger.db-wal",
        "sqlite /audit.db-wal",
        "sqlite /rollback/records.db-wal",
        "rename /guard/latch.json",
        "fsync /guard",
    )
    assert set(wanted) <= told
    assert not list(ROOT.glob("*-shm")), "SQLite was handed its file's name as it came"


def test_what_was_promised_is_on_disk_at_every_sync(story: Story, state_dir: Path, full_counts: bool) -> None:
    """By the files alone."""
    chosen = distinct(story) if full_counts else sample(story, 12)
    wrong = [words for copy in chosen for words in wrong_in(state_dir, copy, partial(facts_of, state_dir, copy, story.promises))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", [Kind.NONE, Kind.TORN, *(pytest.param(kind, marks=pytest.mark.long) for kind in (Kind.ALL, Kind.NAMES))])
def test_after_a_power_cut_it_starts_as_it_was_promised(
    story: Story, state_dir: Path, nursery: Nursery, full_counts: bool, kind: Kind
) -> None:
    """Boots from the copies: from every one of what is surely durable, from every fourth of the others; in the ordinary run from one."""

    def look(copy: Copy) -> None:
        it = Broken(state_dir, nursery)
        try:
            boots(it, copy, story.promises)
        finally:
            it.close()

    chosen = [copy for copy in sample(story, 4) if copy.kind is kind]
    if full_counts:
        chosen = list(distinct(story, (kind,)))[:: 1 if kind is Kind.NONE else 4]
    wrong = [words for copy in chosen for words in wrong_in(state_dir, copy, partial(look, copy))]
    assert not wrong, "\n".join(wrong)
