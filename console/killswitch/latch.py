"""The latch: the durable local fact "killed". Missing or corrupt in a folder that was in use, it reads as killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from console.domain.errors import Conflict, TimedOut
from console.killswitch.durable import Damaged, Reserve, read_sealed, seal, write_whole
from console.killswitch.receipts import KILL_ID
from console.killswitch.witness import Witness

LOCK_S = 1.0
"""A press waits no longer for another writer (a stopped guard, say) and saves without the lock; a release gives up."""
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
    """The state in memory, and its file. Memory comes first: nothing here waits for the disk but ``save``.

    Several write the file (the guard, its successor, a press without a guard): each under ``latch.lock``, and none ever
    overwrites another's press. ``marker`` stands for a press that is not on disk yet; it outlives a guard that dies at once.
    """

    def __init__(self, folder: Path, reserve: Reserve | None = None, run_dir: Path | None = None) -> None:
        self.path = folder / "latch.json"
        self._lock_path = folder / "latch.lock"
        self._markers = tuple(place / "pressed" for place in (run_dir, folder) if place is not None)
        self._witness = Witness(folder)
        self._reserve = reserve
        self._disk = threading.Lock()
        self._memory = threading.RLock()
        """Around every change of ``state``; nothing waits for the disk under it."""
        self._seen: tuple[int, int] | None = None
        self.state = LatchState()

    def load(self, last_generation: int = 0) -> None:
        """Reads the file. ``last_generation`` is the highest one known from elsewhere (registry, journal)."""
        self.state = self._read(last_generation)
        pressed = self._read_marker()
        if pressed is not None and pressed not in self.state.kills:
            self.press(pressed, "Pressed; the guard ended before that was on disk.")

    def press(self, kill_id: str, why: str) -> LatchState:
        """Latched in memory, at once."""
        with self._memory:
            now = self.state
            kills = now.kills if len(now.kills) >= MOST_KILLS else (*now.kills, kill_id)
            self.state = LatchState(True, now.generation + 1, kills, why[:500])
            return self.state

    def mark(self, kill_id: str) -> None:
        """Leaves the marker of a press, without waiting for the disk: before the press is answered, after SIGKILL went out."""
        for marker in self._markers:
            try:
                fd = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError:
                continue  # full, or not there: the next place
            with contextlib.suppress(OSError):
                os.write(fd, kill_id.encode())
            os.close(fd)
            return

    def save(self) -> None:
        """Memory to disk, together with what others pressed meanwhile; OSError when it is not durable."""
        with self._disk, contextlib.suppress(TimedOut), self._locked():
            self._save()
            return
        with self._disk:
            self._save()

    def _save(self) -> None:
        self._merge(self._read(self.state.generation))
        state = self.state
        write_whole(self.path, seal(asdict(state)), self._reserve)
        self._seen = self._stamp()
        self._unmark(state)
        self._witness.ensure()

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
            self.state = LatchState(True, max(on_disk.generation, now.generation + 1), kills, on_disk.why)
            return True

    def _unmark(self, saved: LatchState) -> None:
        """The marker has done its work, unless somebody pressed since."""
        with self._memory:
            if self.state is saved:
                for marker in self._markers:
                    with contextlib.suppress(OSError):
                        marker.unlink()

    def _read_marker(self) -> str | None:
        """The kill it stands for; None when there is none. One that cannot be read stands for a kill all the same."""
        for marker in self._markers:
            if os.path.lexists(marker):
                with contextlib.suppress(OSError, ValueError):
                    kill_id = marker.read_bytes()[:64].decode("ascii")
                    if KILL_ID.match(kill_id):
                        return kill_id
                return "press-unreadable"
        return None

    def obey_disk(self) -> bool:
        """A latch that somebody else wrote (a press without this guard) overrides memory. True when it did."""
        if self._stamp() == self._seen:
            return False
        with self._disk:
            on_disk = self._read(self.state.generation)
            self._seen = self._stamp()
        return self._merge(on_disk)

    def check_release(self, generation: int, kills: Iterable[str]) -> None:
        """Raises Conflict unless the generation is current and every latched kill is covered."""
        if not self.state.latched:
            raise Conflict("Nothing is latched.", "There is nothing to release.")
        if generation != self.state.generation:
            raise Conflict(
                f"The latch moved on: generation {self.state.generation}, not {generation}.",
                "Read the status again; somebody pressed since.",
            )
        missing = sorted(set(self.state.kills) - set(kills))
        if missing:
            raise Conflict(
                f"{len(missing)} latched kills are not covered: {', '.join(missing[:5])}.", "Read the status again and cover them all."
            )

    def release(self, generation: int) -> None:
        """Disk first: OSError or TimedOut leave it latched. The caller has checked and journalled.

        A press in between wins (Conflict), whoever made it.
        """
        with self._disk, self._locked():
            before = self.state
            if before.generation == generation and not self._merge(self._read(generation)):
                after = replace(before, latched=False, kills=(), why="")
                write_whole(self.path, seal(asdict(after)))
                self._seen = self._stamp()
                with self._memory:
                    if self.state is before:
                        self.state = after
                        self._unmark(after)
                        return
        self.save()
        raise Conflict("Somebody pressed while this was being released: it stays killed.", "Read the status again.")

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
