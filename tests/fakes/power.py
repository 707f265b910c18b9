"""Power loss (fault 4): what would be on the disk if the power failed at each moment at which a process of ours syncs or renames a file.

Processes run under ``tests.fakes.power_hooks``; each tells the ``Recorder`` before every sync and after every rename, and waits.
The recorder stops all of them, reads the whole folder, and lets them go on. From these looks a ``Copy`` of the folder is made per moment
and per ``Kind``: nothing is durable but what POSIX promises, the content of a file that was synced and the names in a folder that was
synced (fsync(2)).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import stat
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

SOCKET_VARIABLE = "WATCHFLOOR_TEST_POWER"
PIECE = 4096
SECTOR = 512
LEFT_OUT = ("-shm",)
"""SQLite makes its shared memory anew when nobody has the file open (sqlite.org/walformat.html)."""


class Kind(StrEnum):
    """What of the writes since the last sync reached the disk."""

    ALL = "all"
    """Every byte: the processes died, the machine went on."""
    NONE = "none"
    """Nothing."""
    TORN = "torn"
    """Some sectors of some files; no new name."""
    NAMES = "names"
    """Every new name, but of no file the content: a file renamed before it was synced is empty."""


@dataclass(frozen=True, slots=True)
class Node:
    """A file, folder or link as it was seen. ``content``: digests of its pieces, or of the link's target."""

    ino: int
    mode: int
    uid: int
    gid: int
    size: int
    content: tuple[bytes, ...] = ()

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


View = Mapping[str, Node]
"""By path below the folder; the folder itself is ``""``."""


@dataclass(frozen=True, slots=True)
class Point:
    """One moment. ``synced``: the inode whose sync follows, 0 for a rename."""

    what: str
    synced: int
    view: View


@dataclass
class Disk:
    """What is durable: content by inode, names by inode of their folder."""

    content: dict[int, Node] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    seen: dict[int, Node] = field(default_factory=dict)

    def sync(self, ino: int, view: View) -> None:
        for path, node in view.items():
            if node.ino != ino:
                continue
            if node.is_folder:
                self.names[ino] = {p.rpartition("/")[2]: n.ino for p, n in view.items() if p and p.rpartition("/")[0] == path}
            else:
                self.content[ino] = node
            return

    def tree(self, root: int, path: str = "") -> Iterator[tuple[str, Node]]:
        """What a walk over the durable names finds, with the durable content or none."""
        for name, ino in self.names.get(root, {}).items():
            node, where = self.content.get(ino, self.seen[ino]), f"{path}/{name}" if path else name
            if node.is_folder:
                yield where, node
                yield from self.tree(ino, where)
            else:
                yield where, self.kept(ino)

    def kept(self, ino: int) -> Node:
        """The file with its durable content; empty when it was never synced. A link's target is part of its name."""
        node = self.seen[ino]
        if stat.S_ISLNK(node.mode):
            return node
        return self.content.get(ino) or Node(ino, node.mode, node.uid, node.gid, 0)


class Recorder:
    """Looks at ``folder`` whenever a process asks. ``close`` once they have ended."""

    def __init__(self, folder: Path, sock: Path) -> None:
        self.folder, self.points, self.pieces = folder, list[Point](), dict[bytes, bytes]()
        self._lock, self._held, self._pids = threading.Lock(), dict[int, int](), set[int]()
        self._before: dict[str, tuple[tuple[int, ...], Node]] = {}
        self.begun = self._look()
        """What is there when the recording begins counts as durable."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(sock))
        self._listener.listen(8)
        self._threads = [threading.Thread(target=self._accept, name="power-accept")]
        self._threads[0].start()

    @property
    def now(self) -> int:
        """How many moments there were: what is true now must hold in every copy from here on."""
        with self._lock:
            return len(self.points)

    def note(self, what: str, synced: int) -> None:
        """A moment: ``synced`` is the inode that is about to be synced, 0 for none."""
        with self._lock, self._stopped():
            self.points.append(Point(what, synced, self._look()))

    def close(self) -> None:
        """Once every process has ended."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            pid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            self._threads.append(threading.Thread(target=self._serve, args=(peer, pid), name="power-serve"))
            self._threads[-1].start()

    def _serve(self, peer: socket.socket, pid: int) -> None:
        self._pids.add(pid)
        with peer, peer.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                asked = json.loads(line)
                self.note(str(asked["what"]), int(asked["ino"]))
                peer.sendall(b"\n")
        self._pids.discard(pid)

    @contextlib.contextmanager
    def _stopped(self) -> Iterator[None]:
        """No process writes while this looks."""
        pids = list(self._pids)
        try:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)  # supervisor or guard of the test's own, named by the kernel on its connection
            for pid in pids:
                while not _is_stopped(pid):
                    time.sleep(0.0002)
            yield
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _look(self) -> View:
        view = {"": self._node(self.folder, os.lstat(self.folder), "")}
        for top, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                if not name.endswith(LEFT_OUT):
                    path = os.path.join(top, name)
                    with contextlib.suppress(FileNotFoundError):  # an agent goes on
                        found = os.lstat(path)
                        if stat.S_IFMT(found.st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                            relative = os.path.relpath(path, self.folder)
                            view[relative] = self._node(Path(path), found, relative)
        return view

    def _node(self, path: Path, found: os.stat_result, relative: str) -> Node:
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._before.get(relative)
        if known is not None and known[0] == stamp:
            return known[1]
        if found.st_ino not in self._held:  # as long as it is held its number is no other file's
            self._held[found.st_ino] = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        data = b""
        if stat.S_ISREG(found.st_mode):
            data = path.read_bytes()
        elif stat.S_ISLNK(found.st_mode):
            data = os.fsencode(path.readlink())
        content = tuple(self._keep(data[at : at + PIECE]) for at in range(0, len(data), PIECE))
        node = Node(found.st_ino, found.st_mode, found.st_uid, found.st_gid, len(data), content)
        self._before[relative] = (stamp, node)
        return node

    def _keep(self, piece: bytes) -> bytes:
        digest = hashlib.blake2b(piece, digest_size=16).digest()
        self.pieces.setdefault(digest, piece)
        return digest

    def bytes_of(self, node: Node) -> bytes:
        return b"".join(self.pieces[digest] for digest in node.content)


def _is_stopped(pid: int) -> bool:
    """Every thread of it; or it is gone."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError):
                state = Path(f"/proc/{pid}/task/{task}/stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in b"TtZX":
                    return False
    except (FileNotFoundError, ProcessLookupError):
        pass
    return True


@dataclass(frozen=True)
class Copy:
    """The folder as it is found when the power is back: ``number`` moments have passed."""

    number: int
    kind: Kind
    what: str
    files: tuple[tuple[str, Node, bytes], ...]

    @property
    def digest(self) -> str:
        """The same for copies that are the same."""
        total = hashlib.sha256()
        for path, node, data in self.files:
            total.update(f"{path}\0{node.mode}\0{len(data)}\0".encode() + data)
        return total.hexdigest()

    def lay_out(self, folder: Path) -> None:
        """Writes it into ``folder``, which is there and empty."""
        for path, node, data in self.files:
            target = folder / path
            if node.is_folder:
                target.mkdir()
            elif stat.S_ISLNK(node.mode):
                target.symlink_to(os.fsdecode(data))
            else:
                target.write_bytes(data)
            os.chown(target, node.uid, node.gid, follow_symlinks=False)
            if not stat.S_ISLNK(node.mode):
                target.chmod(stat.S_IMODE(node.mode))

    def __str__(self) -> str:
        return f"{self.number} {self.kind}: {self.what}"


def copies(recorder: Recorder, wanted: Mapping[int, tuple[Kind, ...]]) -> Iterator[Copy]:
    """The copies of the wanted moments, oldest first. Moment N is that after N syncs and renames, before the next one."""
    disk = Disk()
    root = recorder.begun[""].ino
    disk.seen.update((node.ino, node) for node in recorder.begun.values())
    for node in recorder.begun.values():
        disk.sync(node.ino, recorder.begun)
    for number, point in enumerate(recorder.points):
        disk.seen.update((node.ino, node) for node in point.view.values())
        for kind in wanted.get(number, ()):
            yield Copy(number, kind, f"before {point.what}", tuple(_files(recorder, disk, root, point.view, kind, number)))
        if point.synced:
            disk.sync(point.synced, point.view)


def _files(recorder: Recorder, disk: Disk, root: int, view: View, kind: Kind, number: int) -> Iterator[tuple[str, Node, bytes]]:
    if kind in (Kind.ALL, Kind.NAMES):
        for path, node in sorted(view.items()):
            if path:
                kept = node if kind is Kind.ALL or node.is_folder else disk.kept(node.ino)
                yield path, node, recorder.bytes_of(kept) if not node.is_folder else b""
        return
    chance, now = random.Random(number), {node.ino: node for node in view.values()}  # noqa: S311 - not for secrets
    for path, node in disk.tree(root):
        if node.is_folder:
            yield path, node, b""
            continue
        data = recorder.bytes_of(node)
        if kind is Kind.TORN and stat.S_ISREG(node.mode) and node.ino in now:
            data = torn(data, recorder.bytes_of(now[node.ino]), chance)
        yield path, node, data


def torn(old: bytes, new: bytes, chance: random.Random) -> bytes:
    """Some sectors of the new content over the old; what was never written is zero."""
    if old == new:
        return old
    size = chance.choice((len(old), len(new), chance.randint(min(len(old), len(new)), max(len(old), len(new)))))
    mixed = bytearray(old[:size].ljust(size, b"\0"))
    for at in range(0, size, SECTOR):
        if chance.random() < 0.5 and new[at : at + SECTOR]:
            piece = new[at : min(at + SECTOR, size)]
            mixed[at : at + len(piece)] = piece
    return bytes(mixed)
