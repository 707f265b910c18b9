"""The latch: the durable local fact "killed". Missing or corrupt in a folder that was in use, it reads as killed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from console.domain.errors import Conflict, TimedOut
from console.domain.kill import KILL_ID
from console.killswitch.store.atomic_file import Damaged, Reserve, Witness, read_sealed, seal, write_whole

LOCK_S = 1.0
"""A press waits no longer for another writer (a stopped guard, say) and saves without the lock; a release gives up."""
MARK = "pressed-"
UNREADABLE = "press-unreadable"
MOST_KILLS = 100
"""Kill ids the latch lists (an unlatch must name them all in one 4 KiB line); a later press still raises the generation."""


@dataclass(frozen=True, slots=True)
class LatchState:
    """``generation`` rises with every press on everything; ``kills`` are the ids that an unlatch must cover."""

    latched: bool = False
    generation: int = 0
    kills: tuple[str, ...] = ()
    why: str = ""


class Latch:
    """The state in memory, and its file. Memory comes first: only ``save`` waits for the disk.

    Several processes write the file (the guard, its successor, a kill without a guard), each under ``latch.lock``. None ever overwrites
    another's kill. A marker, one file for each kill, stands for a kill that is not on disk yet. It outlives a caller that died right after
    its kill, and no release goes past a marker that it does not cover.
    """

    def __init__(self, folder: Path, reserve: Reserve | None = None, run_dir: Path | None = None) -> None:
        self._run_dir = run_dir
        self.move_to(folder)
        self._known: set[str] = set()
        """Every kill that was ever in ``state``: their markers say nothing new."""
        self._reserve = reserve
        self._disk = threading.Lock()
        self._memory = threading.RLock()
        """Around every change of ``state``; nothing waits for the disk under it."""
        self._seen: tuple[int, int] | None = None
        self.state = LatchState()

    def move_to(self, folder: Path) -> None:
        """Keeps it in another folder from now on. ``save`` puts it there."""
        self.path = folder / "latch.json"
        self._lock_path = folder / "latch.lock"
        self._places = tuple(place for place in (self._run_dir, folder) if place is not None)
        self._witness = Witness(folder)

    def load(self, last_generation: int = 0) -> None:
        """Reads the file. ``last_generation`` is the highest one known from elsewhere (registry, journal)."""
        self.state = self._read(last_generation)
        self._known.update(self.state.kills)
        self._take_in_markers(must_look=True)

    def press(self, kill_id: str, why: str) -> LatchState:
        """Latched in memory, at once."""
        with self._memory:
            now = self.state
            self._known.add(kill_id)
            kills = now.kills if len(now.kills) >= MOST_KILLS else (*now.kills, kill_id)
            self.state = LatchState(True, now.generation + 1, kills, why[:500])
            return self.state

    def mark(self, kill_id: str) -> None:
        """Leaves the marker of a press, without waiting for the disk: before the press is answered, after SIGKILL went out."""
        for place in self._places:
            try:
                fd = os.open(place / f"{MARK}{kill_id}", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError:
                continue  # full, or not there: the next place
            os.close(fd)
            return

    def save(self) -> None:
        """Memory to disk, together with what others pressed meanwhile; OSError when it is not durable."""
        with self._disk, contextlib.suppress(TimedOut), self._locked():
            self._unmark(self._save())
            return
        with self._disk:
            self._save()  # a stopped guard may yet write a release over it: the marker stays, and speaks then

    def _save(self) -> LatchState:
        self._merge(self._read(self.state.generation))
        state = self.state
        write_whole(self.path, seal(asdict(state)), self._reserve)
        self._seen = self._stamp()
        self._witness.ensure()
        return state

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone with the file among all processes. TimedOut when that cannot be had within ``LOCK_S``."""
        try:
            fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise TimedOut("The latch cannot be locked.", "Make room on the disk.") from error
        try:
            deadline = time.monotonic() + LOCK_S
            while not _take(fd):
                if time.monotonic() > deadline:
                    raise TimedOut("Another process is writing the latch.", "Try again.")
                time.sleep(0.005)
            yield
        finally:
            os.close(fd)

    def _merge(self, on_disk: LatchState) -> bool:
        """Takes in what another process pressed. True when there was something."""
        with self._memory:
            now = self.state
            if not on_disk.latched or (now.latched and set(on_disk.kills) <= set(now.kills)):
                return False
            kills = tuple(dict.fromkeys((*now.kills, *on_disk.kills)))
            self._known.update(kills)
            self.state = LatchState(True, max(on_disk.generation, now.generation + 1), kills, on_disk.why)
            return True

    def _unmark(self, saved: LatchState) -> None:
        """Remove the markers of what is on disk, unless another kill came since."""
        with self._memory:
            if self.state is saved:
                for kill_id, markers in self._marked().items():
                    for marker in markers if kill_id in self._known else ():
                        with contextlib.suppress(OSError):
                            marker.unlink()

    def _marked(self, *, must_look: bool = False) -> dict[str, list[Path]]:
        """The markers by kill. One whose name says no kill stands for one all the same; so, if it ``must_look``, does a folder that
        cannot be read."""
        found: dict[str, list[Path]] = {}
        for place in self._places:
            try:
                markers = [path for path in place.iterdir() if path.name.startswith(MARK[:-1])]
            except OSError as error:
                if must_look and error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    found.setdefault(UNREADABLE, [])
                continue
            for marker in markers:
                kill_id = marker.name[len(MARK) :]
                found.setdefault(kill_id if KILL_ID.match(kill_id) else UNREADABLE, []).append(marker)
        return found

    def _take_in_markers(self, *, must_look: bool = False) -> bool:
        """Presses that are not on disk yet, or not any more. True when there were any."""
        fresh = [kill_id for kill_id in self._marked(must_look=must_look) if kill_id not in self._known]
        for kill_id in fresh:
            self.press(kill_id, "Killed; the caller has not recorded a reason.")
        return bool(fresh)

    def obey_disk(self) -> bool:
        """Take over a latch that another process wrote or marked (a kill without this guard). True when there was one: it must be saved."""
        marked = self._take_in_markers()
        if self._stamp() == self._seen:
            return marked
        with self._disk:
            on_disk = self._read(self.state.generation)
            self._seen = self._stamp()
        return self._merge(on_disk) or marked

    def check_release(self, generation: int, kills: Iterable[str]) -> None:
        """Raises Conflict unless the generation is current and every latched kill is covered."""
        if not self.state.latched:
            raise Conflict("Nothing is blocked.", "There is nothing to rearm.")
        if generation != self.state.generation:
            raise Conflict(
                f"The latch moved on: generation {self.state.generation}, not {generation}.",
                "Read the status again; another kill came since.",
            )
        missing = sorted(set(self.state.kills) - set(kills))
        if missing:
            raise Conflict(
                f"{len(missing)} latched kills are not covered: {', '.join(missing[:5])}.", "Read the status again and cover them all."
            )

    def release(self, generation: int) -> None:
        """Release the latch, on disk first: OSError or TimedOut leave it set. The caller has checked and journalled.

        A kill in between wins (Conflict), whichever process made it.
        """
        with self._disk, self._locked():
            self._take_in_markers(must_look=True)
            before = self.state
            if before.generation == generation and not self._merge(self._read(generation)):
                after = replace(before, latched=False, kills=(), why="")
                write_whole(self.path, seal(asdict(after)))
                self._seen = self._stamp()
                self._take_in_markers(must_look=True)
                with self._memory:
                    if self.state is before:
                        self.state = after
                        self._unmark(after)
                        return
        self.save()
        raise Conflict("Another kill came during the release: everything stays blocked.", "Read the status again.")

    def _read(self, last_generation: int) -> LatchState:
        try:
            body = read_sealed(self.path)
            if body is not None:
                return _state_from(body)
            if not self._witness.was_in_use():
                return LatchState()
            why = "the latch is missing"
        except (Damaged, OSError) as error:
            why = f"the latch cannot be read ({error})"
        return LatchState(True, last_generation + 1, ("latch-unreadable",), f"Reads as killed: {why}.")

    def _stamp(self) -> tuple[int, int] | None:
        try:
            seen = self.path.stat()
        except OSError:
            return None
        return seen.st_ino, seen.st_mtime_ns


def _take(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _state_from(body: dict[str, object]) -> LatchState:
    latched, generation, kills, why = (body.get(k) for k in ("latched", "generation", "kills", "why"))
    if not isinstance(latched, bool) or not isinstance(generation, int) or not isinstance(kills, list) or not isinstance(why, str):
        raise Damaged("latch.json has the wrong shape")
    return LatchState(latched, generation, tuple(str(k) for k in kills), why)
