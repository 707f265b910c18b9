"""The kernel's lists of sockets, of one network namespace or of several (sock_diag(7), NETLINK_SOCK_DIAG).

They are read for the regular look, and within 10 ms in parallel to the first SIGKILL of a kill."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3
_HEADER, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
ESTABLISHED, LISTEN = 1, 10
_TCP_STATES = sum(1 << state for state in (ESTABLISHED, 4, 5, 8, 9, LISTEN, 11))
"""All but the ones that have no owner any more (TIME_WAIT) or no other end yet (SYN_SENT, SYN_RECV). linux/tcp_states.h."""
_TCLASS = 1 << 5
"""idiag_ext: asks for the traffic class, and for the cgroup with it (inet_diag_msg_attrs_fill)."""
_CGROUP_ID = 21
_SHOW = 0x01 | 0x04 | 0x08 | 0x40
"""UDIAG_SHOW_NAME, PEER, ICONS (clients that wait to be accepted), UID. linux/unix_diag.h."""
_NAME, _PEER, _ICONS, _UID = 0, 2, 3, 7
_PIECE = 1 << 17
LARGEST = 16 << 20
"""Bytes of one dump: about 100,000 sockets."""
WARM_S = 0.1
_NEWNET = 0x40000000
_MAPPED = bytes(10) + b"\xff\xff"
LATE = "the list of sockets took too long to read"
Address = tuple[bytes, int]
"""IP address in network byte order (an IPv4 one, also within IPv6, has 4 bytes) and port."""


class TooLate(OSError):
    """The dump could not be read whole in the time or room that it had."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """One TCP socket. ``cgroup``: id (inode number) of the cgroup v2 that it was made in, 0 where the kernel does not say."""

    inode: int
    state: int
    local: Address
    remote: Address
    uid: int
    cgroup: int = 0

    @property
    def is_listening(self) -> bool:
        return self.state == LISTEN


@dataclass(frozen=True, slots=True)
class Unix:
    """One unix socket. ``peer``: inode of the other end, 0 for none (or one that no process has accepted yet)."""

    inode: int
    state: int
    name: bytes
    """Path, or NUL and an abstract name; empty for most clients."""
    peer: int
    uid: int
    waiting: tuple[int, ...] = ()
    """Of a listening socket: inodes of clients that are connected and that no process has accepted."""

    @property
    def is_listening(self) -> bool:
        return self.state == LISTEN


@dataclass(frozen=True, slots=True)
class Raw:
    """What was read of one namespace, not parsed yet."""

    namespace: int
    """Inode of the network namespace."""
    unix: bytes
    tcp: bytes


class Reader:
    """Netlink sockets in one network namespace: they stay there whatever becomes of the thread that opened them."""

    def __init__(self, pid: int | None = None) -> None:
        """In our own namespace, or in that of a process (setns(2): CAP_SYS_ADMIN). OSError when it cannot be entered."""
        place = "/proc/thread-self/ns/net" if pid is None else f"/proc/{pid}/ns/net"
        target = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.namespace = os.fstat(target).st_ino
            self._target = target
            self._socks = self._open_inside()
        except OSError:
            os.close(target)
            raise
        with contextlib.suppress(OSError):
            self.read(time.monotonic() + WARM_S)  # the kernel makes the first piece as large as what was taken at once before

    def _open_inside(self) -> list[socket.socket]:
        """One for each list: a dump that is cut short must not mix with another one."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(home).st_ino == self.namespace:
                return [_open() for _ in range(3)]
            _enter(self._target)
            try:
                return [_open() for _ in range(3)]
            finally:
                _enter(home)
        finally:
            os.close(home)

    def read(self, deadline: float) -> Raw:
        """Every unix and TCP socket as it was before ``deadline`` (CLOCK_MONOTONIC). TooLate when some were listed only after it; OSError
        when the kernel refuses.

        The kernel fills the first piece of a list while it is asked for (netlink_dump_start), and each further one while the one before is
        taken. So all lists are asked for first: what a busy machine lets us take later was true before.
        """
        asked = (_unix_request(), _inet_request(socket.AF_INET), _inet_request(socket.AF_INET6))
        try:
            if time.monotonic() > deadline:
                raise TooLate(0, LATE)
            for sock, request in zip(self._socks, asked, strict=True):
                sock.send(_HEADER.pack(_HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, _DUMP, 1, 0) + request)
            is_late = time.monotonic() > deadline
            unix, tcp = (self._take(sock, deadline, is_late=is_late) for sock in self._socks[:2])
            with contextlib.suppress(FileNotFoundError):  # a kernel without IPv6
                tcp += self._take(self._socks[2], deadline, is_late=is_late)
        except OSError:
            self._renew()  # the rest of a dump that was left would be taken for the next one
            raise
        return Raw(self.namespace, unix, tcp)

    def _renew(self) -> None:
        for sock in self._socks:
            sock.close()
        with contextlib.suppress(OSError):
            self._socks = self._open_inside()

    def _take(self, sock: socket.socket, deadline: float, *, is_late: bool) -> bytes:
        """``is_late``: the list was asked for too late already."""
        parts, size = list[bytes](), 0
        while True:
            will_be_late = time.monotonic() > deadline  # what this call makes the kernel list
            part = sock.recv(_PIECE)
            parts.append(part)
            size += len(part)
            if (is_late and _has_sockets(part)) or size > LARGEST:
                raise TooLate(0, LATE)
            if _is_last(part):
                return b"".join(parts)
            is_late = is_late or will_be_late

    def close(self) -> None:
        """Lets the namespace go: an open netlink socket keeps it alive."""
        for sock in self._socks:
            sock.close()
        if self._target >= 0:
            os.close(self._target)
            self._target = -1


def _open() -> socket.socket:
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
    made.setblocking(False)  # a dump is there when it was asked for; nothing is ever waited for
    return made


def _enter(namespace: int) -> None:
    """Moves this thread alone. Called on no thread that anything else relies on."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _unix_request() -> bytes:
    return struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW, 0, 0)


def _inet_request(family: int) -> bytes:
    return struct.pack("=BBBBI", family, socket.IPPROTO_TCP, _TCLASS, 0, _TCP_STATES) + bytes(48)


def _messages(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(type, begin, end) of each message's content."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        if length < _HEADER.size:
            return
        yield kind, at + _HEADER.size, min(at + length, len(data))
        at += (length + 3) & ~3


def _has_sockets(part: bytes) -> bool:
    return any(kind == SOCK_DIAG_BY_FAMILY for kind, _, _ in _messages(part))


def _is_last(part: bytes) -> bool:
    """Whether a piece ends the dump. OSError when it says that the kernel refuses."""
    for kind, begin, end in _messages(part):
        if kind == _ERROR or (kind == _DONE and end - begin >= 4):
            number = -struct.unpack_from("=i", part, begin)[0]
            if number > 0:
                raise OSError(number, os.strerror(number))
        if kind in (_ERROR, _DONE):
            return True
    return False


def _attributes(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3


_INET = struct.Struct("=BBBB2s2s16s16sIIIIIIII")
"""struct inet_diag_msg, linux/inet_diag.h."""


def parse_tcp(data: bytes) -> Iterator[Tcp]:
    """Every TCP socket of a dump that belongs to a process."""
    for kind, begin, end in _messages(data):
        if kind != SOCK_DIAG_BY_FAMILY or end - begin < _INET.size:
            continue
        family, state, _, _, sport, dport, src, dst, *_rest, uid, inode = _INET.unpack_from(data, begin)
        cgroup = 0
        for name, value in _attributes(data, begin + _INET.size, end):
            if name == _CGROUP_ID and len(value) >= 8:
                cgroup = int.from_bytes(value[:8], "little" if struct.pack("=H", 1) == b"\1\0" else "big")
        yield Tcp(inode, state, (_address(family, src), int.from_bytes(sport)), (_address(family, dst), int.from_bytes(dport)), uid, cgroup)


def _address(family: int, raw: bytes) -> bytes:
    if family == socket.AF_INET:
        return raw[:4]
    return raw[12:] if raw.startswith(_MAPPED) else raw


def parse_unix(data: bytes) -> Iterator[Unix]:
    """Every unix socket of a dump."""
    for kind, begin, end in _messages(data):
        if kind != SOCK_DIAG_BY_FAMILY or end - begin < 16:
            continue
        _, _, state, _, inode = struct.unpack_from("=BBBBI", data, begin)
        found = dict(_attributes(data, begin + 16, end))
        icons = found.get(_ICONS, b"")
        yield Unix(
            inode,
            state,
            found.get(_NAME, b"")[:128],
            _word(found.get(_PEER)),
            _word(found.get(_UID)),
            struct.unpack(f"={len(icons) // 4}I", icons[: len(icons) // 4 * 4]),
        )


def _word(value: bytes | None) -> int:
    return int(struct.unpack("=I", value[:4])[0]) if value and len(value) >= 4 else 0


def address_words(address: Address) -> str:
    """For people: 127.0.0.1:80 or [::1]:80."""
    host, port = address
    if len(host) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, host)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, host)}]:{port}"


def name_words(name: bytes) -> str:
    """Return the name in words: a path, or an abstract name after an @. The text is hostile: escape it before it is shown."""
    text = name.removesuffix(b"\0") if not name.startswith(b"\0") else b"@" + name[1:]
    return text.decode("utf-8", "backslashreplace")


DUMP_S = 0.010
"""What the kernel did not list in this time is not recorded."""
LOOK_DUMP_S = 0.5
MOST_NAMESPACES = 32


@dataclass(slots=True)
class Taken:
    """The dump of one kill, while it is made and when it is made."""

    deadline: float
    raws: list[Raw] = field(default_factory=list)
    trouble: str = ""
    done: threading.Event = field(default_factory=threading.Event)


class Dump:
    """Open sockets in our own network namespace and in those of agents, and the thread that serves kills."""

    def __init__(self) -> None:
        self._readers: dict[int, Reader] = {}
        """By namespace, for the regular look; 0 is our own."""
        self._kill_readers: dict[int, Reader] = {}
        """A second socket in each, so that a kill waits for no look."""
        self._refused: set[int] = set()
        """Namespaces that cannot be entered."""
        self._asked: deque[Taken] = deque(maxlen=64)
        self._wanted = threading.Semaphore(0)
        self._has_ended = False
        self._looking = threading.Lock()
        """The regular look and the ends of kills share the first readers."""

    def start(self) -> None:
        """The thread. Without it every kill says "not recorded"."""
        with contextlib.suppress(OSError):
            self._kill_readers[0] = Reader()
        with contextlib.suppress(RuntimeError):  # no thread to be had
            threading.Thread(target=self._serve, name="socket-dump", daemon=True).start()

    def end(self) -> None:
        """Ends the thread, and lets every namespace go."""
        self._has_ended = True
        self._wanted.release()
        self.open({})
        for readers in (self._readers, self._kill_readers):
            for reader in readers.values():
                reader.close()

    def ask(self) -> Taken:
        """Asks for the dump of a kill. Returns at once; the thread does the rest."""
        taken = Taken(time.monotonic() + DUMP_S)
        self._asked.append(taken)
        self._wanted.release()
        return taken

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # its 10 ms pass while other programs have the processor; sched(7): RLIMIT_RTPRIO
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        while self._wanted.acquire() and not self._has_ended:
            if self._asked:
                self.take(self._asked.popleft())

    def take(self, taken: Taken) -> None:
        """Reads every namespace, ours first: there the programs are that agents could ask for work."""
        try:
            if not self._kill_readers:
                taken.trouble = "the kernel gives this account no list of sockets"
            for namespace, reader in list(self._kill_readers.items()):
                try:
                    taken.raws.append(reader.read(taken.deadline))
                except OSError as error:
                    if error.errno != errno.EBADF or not namespace:  # closed by the look: the last agent in it has ended
                        raise
        except OSError as error:
            taken.trouble = words_of(error)
        finally:
            taken.done.set()

    def open(self, namespaces: dict[int, int]) -> None:
        """Sockets in our own namespace and in these, each with the pid of a process in it; those of no agent are closed."""
        own = Path("/proc/thread-self/ns/net").stat().st_ino
        others = [(n, pid) for n, pid in namespaces.items() if n != own and n not in self._refused]
        wanted: dict[int, int | None] = {0: None, **dict(others[:MOST_NAMESPACES])}
        with self._looking:
            self._open(wanted)
        self._refused &= namespaces.keys()

    def _open(self, wanted: dict[int, int | None]) -> None:
        for namespace, pid in wanted.items():
            try:
                for readers in (self._readers, self._kill_readers):
                    if namespace not in readers:
                        readers[namespace] = Reader(pid)
            except OSError:
                self._refused.add(namespace)
        for readers in (self._readers, self._kill_readers):
            for namespace in readers.keys() - wanted.keys():
                readers.pop(namespace).close()

    def look(self) -> tuple[list[Raw], dict[int, str]]:
        """(what each namespace has now, why one could not be read; 0 is our own)."""
        found, trouble = list[Raw](), dict[int, str]()
        with self._looking:
            for namespace, reader in self._readers.items():
                try:
                    found.append(reader.read(time.monotonic() + LOOK_DUMP_S))
                except OSError as error:
                    trouble[namespace] = words_of(error)
        if 0 not in self._readers:
            trouble[0] = "the kernel gives this account no list of sockets"
        return found, trouble


def words_of(error: OSError) -> str:
    """For the middle of a sentence."""
    return (error.strerror or str(error)).rstrip(".")
