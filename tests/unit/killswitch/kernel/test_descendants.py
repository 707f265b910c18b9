"""The closure by parent and session: what belongs to it, what never does, and that one empty look decides nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from console.killswitch.kernel import descendants, processes
from console.killswitch.kernel.descendants import APART_S, PATIENCE, QUIET_LOOKS, Closure, Row
from console.killswitch.kernel.processes import Handle

INIT = 5_000_000
"""Above every pid the kernel gives: none of these is an ancestor of the test."""


class Clock:
    """Stands still until the test waits, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


CLOCK = Clock()


class Keeper:
    """A keeper that only takes notes."""

    pid, start_ticks = INIT, 50

    def __init__(self) -> None:
        self.got: list[int] = []

    def send(self, number: int) -> str:
        self.got.append(number)
        return "sent"

    def is_alive(self) -> bool:
        return signal.SIGKILL not in self.got


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[int, Row]:
    made = {1: Row(0, 1, 0, True), INIT: Row(1, INIT, 50, True)}
    monkeypatch.setattr(descendants, "read_table", lambda: dict(made))
    monkeypatch.setattr(descendants, "_newest", None)
    monkeypatch.setattr(descendants, "time", CLOCK)
    return made


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def followed(keeper: Keeper, table: dict[int, Row]) -> Closure:
    return Closure(keeper)  # type: ignore[arg-type]


def pids(followed: Closure) -> list[int]:
    return [pid for pid, _ in followed.look()]


def strike(followed: Closure, spared: frozenset[int] = frozenset()) -> str:
    return descendants.strike([followed], spared)[0]


def quiet_looks(followed: Closure, count: int) -> None:
    for _ in range(count):
        CLOCK.now += APART_S * 1.1
        followed.look()


def test_children_of_children_and_their_sessions_belong(table: dict[int, Row], followed: Closure) -> None:
    table |= {INIT + 1: Row(INIT, INIT, 51, True), INIT + 2: Row(INIT + 1, INIT + 2, 52, True), INIT + 1000: Row(1, INIT + 1000, 60, True)}
    assert pids(followed) == [INIT + 1, INIT + 2]
    table |= {INIT + 3: Row(1, INIT + 2, 53, True)}  # an orphan of PID 1, in a session that a member leads
    assert pids(followed) == [INIT + 1, INIT + 2, INIT + 3]


def test_an_orphan_that_was_seen_before_still_belongs_and_so_do_its_children(table: dict[int, Row], followed: Closure) -> None:
    table |= {INIT + 1: Row(INIT, INIT, 51, True)}
    assert pids(followed) == [INIT + 1]
    del table[INIT]  # somebody killed the keeper
    table |= {INIT + 1: Row(1, INIT, 51, True), INIT + 2: Row(INIT + 1, INIT + 2, 52, True)}
    assert pids(followed) == [INIT + 1, INIT + 2]


def test_older_processes_reused_numbers_and_foreign_sessions_never_belong(table: dict[int, Row], followed: Closure) -> None:
    table |= {INIT + 1: Row(INIT, INIT + 1, 51, True)}
    assert pids(followed) == [INIT + 1]
    table[INIT + 1] = Row(1, INIT + 1, 99, True)  # the same number, another process, leading a session of its own
    # One is in that session; one is older than the keeper.
    table |= {INIT + 500: Row(1, INIT + 1, 100, True), INIT + 600: Row(INIT, INIT, 49, True)}
    assert pids(followed) == []


def test_a_reused_number_of_the_keeper_is_nobody(table: dict[int, Row], followed: Closure) -> None:
    table[INIT] = Row(1, INIT, 77, True)
    table |= {INIT + 1: Row(INIT, INIT, 78, True)}
    assert pids(followed) == []


def test_we_and_what_is_above_us_never_belong(table: dict[int, Row], followed: Closure) -> None:
    us, above = os.getpid(), os.getppid()
    table |= {us: Row(INIT, INIT, 60, True), above: Row(INIT, INIT, 60, True), INIT + 1: Row(us, INIT, 61, True)}
    assert us not in pids(followed) and above not in pids(followed)


def test_what_is_below_one_who_pressed_or_an_ancestor_of_ours_is_left_alone(table: dict[int, Row], keeper: Keeper) -> None:
    table |= {INIT + 1: Row(INIT, INIT, 51, True)}
    followed = Closure(keeper)  # type: ignore[arg-type]
    assert strike(followed, frozenset({INIT})).startswith("refused") and keeper.got == []
    for pid in (os.getpid(), os.getppid()):
        keeper.pid = pid
        table |= {pid: Row(1, pid, 50, True), INIT + 2: Row(pid, pid, 52, True)}
        followed = Closure(keeper)  # type: ignore[arg-type]
        assert strike(followed).startswith("refused") and keeper.got == [] and pids(followed) == []


def test_a_zombie_is_not_alive(table: dict[int, Row], followed: Closure) -> None:
    table |= {INIT + 1: Row(INIT, INIT, 51, False)}
    assert pids(followed) == []


def test_one_empty_look_decides_nothing(table: dict[int, Row], followed: Closure, keeper: Keeper) -> None:
    for _ in range(10):
        followed.look()  # at once after each other: they count as one
    assert followed.quiet == 1 and not followed.is_quiet()
    quiet_looks(followed, QUIET_LOOKS - 2)
    table |= {INIT + 1: Row(INIT, INIT, 51, True)}
    followed.look()
    assert followed.quiet == 0
    del table[INIT + 1]
    quiet_looks(followed, QUIET_LOOKS)
    assert followed.quiet >= QUIET_LOOKS and not followed.is_quiet(), "the keeper lives"
    strike(followed)
    assert keeper.got[-1] == signal.SIGKILL and followed.is_quiet()


def test_what_cannot_be_listed_is_never_quiet(followed: Closure, keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet_looks(followed, QUIET_LOOKS)

    def broken() -> dict[int, Row]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(descendants, "read_table", broken)
    monkeypatch.setattr(descendants, "_newest", None)
    assert not followed.is_quiet() and followed.quiet == 0
    assert strike(followed).startswith("failed") and signal.SIGKILL not in keeper.got


def test_the_keeper_goes_last_but_not_never(
    table: dict[int, Row], followed: Closure, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[tuple[int, int]] = []

    def kill(pid: int, ticks: int, number: int) -> str:
        assert number == signal.SIGKILL
        killed.append((pid, ticks))
        return ""

    monkeypatch.setattr(processes, "send_once", kill)
    table |= {INIT + 1: Row(INIT, INIT, 51, True)}
    strike(followed)
    assert (INIT + 1, 51) in killed and set(keeper.got) == {signal.SIGTERM}
    strike(followed, frozenset({INIT + 1}))
    assert killed.count((INIT + 1, 51)) == descendants.ROUNDS, "spared ones are not signalled"
    for _ in range(PATIENCE):
        strike(followed)
    assert signal.SIGKILL in keeper.got


def test_the_same_looks_serve_all_who_are_struck_and_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over /proc for each of a hundred agents lasted longer than the kill may."""
    rows, looks = {1: Row(0, 1, 0, True)}, [0]
    keepers = [Keeper() for _ in range(100)]
    for number, keeper in enumerate(keepers):
        keeper.pid = INIT + 10 * number
        rows |= {keeper.pid: Row(1, keeper.pid, 50, True), keeper.pid + 1: Row(keeper.pid, keeper.pid, 51, True)}
    killed: list[int] = []

    def look() -> dict[int, Row]:
        looks[0] += 1
        return {pid: row for pid, row in rows.items() if pid not in killed}

    monkeypatch.setattr(descendants, "read_table", look)

    def kill(pid: int, ticks: int, number: int) -> str:
        killed.append(pid)
        return ""

    monkeypatch.setattr(processes, "send_once", kill)
    monkeypatch.setattr(descendants, "_newest", None)
    monkeypatch.setattr(descendants, "APART_S", 60.0)  # however slow the machine is: one look is recent for all of them
    everybody = [Closure(keeper) for keeper in keepers]  # type: ignore[arg-type]
    assert descendants.strike(everybody) == ["SIGKILL to 1 descendants"] * 100 and len(killed) == 100 and looks == [2]
    assert not any(one.is_quiet() for one in everybody) and looks == [2]


# --- real processes ---------------------------------------------------------------------------------------------------------

TREE = """
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, as the shim
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, tell = os.pipe()
for kind in range(4):
    if os.fork() == 0:
        if kind: os.setsid()
        if kind > 1 and os.fork(): os._exit(0)
        os.write(tell, b".")
        time.sleep(600)
for kind in range(4): os.read(ready, 1)
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def tree() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-S", "-c", TREE], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.communicate()


def test_a_real_tree_ends_and_a_bystander_does_not(tree: subprocess.Popen[bytes]) -> None:
    ticks = processes.start_ticks(tree.pid)
    assert ticks is not None
    handle = Handle(tree.pid, ticks)
    bystander = subprocess.Popen(["/bin/sleep", "600"])
    try:
        followed = Closure(handle)
        first = followed.look()
        assert len(first) >= 4 and followed.has_known()
        deadline = time.monotonic() + 60
        while not followed.is_quiet():
            assert time.monotonic() < deadline
            strike(followed)
            time.sleep(APART_S)
        assert not followed.has_known() and tree.wait(60) == -signal.SIGKILL
        assert not any(processes.start_ticks(pid) == when and processes.is_alive(pid) for pid, when in first)
        assert bystander.poll() is None
    finally:
        handle.close()
        bystander.kill()
        bystander.wait()


def test_a_process_that_cannot_be_looked_at_is_not_one_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = OSError(errno.EMFILE, "Too many open files")

    def unreadable(pid: int) -> bytes:
        raise refused

    monkeypatch.setattr(descendants, "_read_stat", unreadable)
    with pytest.raises(OSError, match="Too many"):
        descendants.read_table()
    refused = FileNotFoundError(errno.ENOENT, "gone")
    assert descendants.read_table() == {}


def test_one_that_was_known_and_cannot_be_read_now_may_live(
    monkeypatch: pytest.MonkeyPatch, followed: Closure, table: dict[int, Row]
) -> None:
    table[INIT + 1000] = Row(INIT, INIT, 60, True)
    assert pids(followed) == [INIT + 1000]
    monkeypatch.setattr(processes, "_fetch", _too_many)
    assert followed.has_known()


def _too_many(*_: object) -> bytes:
    raise OSError(errno.EMFILE, "Too many open files")
