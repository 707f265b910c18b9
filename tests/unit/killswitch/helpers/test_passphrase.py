"""The passphrase: how it is kept, that nothing but it opens, and that trying costs more each time, whatever is restarted or swapped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.domain.errors import Conflict, Denied, NotRecorded, UsageProblem
from console.killswitch.helpers import passphrase
from console.killswitch.helpers.passphrase import LONGEST_WAIT_S, Passphrase, checked, made, wait_after
from console.killswitch.store.atomic_file import seal, write_whole

WORDS = "correct horse battery"


class World:
    """A config folder, a latch folder and a clock."""

    def __init__(self, folder: Path) -> None:
        self.file, self.guard = folder / "config" / "passphrase", folder / "guard"
        self.guard.mkdir()
        self.now = 1000.0
        self.it = self.again()

    def again(self) -> Passphrase:
        """As after a restart of the guard."""
        self.it = Passphrase(self.file, self.guard, lambda: self.now)
        self.it.load()
        return self.it


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(passphrase, "N", 2**10)  # a full one takes a tenth of a second; its parameters are tested below
    return World(tmp_path)


def test_the_file_is_scrypt_with_our_parameters_and_a_salt_of_its_own() -> None:
    one, two = (json.loads(made(WORDS)) for _ in range(2))
    assert (one["scheme"], one["n"] >= 2**15, one["r"], one["p"]) == ("scrypt", True, 8, 1)
    assert one["salt"] != two["salt"] and one["hash"] != two["hash"] and WORDS not in str(one)


def test_only_the_passphrase_opens(world: World) -> None:
    assert world.it.state == "not_set"
    world.it.change(WORDS, "")
    assert (world.it.state, world.file.stat().st_mode & 0o777, world.file.parent.stat().st_mode & 0o777) == ("set", 0o600, 0o700)
    world.it.check(WORDS)
    for wrong in (WORDS + " ", WORDS.upper(), "", "\0" * 9, "x" * 300, "\ud800" * 9):
        with pytest.raises(Denied) as refused:
            world.it.check(wrong)
        assert wrong not in str(refused.value) or not wrong
        world.now += LONGEST_WAIT_S
    after = world.again()
    world.now += LONGEST_WAIT_S
    after.check(WORDS)


def test_nothing_of_it_is_beside_the_latch(world: World) -> None:
    world.it.change(WORDS, "")
    beside = b"".join(p.read_bytes() for p in world.guard.iterdir())
    kept = json.loads(world.file.read_bytes())
    assert kept["salt"].encode() not in beside and kept["hash"].encode() not in beside and WORDS.encode() not in beside


def test_one_spelling_whatever_the_keyboard_composes(world: World) -> None:
    world.it.change("caf\u00e9 au lait", "")
    world.it.check("cafe\u0301 au lait")


@pytest.mark.parametrize("bad", ["", "seven77", "tab\tand more", "new\nline and more", "x" * 257, "\ud800 surrogate", "\0nothing here"])
def test_what_cannot_be_one_is_refused_without_being_repeated(world: World, bad: str) -> None:
    with pytest.raises(UsageProblem) as refused:
        world.it.change(bad, "")
    assert not bad or bad not in str(refused.value)
    assert world.it.look() == "not_set"


@given(st.text(max_size=300))
def test_any_text_is_taken_or_refused_and_fits_the_line_twice(text: str) -> None:
    try:
        data = checked(text)
    except UsageProblem:
        return
    assert 8 <= len(data) <= 256 and 2 * len(json.dumps(data.decode())) < 3500


def test_each_wrong_one_costs_more_and_is_counted_before_it_is_compared(world: World) -> None:
    world.it.change(WORDS, "")
    waits = []
    for _ in range(12):
        with pytest.raises(Denied):
            world.it.check("something else")
        waits.append(world.it.wait_s())
        with pytest.raises(Denied, match="Too soon"):
            world.it.check(WORDS)  # the right one is not even looked at
        world.now += waits[-1]
    assert waits == [wait_after(n) for n in range(1, 13)] and waits == sorted(waits) and waits[0] == 1 and waits[-1] == LONGEST_WAIT_S
    world.it.check(WORDS)
    assert world.it.note.wrong == 0 and world.it.wait_s() == 0


def test_a_restart_neither_forgets_the_count_nor_shortens_the_wait(world: World) -> None:
    world.it.change(WORDS, "")
    for _ in range(5):
        with pytest.raises(Denied):
            world.it.check("something else")
        world.now += world.it.wait_s()
    after = world.again()
    assert after.note.wrong == 5 and after.wait_s() == wait_after(5)
    with pytest.raises(Denied, match="Too soon"):
        after.check(WORDS)


def test_an_attempt_that_cannot_be_counted_is_not_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.it.change(WORDS, "")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(passphrase, "write_whole", full)
    with pytest.raises(NotRecorded):
        world.it.check(WORDS)


def test_changing_takes_the_old_one(world: World) -> None:
    world.it.change(WORDS, "")
    with pytest.raises(Denied):
        world.it.change("another passphrase", "")
    with pytest.raises(Denied):
        world.it.change("another passphrase", "not the old one")
    world.now += 10
    world.it.change("another passphrase", WORDS)
    world.it.check("another passphrase")
    with pytest.raises(Denied):
        world.it.check(WORDS)


def _link(w: World) -> None:
    w.file.rename(w.file.with_name("real"))
    w.file.symlink_to(w.file.with_name("real"))


def _folder(w: World) -> None:
    w.file.unlink()
    w.file.mkdir()


def _pipe(w: World) -> None:
    w.file.unlink()
    os.mkfifo(w.file, 0o600)


TAMPERING: dict[str, Callable[[World], object]] = {
    "taken away": lambda w: w.file.unlink(),
    "emptied": lambda w: w.file.write_bytes(b""),
    "garbage": lambda w: w.file.write_bytes(os.urandom(200)),
    "another passphrase put in its place": lambda w: w.file.write_bytes(made("planted by somebody")),
    "open to others": lambda w: w.file.chmod(0o644),
    "a link": _link,
    "a folder": _folder,
    "a pipe": _pipe,
    "the note damaged": lambda w: (w.guard / "rearm.json").write_text("{}"),
    "the note of another shape": lambda w: (w.guard / "rearm.json").write_bytes(seal({"sha256": ""})),
}


@pytest.mark.parametrize("how", sorted(TAMPERING))
@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_that_was_tampered_with_lets_nobody_in(world: World, how: str, restarted: bool) -> None:
    world.it.change(WORDS, "")
    TAMPERING[how](world)
    it = world.again() if restarted else world.it
    assert it.look() == "broken" and it.why
    for given_ in (WORDS, "planted by somebody"):
        with pytest.raises(Denied):
            it.check(given_)
    with pytest.raises(Denied):
        it.change("a new passphrase", WORDS)
    assert it.look() == "broken"


def test_taking_file_and_note_away_under_a_living_guard_lets_nobody_in(world: World) -> None:
    world.it.change(WORDS, "")
    world.file.unlink()
    (world.guard / "rearm.json").unlink()
    assert world.it.look() == "broken"


def test_another_environment_after_a_restart_does_not_hide_it(world: World, tmp_path: Path) -> None:
    world.it.change(WORDS, "")
    moved = Passphrase(tmp_path / "elsewhere" / "passphrase", world.guard)
    moved.load()
    assert moved.state == "set" and moved.path == world.file


@pytest.mark.parametrize(
    "change", [{"n": 2}, {"n": 2**30}, {"n": 1000}, {"r": 1}, {"p": 10**6}, {"scheme": "plain"}, {"salt": ""}, {"hash": "00"}, {"n": True}]
)
def test_weak_or_monstrous_parameters_are_damage(world: World, change: dict[str, Any]) -> None:
    body = json.loads(made(WORDS)) | change
    world.file.parent.mkdir(mode=0o700)
    world.file.write_text(json.dumps(body))
    world.file.chmod(0o600)
    assert world.it.look() == "broken"
    with pytest.raises(Denied):
        world.it.check(WORDS)


def test_a_crash_between_the_writes_of_a_change_locks_nobody_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.it.change(WORDS, "")
    whole = write_whole
    for fails_at in (1, 2):  # the note with both digests; then the file; then the note
        writes = 0

        def torn(path: Path, data: bytes, fails_at: int = fails_at) -> None:
            nonlocal writes
            writes += path.name in ("passphrase",) or b"next" in data and writes > 0
            if writes >= fails_at:
                raise OSError(5, "Input/output error")
            whole(path, data)

        it = world.again()
        monkeypatch.setattr(it, "check", lambda _old: None)
        monkeypatch.setattr(passphrase, "write_whole", torn)
        with pytest.raises(NotRecorded):
            it.change("the next passphrase", WORDS)
        monkeypatch.setattr(passphrase, "write_whole", whole)
        after = world.again()
        assert after.state == "set"
        right = WORDS if fails_at == 1 else "the next passphrase"
        after.check(right)


def test_a_folder_that_others_can_write_is_not_used(world: World) -> None:
    world.file.parent.mkdir(mode=0o777)
    world.file.parent.chmod(0o777)
    with pytest.raises(Conflict):
        world.it.change(WORDS, "")
    assert not world.file.exists()


@pytest.mark.parametrize("how", [*sorted(TAMPERING), "nothing"])
def test_a_reset_forgets_it_whatever_its_state(world: World, how: str) -> None:
    world.it.change(WORDS, "")
    if how == "a folder":
        return
    if how in TAMPERING:
        TAMPERING[how](world)
    world.it.reset(7)
    assert (world.it.look(), world.it.note.reset_generation, world.file.exists()) == ("not_set", 7, False)
    assert world.again().state == "not_set"
    world.it.change("after the reset", "")
    world.it.check("after the reset")
