"""What a rotation under way must not forget, on disk before anything is replaced; and what the last one came to.

Neither file ever holds a value: values wait in the store, under ``olds.NAME`` and ``new.NAME``.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from console.credentials.keyring_store import Store
from console.domain.errors import ConsoleError
from console.domain.process.durable import replace_file

MARKER = "rotation.json"
LAST = "rotation-last.json"
# Each rotation that was cut off may leave one more value that has to be refused.
OLDS_KEPT = 8
_LIMIT = 1024 * 1024


class Phase(StrEnum):
    """How far one secret is. Each is written down before the next begins."""

    TODO = "todo"
    PREPARED = "prepared"
    """The old and the new value wait in the store."""
    CHANGED = "changed"
    PROVEN = "proven"


class Again(StrEnum):
    """The second presentation, after the supervisor was started again."""

    DUE = "due"
    REFUSED = "refused"
    ACCEPTED = "accepted"
    """An old value came back to life."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RotationItem:
    """One secret: whether it is proven, milliseconds since the start, and words."""

    name: str
    ok: bool
    ms: float
    detail: str


@dataclass(slots=True)
class Marker:
    """A rotation that was begun and is not proven."""

    kill_id: str
    phases: dict[str, Phase]
    keys_before: str = ""
    """SHA-256 of the key set's text before; empty when the key set is no part of this."""
    canaries: dict[str, str] = field(default_factory=dict)
    """audience -> a token from before: it is about to die, and dies within the hour."""
    doubts: dict[str, str] = field(default_factory=dict)
    """name -> why its old value's refusal will prove nothing; empty when the value was accepted before the change."""
    let_go: dict[str, str] = field(default_factory=dict)
    """name -> why nothing can be proven of it any more. Whatever else is proven: this kill's rotation is not."""


@dataclass(slots=True)
class Last:
    """What the last rotation came to."""

    at: float
    """Seconds since the epoch."""
    kill_id: str
    ok: bool
    detail: str
    items: list[RotationItem]
    process: str = ""
    """The process that rotated: a second presentation by the same one proves nothing about a restart."""
    again: dict[str, Again] = field(default_factory=dict)
    again_at: float | None = None
    keys_after: str = ""
    """SHA-256 of the key set's text that was rotated to; empty: not on record."""
    let_go: dict[str, str] = field(default_factory=dict)
    """As in the marker."""


def load_marker(folder: Path) -> Marker | None:
    """The unfinished rotation; one that cannot be read counts as none, so that everything is rotated again."""
    try:
        data = _read(folder / MARKER)
        phases = {str(name): Phase(phase) for name, phase in data["phases"].items()}
        canaries = {str(name): str(token) for name, token in data["canaries"].items()}
        doubts, let_go = _words(data.get("doubts", {})), _words(data.get("let_go", {}))
        return Marker(str(data["kill_id"]), phases, str(data["keys_before"]), canaries, doubts, let_go)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def save_marker(folder: Path, marker: Marker) -> None:
    """Durable when it returns. Raises OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(folder / MARKER, json.dumps(asdict(marker)).encode())


def load_last(folder: Path) -> Last | None:
    """What the last rotation came to; None when there was none, or it cannot be read."""
    try:
        data = _read(folder / LAST)
        items = [RotationItem(str(i["name"]), bool(i["ok"]), float(i["ms"]), str(i["detail"])) for i in data["items"]]
        again = {str(name): Again(state) for name, state in data["again"].items()}
        words = (str(data["kill_id"]), bool(data["ok"]), str(data["detail"]), items, str(data["process"]))
        again_at = data["again_at"]
        later = (None if again_at is None else float(again_at), str(data.get("keys_after", "")), _words(data.get("let_go", {})))
        return Last(float(data["at"]), *words, again, *later)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def save_last(folder: Path, last: Last) -> None:
    """Durable when it returns. Raises OSError."""
    replace_file(folder / LAST, json.dumps(asdict(last)).encode())


def _words(data: Any) -> dict[str, str]:
    return {str(name): str(words) for name, words in data.items()}


def _read(path: Path) -> Any:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("no plain file")
        return json.loads(file.read(_LIMIT))


# --- values that wait -------------------------------------------------------------------------------------------------


def olds(store: Store, name: str) -> list[str]:
    """Old values of a secret that have not been presented a second time yet, oldest first."""
    text = store.get(f"olds.{name}")
    if not text:
        return []
    try:
        found = [str(value) for value in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise ConsoleError(f"The old values of {name} are damaged.", "Remove them with the plan's item, and rotate again.") from error
    for value in found:
        store.redactor.learn(value)
    return found


def keep_old(store: Store, name: str, value: str) -> None:
    """One more old value that must be refused from now on."""
    kept = [other for other in olds(store, name) if other != value] + [value]
    store.redactor.learn(value)
    store.set(f"olds.{name}", json.dumps(kept[-OLDS_KEPT:]))


def forget(store: Store, name: str) -> None:
    """The old values were refused twice; the new one is in its place."""
    store.delete(f"olds.{name}")
    store.delete(f"new.{name}")
