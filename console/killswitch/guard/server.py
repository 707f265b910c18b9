"""The guard's two sockets and its one loop: short lines, deadlines, caps, and always room for a press."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import selectors
import socket
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError, Denied, TooMany, UsageProblem
from console.domain.guard import LINE_LIMIT, ORDER_LINES, decode, encode, scope_of
from console.domain.roles.rights import OWNER, Right, Role, member, refusal, roles_of
from console.killswitch.guard.freeze import Freezing
from console.killswitch.guard.operations import MEMBERS_MAY, Desk, Op
from console.killswitch.guard.relocation import Relocation
from console.killswitch.guard.state import Guard, monotonic
from console.killswitch.kernel.faults import FAULTS, note_fault
from console.killswitch.kernel.peers import Peer, Standing, find_peer, inside_an_agent, judge, may_command, peer_groups
from console.killswitch.kernel.systemd_notify import ALIVE, notify, passed_socket

MOST_CONNECTIONS = 128
# A crowd of status readers must never be the reason why a panic button finds no place.
KEPT_FOR_PRESSES = 8
MOST_PER_PEER = 16
MOST_OF_AGENTS = 8
MOST_REFUSED = 200
ACCEPTS = 16
"""Connections taken in before anybody is served again."""
TURN_S = 0.02
"""Of every turn of the loop, that long is for lines that are no press; the next turn begins with the presses again."""
PARTIAL_LINE_S = 1.0
TICK_S, REST_S = 0.25, 1.5
"""Seconds between two checks of what must stay dead. The longer time counts while the guard holds no agent and is not latched."""
SPARE_FILES = 8
KEPT_FILES = 16
"""Descriptors below the limit that no connection keeps: a kill opens its targets and its files with them."""
ALWAYS = ("press", "hold", "let_go", "status", "progress", "heartbeat")
"""What is still served when the connections run short (a hold that cannot be let go would kill)."""
_BUSY = encode(
    {"ok": False, "kind": "TooMany", "error": "The guard is busy: it serves no more connections of this process.", "remedy": "Close some."}
)
_NO_MEMBER = encode(
    {
        "ok": False,
        "kind": "Denied",
        "error": f"You are in none of these groups: {', '.join(role.group for role in Role)}.",
        "remedy": "Ask root to add you, then log in again.",
    }
)
_URGENT = (b'"press"', b'"halt"', b'"hold"', b'"let_go"', b'"progress"')


@dataclass(slots=True, eq=False)
class Connection:
    """One peer's connection."""

    sock: socket.socket
    door: str
    peer: Peer
    standing: Standing
    rights: frozenset[Right] = OWNER.rights
    """Of a member, on the members' socket; elsewhere all."""
    inbox: bytearray = field(default_factory=bytearray)
    outbox: bytearray = field(default_factory=bytearray)
    partial_since: float = 0.0
    used_at: float = 0.0
    is_busy: bool = False
    """The clerk works for it; its next line waits."""
    holds: list[str] = field(default_factory=list)
    """Ids of the holds it asked for."""
    gathered: list[list[str]] = field(default_factory=list)
    """Agents of an order whose last line has not come yet, by line: it goes with the connection."""

    @property
    def is_console(self) -> bool:
        """Whether its process is spared by a kill: a member's may be an agent that was only seen."""
        return self.standing is Standing.OPERATOR and self.door != "member"


def _bind(listener: socket.socket, path: Path, mode: int, uid: int | None) -> None:
    """Gives it the name ``path`` in place of what is there. Until mode and owner are set, only this account may connect."""
    # A killed guard leaves its socket's name behind, and bind refuses an existing one with EADDRINUSE.
    path.unlink(missing_ok=True)
    # Between bind and chmod the file has the default mode; a client that connects then would keep its connection.
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    path.chmod(mode)
    if uid is not None and uid != os.geteuid():
        os.chown(path, uid, -1)


class Members:
    """What accounts in the roles' groups may ask. What is refused is on record, once for each account and operation."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._refused = set[tuple[int, str]]()

    def check(self, connection: Connection, message: dict[str, Any]) -> None:
        """Raises Denied for what the groups of this peer do not allow. Who asks is the kernel's word, not the peer's."""
        name, uid = str(message.get("op"))[:40], connection.peer.uid
        if inside_an_agent(connection.peer.pid) or uid == self._guard.config.agents_uid:
            raise Denied("An agent has no say here.", "")  # of any instance: an account's own agent is no member either
        right = MEMBERS_MAY.get(name, Right.ADMINISTER)
        if right not in connection.rights or name not in MEMBERS_MAY:
            if (uid, name) not in self._refused and len(self._refused) < MOST_REFUSED:
                self._refused.add((uid, name))
                self._guard.clerk.do(
                    lambda: self._guard.record_line("refused", by=f"uid {uid}", reason=f"asked for {name}: no role of theirs allows it")
                )
            raise refusal(right, "sudo watchfloor panic")
        message["by"] = by = f"uid {uid}"
        hold = self._guard.causes.holds.get(str(message.get("hold_id"))) if name == "let_go" else None
        # Who may only stop thaws nothing that another account froze, and an account that agents run as is trusted with no more than
        # that: its people must be able to stop them. Checked here, because a release stops the clock at once.
        is_agents = uid in self._guard.registry.other_uids()
        if hold is not None and hold.by != by and (is_agents or Right.OPERATE not in connection.rights):
            raise Denied("Another account placed this hold: releasing it takes the role operator.", "Ask an operator, or root.")


class Doors:
    """Accepts, reads lines, answers. One instance per guard."""

    def __init__(self, guard: Guard, freezing: Freezing, desk: Desk) -> None:
        self._guard = guard
        self._freezing = freezing
        self._desk = desk
        self._selector = selectors.DefaultSelector()
        self._connections: dict[Connection, None] = {}
        """In the order they came."""
        self._waiting: deque[Connection] = deque()
        """Those with a whole line that was not served yet."""
        self._answers: deque[tuple[Connection, dict[str, Any]]] = deque()
        self._waker, self._wake = socket.socketpair()
        for end in (self._waker, self._wake):
            end.setblocking(False)
        self._selector.register(self._waker, selectors.EVENT_READ, "wake")
        self._spare = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(SPARE_FILES)]
        guard.connected = lambda: frozenset(c.peer.pid for c in list(self._connections) if c.is_console)
        self._listening: dict[str, tuple[str, int, int | None]] = {}
        """By the name of the socket: door, mode and owner, for a place that takes over when the state directory goes away."""
        self._relocation = Relocation(guard, self._listen_in)
        self._members = Members(guard)
        self.presses_asked = 0
        self._ticked = 0.0
        self._noticed = 0.0

    def listen(self, path: Path, door: str, mode: int, uid: int | None = None) -> None:
        """Opens one socket in place of a dead guard's, or takes over systemd's. OSError when it cannot."""
        passed = passed_socket(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=passed)
        listener.setblocking(False)
        if passed is None:
            _bind(listener, path, mode, uid)
        listener.listen(128)
        self._selector.register(listener, selectors.EVENT_READ, door)
        if door != "member":  # that folder stays where it is
            self._listening[path.name] = (door, mode, uid)

    def _listen_in(self, folder: Path) -> None:
        """The same sockets in another folder as well."""
        for name, (door, mode, uid) in list(self._listening.items()):
            self.listen(folder / name, door, mode, uid)

    def close(self) -> None:
        """After ``serve``, once nothing of the instance is left: no folder outside the state directory stays behind."""
        self._relocation.clear()

    def wake(self) -> None:
        """From any thread or signal handler."""
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def serve(self) -> None:
        """Until ``quit``."""
        while not self._desk.wants_to_end:
            self.turn(0.0 if self._waiting else self._patience())
        self._deliver()

    def turn(self, patience: float) -> None:
        """One round: who came, what was said, then the presses among it, then as much of the rest as there is time for."""
        for key, mask in self._selector.select(patience):
            try:
                self._attend(key, mask)
            except FAULTS as fault:
                note_fault("loop", fault)
                if isinstance(key.data, Connection):
                    self._drop(key.data)
        self._serve_lines()
        self._run_timers()

    def _patience(self) -> float:
        return max(0.0, min(self._ticked + _period(self._guard, self._connections) - monotonic(), self._freezing.next_timer()))

    def _attend(self, key: selectors.SelectorKey, mask: int) -> None:
        if isinstance(key.data, Connection):
            if mask & selectors.EVENT_WRITE:
                self._send(key.data)
            if mask & selectors.EVENT_READ and key.data in self._connections and key.data not in self._waiting:
                self._read(key.data)
        elif key.data == "wake":
            with contextlib.suppress(BlockingIOError):
                self._waker.recv(4096)
        else:
            assert isinstance(key.fileobj, socket.socket)
            for _ in range(ACCEPTS):
                if not self._accept(key.fileobj, key.data):
                    break

    def _run_timers(self) -> None:
        try:
            while self.presses_asked:
                self.presses_asked -= 1
                self._guard.press("all", "SIGUSR1", "signal")
            self._deliver()
            self._freezing.fire_holds()
            self._freezing.check_timers()
            now = monotonic()
            if now - self._ticked >= _period(self._guard, self._connections):
                self._ticked = now
                self._tick(now)
        except FAULTS as fault:
            note_fault("timers", fault)

    def _tick(self, now: float) -> None:
        self._guard.strike_the_risen()
        for connection in [c for c in self._connections if c.partial_since and now - c.partial_since > PARTIAL_LINE_S]:
            self._drop(connection)
        if now - self._noticed >= 1.0:
            self._noticed = now
            notify(ALIVE)
            self._guard.clerk.do_alone(self._housekeeping)
            alone = now - self._freezing.heard_at > self._guard.config.orphan_s
            if alone and not self._guard.latch.state.latched and not self._guard.registry.held:
                self._desk.wants_to_end = True

    def _housekeeping(self) -> None:
        """Once a second, on the clerk's thread: what the disk says, what it still owes, what runs now."""
        guard = self._guard
        self._relocation.look()
        if self._relocation.must_end():
            self._desk.wants_to_end = True
        if guard.latch.obey_disk():
            guard.notices["latch"] = "Blocked by a kill that was made without the guard."
            guard.record("latch", guard.latch.save)
            self.wake()  # the next tick comes sooner now: processes that appear are killed
        guard.write_what_is_owed()
        guard.reserve.make()
        self._desk.unlatching.look()
        with guard.lock:  # a press that comes now is not handed what is closed here
            if not guard.is_killing():
                guard.seen.sweep(guard.afterwards.holds)
        if not guard.is_killing():
            guard.registry.sweep(guard.afterwards.holds)
            for held in list(guard.registry.held.values())[:200]:
                held.look()

    def _accept(self, listener: socket.socket, door: str) -> bool:
        """Accept one connection. False when no client waits any more."""
        try:
            sock, _ = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                self._make_room()
            return False
        sock.setblocking(False)
        try:
            peer = find_peer(sock)
        except OSError:
            sock.close()
            return True
        connection = Connection(sock, door, peer, judge(peer, self._guard.agent_places()), used_at=monotonic())
        connection.rights = _rights_of(connection)
        if not connection.rights or _has_enough(self._connections, connection):
            _turn_away(sock, _BUSY if connection.rights else _NO_MEMBER)
            return True
        if len(self._connections) >= MOST_CONNECTIONS or sock.fileno() >= resource.getrlimit(resource.RLIMIT_NOFILE)[0] - KEPT_FILES:
            self._make_room()
        self._connections[connection] = None
        self._selector.register(sock, selectors.EVENT_READ, connection)
        return True

    def _is_spare(self, connection: Connection) -> bool:
        """Beyond the ordinary count, as it is now: presses only."""
        ordinary = MOST_CONNECTIONS - KEPT_FOR_PRESSES
        return len(self._connections) > ordinary and connection in list(self._connections)[ordinary:]

    def _make_room(self) -> None:
        """Close the connection that was unused for longest, of the process with most connections; without one, give up spare
        descriptors."""
        idle = [c for c in self._connections if not c.is_busy and not any(self._freezing.is_held(h) for h in c.holds)]
        if idle:
            count = Counter(c.peer.pid for c in self._connections)
            self._drop(min(idle, key=lambda c: (-count[c.peer.pid], c.used_at)))
        elif self._spare:
            os.close(self._spare.pop())

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(LINE_LIMIT + 1)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        connection.inbox += data
        connection.used_at = monotonic()
        self._take_lines(connection)

    def _take_lines(self, connection: Connection) -> None:
        """Whole lines wait for their turn; too long ones, and too many from one peer at once, end the connection."""
        has_line = b"\n" in connection.inbox
        if len(connection.inbox) > 2 * LINE_LIMIT or (not has_line and len(connection.inbox) > LINE_LIMIT):
            self._drop(connection)
            return
        if has_line and not connection.is_busy and connection not in self._waiting:
            self._waiting.append(connection)
        is_partial = bool(connection.inbox) and not has_line and not connection.is_busy
        connection.partial_since = (connection.partial_since or monotonic()) if is_partial else 0.0

    def _serve_lines(self) -> None:
        """One line of each that waits: presses first, the others in turn for ``TURN_S``. So no peer's talk keeps another from pressing."""
        waiting, self._waiting = list(self._waiting), deque()
        urgent = [c for c in waiting if any(word in c.inbox.partition(b"\n")[0] for word in _URGENT)]
        rest = [c for c in waiting if c not in urgent]
        until, served = time.monotonic() + TURN_S, 0
        for connection in urgent:
            self._serve_line(connection)
        while served < len(rest) and (not served or time.monotonic() < until):
            self._serve_line(rest[served])
            served += 1
        self._waiting.extendleft(reversed([c for c in rest[served:] if c in self._connections]))

    def _serve_line(self, connection: Connection) -> None:
        if connection not in self._connections or connection.is_busy:
            return
        line, _, rest = bytes(connection.inbox).partition(b"\n")
        connection.inbox = bytearray(rest)
        try:
            self._handle(connection, line + b"\n")
        except FAULTS as fault:
            note_fault("line", fault)
            self._drop(connection)
        if connection in self._connections:
            self._take_lines(connection)

    def _handle(self, connection: Connection, line: bytes) -> None:
        try:
            message = decode(line)
            message["heard_at"] = connection.used_at  # ours, whatever the peer says
            op = self._desk.find(message.get("op"), connection.door)
            self._check_peer(connection, op, message)
            if op.at_once is not None:
                op.at_once(message)
            if op.is_order and not _gather(connection, message):
                self._reply(connection, {"ok": True, "lines": len(connection.gathered)})
                return
        except (ValueError, RecursionError):
            self._reply(connection, {"ok": False, "error": "That is not one JSON object on a line.", "remedy": "", "kind": "UsageProblem"})
            return
        except ConsoleError as error:
            self._reply(connection, {"ok": False, "error": error.what, "remedy": error.remedy, "kind": type(error).__name__})
            return
        if op.slow:
            connection.is_busy = True
            self._guard.clerk.do(lambda: self._work(connection, op, message))
            return
        answer = self._desk.answer(op, message, connection.peer)
        if message["op"] == "hold":
            connection.holds = [h for h in connection.holds if self._freezing.is_held(h)] + [str(answer.get("hold_id", ""))]
        self._reply(connection, answer)

    def _check_peer(self, connection: Connection, op: Op, message: dict[str, Any]) -> None:
        """Raises Denied. An agent stays one: a connection handed on, or a pid that ended, does not clear it."""
        if connection.standing is not Standing.AGENT:
            connection.standing = judge(connection.peer, self._guard.agent_places())
        if connection.standing is Standing.AGENT:
            self._guard.notices["agent-knocked"] = (
                f"A process of an agent (pid {connection.peer.pid}) asked the guard for something and was refused."
            )
            raise Denied("An agent has no say here.", "")
        if connection.door == "member":
            self._members.check(connection, message)
        doubtful = connection.standing is Standing.UNCLEAR
        if connection.door == "supervisor" and (doubtful or not may_command(connection.peer.uid, self._guard.config.supervisor_uid)):
            raise Denied("This socket is the supervisor's.", "Operators use guard.sock.")
        if doubtful and op.loosens:
            raise Denied("It is not clear who asks, and this loosens a stop.", "Ask from an ordinary process of this host.")
        if self._is_spare(connection) and message.get("op") not in ALWAYS:
            raise TooMany("The guard is busy: only kills are served on this connection.", "Close some.")

    def _work(self, connection: Connection, op: Op, message: dict[str, Any]) -> None:
        """On the clerk's thread."""
        try:
            answer = self._desk.answer(op, message, connection.peer)
        except FAULTS as fault:
            note_fault("desk", fault)
            answer = _failed(fault)
        self._answers.append((connection, answer))
        self.wake()

    def _deliver(self) -> None:
        while self._answers:
            connection, answer = self._answers.popleft()
            if connection in self._connections:
                connection.is_busy = False
                self._reply(connection, answer)
                self._take_lines(connection)

    def _reply(self, connection: Connection, answer: dict[str, Any]) -> None:
        try:
            connection.outbox += encode(answer)
        except ValueError:
            connection.outbox += encode({"ok": False, "error": "The answer does not fit into a line.", "remedy": "", "kind": "TooLarge"})
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        try:
            sent = connection.sock.send(connection.outbox) if connection.outbox else 0
            del connection.outbox[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        if len(connection.outbox) > 64 * LINE_LIMIT:  # it asks and never listens
            self._drop(connection)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.outbox else 0)
        self._selector.modify(connection.sock, events, connection)

    def _drop(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.sock)
        connection.sock.close()
        for hold_id in connection.holds:
            self._freezing.peer_vanished(hold_id)


def _rights_of(connection: Connection) -> frozenset[Right]:
    """Return what the peer may ask: on the members' socket what its groups allow, unless it is root."""
    if connection.door != "member" or connection.peer.uid in (0, os.geteuid()):
        return OWNER.rights
    return member(roles_of(peer_groups(connection.sock))).rights


def _has_enough(connections: Iterable[Connection], newcomer: Connection) -> bool:
    """Limit the connections of one process, of one account of members, and of all agents together."""
    same = sum(1 for c in connections if c.peer.pid == newcomer.peer.pid)
    account = sum(1 for c in connections if newcomer.door == c.door == "member" and c.peer.uid == newcomer.peer.uid)
    agents = sum(1 for c in connections if c.standing is Standing.AGENT)
    return max(same, account) >= MOST_PER_PEER or (newcomer.standing is Standing.AGENT and agents >= MOST_OF_AGENTS)


def _period(guard: Guard, connections: Iterable[Connection]) -> float:
    """Return the seconds between two ticks: long while no agent can come back and no connection sent half a line."""
    is_busy = guard.latch.state.latched or guard.registry.held or any(c.partial_since for c in connections)
    return TICK_S if is_busy else REST_S


def _gather(connection: Connection, message: dict[str, Any]) -> bool:
    """Whether the order is whole; its scope is then that of all its lines. Raises UsageProblem."""
    if message.get("more") is True:
        scope = scope_of(message)
        if isinstance(scope, str) or len(connection.gathered) >= ORDER_LINES:
            connection.gathered.clear()
            raise UsageProblem(f"An order in several lines names agents, in {ORDER_LINES} lines at most.", "Kill everything instead.")
        connection.gathered.append(scope)
        return False
    if connection.gathered:
        last = scope_of(message)
        message["scope"] = [i for line in connection.gathered for i in line] + (last if isinstance(last, list) else [])
        connection.gathered.clear()
    return True


def _turn_away(sock: socket.socket, words: bytes) -> None:
    """Says why, and closes."""
    with contextlib.suppress(OSError):
        sock.send(words)
    sock.close()


def _failed(fault: BaseException) -> dict[str, Any]:
    words = f"The guard failed at this: {type(fault).__name__}."
    return {"ok": False, "error": words, "remedy": "See guard.log.", "kind": "ConsoleError"}
