"""What is known of an instance beside its guard's folder: that it was in use, and how its containers are reached."""

from __future__ import annotations

from pathlib import Path

from console.killswitch.store.atomic_file import Damaged, read_sealed, seal, write_whole

TRACES = ("registry.json", "latch.json", "journal.jsonl", "causes.json", "receipts")


class Witness:
    """A file beside the guard's folder. It outlives the folder, and speaks when the registry cannot."""

    def __init__(self, guard_dir: Path) -> None:
        self.path = guard_dir.parent / ".guard-was-here"
        self._folder = guard_dir

    def was_in_use(self) -> bool:
        """A guard ran here before: whatever is missing now was lost."""
        return self.path.exists() or any((self._folder / name).exists() for name in TRACES)

    def read(self) -> tuple[str, bool]:
        """(socket of the engine or empty, whether there ever were containers). What it does not say may be so."""
        try:
            body = read_sealed(self.path)
        except (Damaged, OSError):
            return "", True
        return (str(body.get("engine_socket", "")), body.get("containers_ever") is not False) if body is not None else ("", True)

    def ensure(self) -> None:
        """It is there, though it may know nothing. OSError when it is not durable."""
        if not self.path.exists():
            self.write("", containers_ever=True)

    def write(self, engine_socket: str, containers_ever: bool) -> None:
        """OSError when it is not durable."""
        if self.path.exists() and self.read() == (engine_socket, containers_ever):
            return
        write_whole(self.path, seal({"engine_socket": engine_socket, "containers_ever": containers_ever}))
