"""Lines, deadlines, caps and standings on real sockets, with the loop turned by hand and the clock by the test."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.guard import HOLD_S, LINE_LIMIT, decode, encode
from console.killswitch.guard import server
from console.killswitch.guard.server import ALWAYS, Doors
from console.killswitch.kernel.peers import Peer, Standing
from tests.fakes.guard_room import Room
from tests.fakes.passed_sockets import passed_to_us


class Hall:
    """The doors of one guard; ``turn`` is one round of their loop."""

    def __init__(self, room: Room, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, self.folder = room, folder
        self.standing = Standing.OPERATOR
        monkeypatch.setattr(server, "judge", lambda peer, places: self.standing)
        self.doors = Doors(room.guard, room.freezing, room.desk)
        for name in ("operator", "supervisor"):
            self.doors.listen(folder / name, name, 0o600)
        self.ends: list[socket.socket] = []

    def connect(self, door: str = "operator") -> socket.socket:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.connect(str(self.folder / door))
        end.setblocking(False)
        self.ends.append(end)
        self.turn()
        return end

    def turn(self, rounds: int = 3) -> None:
        for _ in range(rounds):
            self.doors.turn(0)

    def send(self, end: socket.socket, data: bytes) -> None:
        end.sendall(data)
        self.turn()

    def ask(self, end: socket.socket, **message: Any) -> dict[str, Any]:
        self.send(end, encode(message))
        if not self.heard(end, peek=True):
            self.room.clerk.work()  # a slow operation: its answer comes from the clerk
            self.turn()
        return decode(self.heard(end))

    def heard(self, end: socket.socket, peek: bool = False) -> bytes:
        try:
            return end.recv(1 << 20, socket.MSG_PEEK if peek else 0)
        except BlockingIOError:
            return b""

    def is_closed(self, end: socket.socket) -> bool:
        try:
            heard = end.recv(LINE_LIMIT)
            return heard == b"" or (b"TooMany" in heard and end.recv(1) == b"")  # it says that it is busy, and closes
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def close(self) -> None:
        for end in self.ends:
            end.close()
        for connection in list(self.doors._connections):
            self.doors._drop(connection)
        for key in list(self.doors._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.doors._selector.close()
        self.doors._wake.close()
        for fd in self.doors._spare:
            os.close(fd)


@pytest.fixture
def hall(room: Room, state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hall]:
    made = Hall(room, state_dir, monkeypatch)
    yield made
    made.close()


# --- lines ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"status",
        b"[]",
        b"null",
        b"1",
        b'"op"',
        b"\xff\xfe",
        b"[" * 2000,
        b'{"op":"status"',
        b"{" * 2000,
        b'{"op":"status"}{"op":"status"}',
    ],
)
def test_what_is_no_object_on_a_line_is_refused_and_the_next_is_served(hall: Hall, line: bytes) -> None:
    end = hall.connect()
    hall.send(end, line + b"\n")
    assert decode(hall.heard(end))["kind"] == "UsageProblem" and hall.ask(end, op="status")["ok"]


@pytest.mark.parametrize("op", [None, 7, [], {}, "", "PRESS", "ticket", "x" * 1000])
def test_what_is_no_operation_of_this_door_is_refused(hall: Hall, op: object) -> None:
    answer = hall.ask(hall.connect(), op=op, scope="all")
    assert answer["kind"] == "UsageProblem" and len(answer["error"]) < 200 and not hall.room.guard.kills


def test_a_line_of_the_limit_is_served_and_one_more_byte_is_not(hall: Hall) -> None:
    end = hall.connect()
    line = b'{"op":"status","x":"' + b"x" * (LINE_LIMIT - 23) + b'"}\n'
    assert len(line) == LINE_LIMIT
    hall.send(end, line)
    assert decode(hall.heard(end))["ok"]
    hall.send(end, line[:-3] + b'x"}\n')
    assert decode(hall.heard(end))["kind"] == "UsageProblem" and hall.ask(end, op="status")["ok"]


@pytest.mark.parametrize("size", [LINE_LIMIT + 1, 3 * LINE_LIMIT])
def test_an_endless_line_is_cut_off(hall: Hall, size: int) -> None:
    end, other = hall.connect(), hall.connect()
    hall.send(end, b"x" * LINE_LIMIT)
    assert not hall.is_closed(end)
    hall.send(end, b"x" * (size - LINE_LIMIT))
    assert hall.is_closed(end) and hall.ask(other, op="status")["ok"]


def test_half_a_line_has_a_second(hall: Hall) -> None:
    slow, whole = hall.connect(), hall.connect()
    hall.send(slow, b'{"op":')
    for _ in range(4):  # a letter now and then gains no time
        hall.room.now += server.PARTIAL_LINE_S / 4
        hall.send(slow, b" ")
    assert not hall.is_closed(slow)
    hall.room.now += server.TICK_S
    hall.turn()
    assert hall.is_closed(slow) and not hall.is_closed(whole)


def test_a_line_in_two_halves_is_one_line(hall: Hall) -> None:
    end = hall.connect()
    hall.send(end, b'{"op":"sta')
    assert hall.heard(end) == b""
    hall.send(end, b'tus"}\n')
    assert decode(hall.heard(end))["ok"]
    hall.room.now += 10
    hall.turn()
    assert not hall.is_closed(end)  # and being idle is no half line


def test_lines_behind_a_slow_one_wait_and_keep_their_order(hall: Hall) -> None:
    end = hall.connect("supervisor")
    hall.send(end, encode({"op": "ticket", "agent_id": "one", "kind": "process", "control_level": "managed"}) + encode({"op": "status"}))
    hall.room.now += 10
    hall.turn()
    assert hall.heard(end) == b"" and not hall.is_closed(end)
    hall.room.clerk.work()
    hall.turn()
    first, second = hall.heard(end).splitlines()
    assert "leaf" in decode(first) and decode(second)["agents"] == 1


def test_a_press_is_answered_while_the_clerk_is_stuck(hall: Hall) -> None:
    stuck, presser = hall.connect("supervisor"), hall.connect()
    hall.send(stuck, encode({"op": "lease", "seconds": 5}))
    assert hall.ask(presser, op="press", scope="all")["kill_id"] and hall.heard(stuck) == b""
    assert hall.room.guard.latch.state.latched


def test_a_soft_stop_and_a_lease_wait_for_no_clerk(hall: Hall) -> None:
    hall.room.agent("one")
    hall.room.now += 60
    stuck, lessor, stopper = hall.connect("supervisor"), hall.connect("supervisor"), hall.connect("supervisor")
    hall.send(stuck, encode({"op": "challenge"}))
    hall.send(lessor, encode({"op": "lease", "seconds": 30}))
    hall.send(stopper, encode({"op": "soft_stop", "on": True, "why": "bucket unread"}))
    assert hall.heard(lessor) == hall.heard(stopper) == b""  # answered once they are recorded
    assert hall.room.freezing.lease_left() == 30 and hall.room.is_frozen("one")
    hall.room.now += 12
    hall.room.clerk.work()
    hall.turn()
    assert decode(hall.heard(lessor))["lease_left_s"] == 18 and decode(hall.heard(stopper))["soft_stop"] == "bucket unread"


def test_an_answer_that_does_not_fit_is_said_to_be_so(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hall.room.desk, "answer", lambda *_: {"ok": True, "x": "y" * LINE_LIMIT})
    assert hall.ask(hall.connect(), op="status")["kind"] == "TooLarge"


def test_who_asks_and_never_listens_is_dropped(hall: Hall) -> None:
    deaf, other = hall.connect(), hall.connect()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    for _ in range(3000):
        try:
            deaf.send(encode({"op": "status"}))
        except BlockingIOError:
            pass
        except BrokenPipeError:
            break
        hall.turn(1)
        assert all(len(c.outbox) <= 65 * LINE_LIMIT for c in hall.doors._connections)
    else:
        pytest.fail("it was never dropped")
    assert hall.ask(other, op="status")["ok"]


def test_a_job_that_breaks_is_an_answer(hall: Hall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(hall.room.freezing, "lease", broken)
    answer = hall.ask(hall.connect("supervisor"), op="lease", seconds=5)
    assert not answer["ok"] and "KeyError" in answer["error"] and "KeyError" in capsys.readouterr().err


def test_an_answer_for_one_who_left_is_thrown_away(hall: Hall) -> None:
    end = hall.connect("supervisor")
    hall.send(end, encode({"op": "lease", "seconds": 5}))
    end.close()
    hall.turn()
    hall.room.clerk.work()
    hall.turn()
    assert hall.room.freezing.lease_left() == 5 and not hall.doors._connections


# --- who may ask what -------------------------------------------------------------------------------------------------------


def test_an_agent_has_no_say_and_stays_an_agent(hall: Hall) -> None:
    end = hall.connect()
    hall.standing = Standing.AGENT
    for op in ("press", "status", "hold"):
        assert hall.ask(end, op=op, scope="all")["kind"] == "Denied"
    hall.standing = Standing.OPERATOR  # its connection was handed on
    assert hall.ask(end, op="press", scope="all")["kind"] == "Denied" and not hall.room.guard.kills
    assert "agent-knocked" in hall.room.guard.notices and hall.ask(hall.connect(), op="status")["ok"]


def test_an_unclear_peer_may_stop_and_not_loosen(hall: Hall) -> None:
    hall.room.agent("one")
    hall.standing = Standing.UNCLEAR
    end = hall.connect()
    assert hall.ask(end, op="freeze", scope="all")["ok"] and hall.ask(end, op="status")["ok"]
    assert hall.ask(end, op="thaw", scope="all")["kind"] == "Denied" and hall.room.is_frozen("one")
    held = hall.ask(end, op="hold")["hold_id"]
    assert hall.ask(end, op="let_go", hold_id=held)["kind"] == "Denied"
    assert hall.ask(end, op="press", scope="all")["ok"]
    hall.standing = Standing.OPERATOR  # its /proc can be read again
    assert hall.ask(end, op="thaw", scope="all")["ok"]


def test_the_supervisors_door_is_for_its_uid_and_a_clear_peer(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    end = hall.connect("supervisor")
    assert hall.ask(end, op="heartbeat")["ok"]
    hall.standing = Standing.UNCLEAR
    assert hall.ask(end, op="heartbeat")["kind"] == "Denied"
    hall.standing = Standing.OPERATOR
    monkeypatch.setattr(server, "may_command", lambda *_: False)
    assert hall.ask(end, op="heartbeat")["kind"] == "Denied" and hall.ask(hall.connect(), op="status")["ok"]


# --- how many ---------------------------------------------------------------------------------------------------------------


def test_one_peer_has_so_many_connections(hall: Hall) -> None:
    ends = [hall.connect() for _ in range(server.MOST_PER_PEER + 2)]
    assert [hall.is_closed(end) for end in ends] == [False] * server.MOST_PER_PEER + [True] * 2
    ends[0].close()
    hall.turn()
    assert hall.ask(hall.connect(), op="status")["ok"]


@pytest.fixture
def small(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> Hall:
    """Room for four connections, two of them for presses."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 4)
    monkeypatch.setattr(server, "KEPT_FOR_PRESSES", 2)
    return hall


def test_the_last_places_are_for_what_stops(small: Hall) -> None:
    small.room.agent("one")
    ordinary, _, spare = (small.connect() for _ in range(3))
    assert small.ask(ordinary, op="freeze", scope="all")["ok"]
    for op in ("thaw", "freeze", "receipt"):
        assert small.ask(spare, op=op, scope="all", kill_id="x")["kind"] == "TooMany"
    assert small.ask(spare, op="status")["ok"] and small.ask(spare, op="press", scope="all")["ok"] and {"press", "hold"} <= set(ALWAYS)


def test_a_hold_on_the_last_place_can_be_let_go_there(small: Hall) -> None:
    """Else it would end in a kill that nobody wants."""
    small.room.agent("one")
    _, _, spare = (small.connect() for _ in range(3))
    held = small.ask(spare, op="hold")["hold_id"]
    assert small.ask(spare, op="let_go", hold_id=held)["ok"]
    small.room.now += HOLD_S + 1
    small.turn()
    assert not small.room.guard.kills and not small.room.is_frozen("one")


def test_a_full_house_drops_the_longest_unused_and_no_hold(small: Hall) -> None:
    holder, busy, third, fourth = (small.connect() for _ in range(4))
    small.ask(holder, op="hold")
    for end in (busy, third, fourth):
        small.room.now += 0.01
        small.ask(end, op="status")
    newcomer = small.connect()
    assert small.is_closed(busy) and not any(small.is_closed(e) for e in (holder, third, fourth))
    assert small.ask(newcomer, op="press", scope="all")["ok"]


def test_a_flood_of_lines_keeps_nobody_from_pressing(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends many lines at once gets one answer per turn; a press does not wait for any of them."""
    monkeypatch.setattr(server, "TURN_S", 0.0)
    floods = [hall.connect() for _ in range(8)]
    for end in floods:
        end.sendall(encode({"op": "status", "x": "y"}) * 150)
    operator = hall.connect()
    operator.sendall(encode({"op": "press", "scope": "all"}))
    hall.doors.turn(0)
    assert decode(hall.heard(operator))["ok"] and hall.room.guard.latch.state.latched
    answered = sum(hall.heard(end, peek=True).count(b"\n") for end in floods)
    assert answered <= 8, "the flood was served before the press"
    hall.turn(8 * 150)
    assert all(hall.heard(end).count(b"\n") == 150 for end in floods), "everybody is answered in the end"


def test_who_sends_much_more_than_is_served_is_cut_off(hall: Hall) -> None:
    end = hall.connect("supervisor")
    hall.send(end, encode({"op": "lease", "seconds": 5}))  # the clerk has it: the next lines wait
    with contextlib.suppress(BrokenPipeError):
        for _ in range(4):
            hall.send(end, encode({"op": "status"}) * 200)
    assert hall.is_closed(end)


def test_a_place_for_presses_becomes_an_ordinary_one_when_others_leave(small: Hall) -> None:
    first, _, spare = (small.connect() for _ in range(3))
    assert small.ask(spare, op="freeze", scope="all")["kind"] == "TooMany"
    first.close()
    small.turn()
    assert small.ask(spare, op="freeze", scope="all")["ok"]


def test_agents_together_take_up_few_places(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_OF_AGENTS", 2)
    hall.standing = Standing.AGENT
    agents = [hall.connect() for _ in range(4)]
    assert [hall.is_closed(end) for end in agents] == [False, False, True, True]
    hall.standing = Standing.OPERATOR
    assert hall.ask(hall.connect(), op="press", scope="all")["ok"]


def test_the_one_with_most_connections_gives_way_first(small: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = iter([1001, 1002, 1002, 1002, 1003])
    monkeypatch.setattr(server, "find_peer", lambda sock: Peer(next(pids), 0, 1))
    quiet, *greedy = (small.connect() for _ in range(4))
    for end in greedy:
        small.room.now += 0.01
        small.ask(end, op="status")
    small.connect()
    assert not small.is_closed(quiet) and small.is_closed(greedy[0])


def test_a_hold_that_was_let_go_keeps_no_place(small: Hall) -> None:
    held, *others = (small.connect() for _ in range(4))
    small.ask(held, op="let_go", hold_id=small.ask(held, op="hold")["hold_id"])
    for end in others:
        small.room.now += 0.01
        small.ask(end, op="status")
    small.connect()
    assert small.is_closed(held)


def test_one_who_waits_for_the_clerk_is_not_dropped(small: Hall) -> None:
    waits = [small.connect("supervisor") for _ in range(2)]
    for end in waits:
        small.send(end, encode({"op": "lease", "seconds": 5}))
    small.connect()
    small.connect()
    small.connect()
    small.room.clerk.work()
    small.turn()
    assert all(decode(small.heard(end))["ok"] for end in waits)


def test_without_descriptors_the_longest_unused_or_a_spare_one_gives_way(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = hall.connect()
    listener = next(k.fileobj for k in hall.doors._selector.get_map().values() if k.data == "operator")

    class Refusing:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    before = len(hall.doors._spare)
    hall.doors._accept(Refusing(), "operator")  # type: ignore[arg-type]
    assert hall.is_closed(idle) and len(hall.doors._spare) == before
    for _ in range(before + 2):
        hall.doors._accept(Refusing(), "operator")  # type: ignore[arg-type]
    assert hall.doors._spare == [] and listener is not None and hall.ask(hall.connect(), op="press", scope="all")["ok"]


# --- holds, signals, timers ---------------------------------------------------------------------------------------------------


def test_who_vanishes_in_mid_hold_leaves_it_frozen(hall: Hall) -> None:
    hall.room.agent("one")
    end = hall.connect()
    held = hall.ask(end, op="hold", by="ann")["hold_id"]
    end.close()
    hall.turn()
    hall.room.now += HOLD_S + 1
    hall.turn()
    assert hall.room.is_frozen("one") and not hall.room.guard.kills and f"hold-{held}" in hall.room.guard.notices


def test_who_holds_twice_and_vanishes_leaves_both_frozen(hall: Hall) -> None:
    hall.room.agent("one")
    end = hall.connect()
    for _ in range(2):
        hall.ask(end, op="hold", by="ann")
    end.close()
    hall.turn()
    hall.room.now += HOLD_S + 1
    hall.turn()
    assert hall.room.is_frozen("one") and not hall.room.guard.kills


def test_a_guard_that_holds_nothing_rests_longer_and_wakes_for_its_timers(hall: Hall) -> None:
    hall.turn()
    assert hall.doors._patience() == pytest.approx(server.REST_S)
    hall.room.now += hall.room.config.heartbeat_s - 0.5
    hall.turn()
    assert hall.doors._patience() == pytest.approx(0.5) and hall.room.freezing.why_nothing_starts() == ""
    hall.room.now += 0.6
    hall.turn()
    assert "heartbeat is missing" in hall.room.freezing.why_nothing_starts() and hall.doors._patience() > 0


def test_a_guard_that_holds_somebody_or_is_latched_looks_four_times_a_second(hall: Hall) -> None:
    hall.room.agent("one")
    hall.turn()
    assert hall.doors._patience() <= server.TICK_S
    del hall.room.guard.registry.held["one"]
    assert hall.doors._patience() > server.TICK_S
    hall.room.guard.press("all", "", "")
    assert hall.doors._patience() <= server.TICK_S


def test_a_hold_fires_from_the_loop_and_the_loop_wakes_for_it(hall: Hall) -> None:
    end = hall.connect()
    assert hall.doors._patience() == server.REST_S
    kill_id = hall.ask(end, op="hold")["kill_id"]
    hall.room.now += HOLD_S - 0.1
    assert hall.doors._patience() == pytest.approx(0.1)
    hall.room.now += 0.1
    hall.turn()
    assert list(hall.room.guard.kills) == [kill_id]


def test_a_signal_presses_once_for_each(hall: Hall) -> None:
    hall.doors.presses_asked += 2
    hall.doors.wake()
    hall.turn()
    assert len(hall.room.guard.kills) == 2 and hall.room.guard.latch.state.generation == 2


def test_a_timer_that_breaks_does_not_end_the_loop(hall: Hall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise ValueError("x")

    monkeypatch.setattr(hall.room.freezing, "check_timers", broken)
    hall.room.now += 10
    hall.turn()
    assert "ValueError" in capsys.readouterr().err and hall.ask(hall.connect(), op="status")["ok"]


@pytest.mark.parametrize("needed", ["no", "agent", "latch"])
def test_an_orphan_ends_only_when_nobody_needs_it(hall: Hall, needed: str) -> None:
    if needed == "agent":
        hall.room.agent("one", populated=0)
    if needed == "latch":
        hall.room.guard.latch.press("k", "")
    hall.room.now += hall.room.config.orphan_s + 1
    hall.turn()
    assert hall.room.desk.wants_to_end is (needed == "no")


def test_serve_ends_when_asked_and_delivers_what_is_due(hall: Hall) -> None:
    end = hall.connect("supervisor")
    hall.send(end, encode({"op": "quit"}))
    hall.room.clerk.work()
    hall.doors.serve()
    assert decode(hall.heard(end))["ok"]


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_a_socket_takes_the_place_of_a_dead_guards(hall: Hall, mode: int) -> None:
    path = hall.folder / "again"
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dead.bind(str(path))
    dead.close()
    hall.doors.listen(path, "operator", mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode and hall.ask(hall.connect("again"), op="status")["ok"]


def test_housekeeping_obeys_the_disk_and_looks_at_agents(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    held = hall.room.agent("one")
    Path(held.entry.leaf, "cgroup.procs").write_text(f"{os.getpid()}\n")
    hall.room.now += 2
    hall.turn()
    hall.room.clerk.work()
    assert [p["pid"] for p in held.before] == [os.getpid()] and (hall.room.config.guard_dir / "reserve").exists()
    hall.room.guard.latch.path.unlink()
    hall.room.now += 2
    hall.turn()
    hall.room.clerk.work()
    assert hall.room.guard.latch.state.latched and "latch" in hall.room.guard.notices


def test_what_was_handed_to_a_kill_is_closed_only_where_no_press_can_come_in_between(hall: Hall, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle that is closed under a kill reads as a process that has ended."""
    could: list[bool] = []

    def sweep(in_use: object) -> None:
        other = threading.Thread(target=lambda: could.append(hall.room.guard.lock.acquire(blocking=False)))
        other.start()
        other.join()

    monkeypatch.setattr(hall.room.guard.seen, "sweep", sweep)
    hall.room.now += 2
    hall.turn()
    hall.room.clerk.work()
    assert could == [False]


def test_a_hold_let_go_in_time_kills_nothing_however_slow_the_disk(hall: Hall) -> None:
    held = hall.room.agent("one")
    end = hall.connect()
    hold_id = hall.ask(end, op="hold", by="ann")["hold_id"]
    hall.room.now += HOLD_S / 2
    hall.send(end, encode({"op": "let_go", "hold_id": hold_id}))
    hall.room.now += 10 * HOLD_S  # the clerk is stuck all the while
    hall.turn()
    assert not hall.room.guard.latch.state.latched and hall.room.is_frozen("one") and held.is_populated()
    hall.room.clerk.work()
    hall.turn()
    assert decode(hall.heard(end))["thawed"] == 1 and not hall.room.is_frozen("one")


def test_a_press_that_came_before_the_guard_started_is_answered(hall: Hall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd listens for a guard that does not run yet; a member's panic starts it."""
    with passed_to_us(tmp_path / "passed", monkeypatch) as systemds, socket.socket(socket.AF_UNIX) as early:
        early.connect(str(tmp_path / "passed"))
        early.sendall(encode({"op": "status"}))
        early.setblocking(False)
        hall.doors.listen(tmp_path / "passed", "operator", 0o600)
        hall.turn()
        assert decode(hall.heard(early))["ok"]
        systemds.detach()
