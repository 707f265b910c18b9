"""The latch: the durable local fact "killed". Missing or corrupt in a folder that was in use, it reads as killed."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from console.domain.errors import Conflict
from console.killswitch.durable import Damaged, Reserve, read_sealed, seal, write_whole
from console.killswitch.witness import Witness

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
    """The state in memory, and its file. Memory comes first: nothing here waits for the disk but ``save``."""

    def __init__(self, folder: Path, reserve: Reserve | None = None) -> None:
        self.path = folder / "latch.json"
        self._witness = Witness(folder, reserve)
        self._reserve = reserve
        self._disk = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self.state = LatchState()

    def load(self, last_generation: int = 0) -> None:
        """Reads the file. ``last_generation`` is the highest one known from elsewhere (registry, journal)."""
        self.state = self._read(last_generation)

    def press(self, kill_id: str, why: str) -> LatchState:
        """Latched in memory, at once."""
        now = self.state
        kills = now.kills if len(now.kills) >= MOST_KILLS else (*now.kills, kill_id)
        self.state = LatchState(True, now.generation + 1, kills, why[:500])
        return self.state

    def save(self) -> None:
        """Memory to disk; OSError when it is not durable."""
        with self._disk:
            write_whole(self.path, seal(asdict(self.state)), self._reserve)
            self._seen = self._stamp()
            self._witness.ensure()

    def obey_disk(self) -> bool:
        """A latch that somebody else wrote (a press without this guard) overrides memory. True when it did."""
        if self._stamp() == self._seen:
            return False
        with self._disk:
            on_disk = self._read(self.state.generation)
            self._seen = self._stamp()
        if not on_disk.latched or set(on_disk.kills) <= set(self.state.kills):
            return False
        kills = tuple(dict.fromkeys((*self.state.kills, *on_disk.kills)))
        self.state = LatchState(True, max(on_disk.generation, self.state.generation + 1), kills, on_disk.why)
        return True

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
        """Disk first: OSError leaves it latched. The caller has checked and journalled. A press in between wins (Conflict)."""
        with self._disk:
            after = replace(self.state, latched=False, kills=(), why="")
            write_whole(self.path, seal(asdict(after)))
            self._seen = self._stamp()
            if self.state.generation == generation:
                self.state = after
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


def _state_from(body: dict[str, object]) -> LatchState:
    latched, generation, kills, why = (body.get(k) for k in ("latched", "generation", "kills", "why"))
    if not isinstance(latched, bool) or not isinstance(generation, int) or not isinstance(kills, list) or not isinstance(why, str):
        raise Damaged("latch.json has the wrong shape")
    return LatchState(latched, generation, tuple(str(k) for k in kills), why)
