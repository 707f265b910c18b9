"""Rotation and its proof: new secrets are written and read back, and every running verifier has refused an old token.

A crash between two steps leaves a durable marker; the next ``rotate`` takes up from there and proves the same things.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.credentials.tokens import KEYS_NAME, Audience, Tokens
from console.domain.errors import ConsoleError
from console.settings.durable import replace_file

VERIFIER_S = 2.0
"""A verifier that says nothing for this long is unknown, which is not proof."""
_CANARY_S = 3600
_CANARY_AGENT = "rotation-canary"
Verifier = Callable[[str], bool]
"""Presents a token to a running server or socket: True when it was accepted, False when it was refused."""


@dataclass(frozen=True, slots=True)
class RotationItem:
    """One secret or one verifier: whether it is proven, milliseconds since the start, and words."""

    name: str
    ok: bool
    ms: float
    detail: str


@dataclass(frozen=True, slots=True)
class RotationResult:
    """``ok`` only when every item is proven."""

    items: tuple[RotationItem, ...]
    ok: bool
    detail: str
    resumed: bool = False


@dataclass(slots=True)
class _Marker:
    """What a rotation under way must not forget: never a secret, but old tokens that are about to die."""

    todo: list[str]
    before: dict[str, str]
    """name -> SHA-256 of the old value, or empty when there was none."""
    canaries: dict[str, str] = field(default_factory=dict)
    """audience -> a token signed with the old key."""


def rotate(
    tokens: Tokens,
    verifiers: Mapping[str, Verifier],
    names: Sequence[str] = (),
    *,
    on_step: Callable[[str], None] = lambda step: None,
) -> RotationResult:
    """Replaces the token keys and every secret in ``names``, then proves it. Never raises ConsoleError: a failure is an item.

    ``on_step`` hears of each step when it is durable.
    """
    start = time.monotonic()
    items: list[RotationItem] = []

    def note(name: str, ok: bool, detail: str) -> None:
        items.append(RotationItem(name, ok, round((time.monotonic() - start) * 1000, 1), tokens.store.redact(detail)))

    path = tokens.store.folder / "rotation.json"
    resumed = path.exists()
    try:
        marker = _open_marker(path, tokens, [KEYS_NAME, *names])
        on_step("marked")
        _replace(tokens, marker, note, on_step)
        _ask_verifiers(tokens, marker, verifiers, note)
        if all(item.ok for item in items):
            path.unlink(missing_ok=True)
            on_step("proven")
    except (ConsoleError, OSError) as error:
        note("rotation", False, f"failed: {error}")
    good = sum(item.ok for item in items)
    words = f"{good} of {len(items)} proven" + (" (took up an unfinished rotation)" if resumed else "")
    return RotationResult(tuple(items), bool(items) and good == len(items), words, resumed)


def unfinished(tokens: Tokens) -> bool:
    """Whether a rotation was begun and not proven: call ``rotate`` again before anything else is trusted."""
    return (tokens.store.folder / "rotation.json").exists()


def _open_marker(path: Path, tokens: Tokens, names: list[str]) -> _Marker:
    # 1. Take up what was left, or note what is about to be replaced, durably, before anything is.
    old = _load_marker(path)
    if old is not None:
        known = set(old.todo) | set(old.before)
        fresh = [name for name in names if name not in known]
        marker = _Marker([*old.todo, *fresh], {**old.before, **_prints(tokens, fresh)}, old.canaries)
    else:
        marker = _Marker(list(names), _prints(tokens, names), _canaries(tokens))
    _save_marker(path, marker)
    return marker


def _prints(tokens: Tokens, names: Sequence[str]) -> dict[str, str]:
    return {name: _print(tokens.store.get(name)) for name in names}


def _print(value: str | None) -> str:
    return hashlib.sha256(value.encode()).hexdigest() if value is not None else ""


def _canaries(tokens: Tokens) -> dict[str, str]:
    """Good tokens of the old key, to be presented when it is gone. None when there is no usable key: then nothing can be old."""
    try:
        return {
            Audience.OPERATOR: tokens.issue(Audience.OPERATOR, "rotation", _CANARY_S),
            Audience.AGENT_SERVICE: tokens.issue(Audience.AGENT_SERVICE, "rotation", _CANARY_S, _CANARY_AGENT),
        }
    except ConsoleError:
        return {}


def _replace(tokens: Tokens, marker: _Marker, note: Callable[[str, bool, str], None], on_step: Callable[[str], None]) -> None:
    # 2. Each secret: write the new one, read it back from where it is kept, compare with the old.
    path = tokens.store.folder / "rotation.json"
    for name in list(marker.before):
        # Not done, or undone since (a backup was put back over it): a new value.
        if name in marker.todo or _print(tokens.store.get(name)) == marker.before[name]:
            wrote = _renew(tokens, name)
            on_step(f"written {name}")
            if _print(tokens.store.get(name)) != wrote:
                note(name, False, "failed: what was read back is not what was written")
                continue
            marker.todo = [other for other in marker.todo if other != name]
            _save_marker(path, marker)
            on_step(f"done {name}")
        now = tokens.store.get(name)
        differs = now is not None and _print(now) != marker.before[name]
        note(name, differs, f"re-read from {tokens.store.kind}, differs from the old one" if differs else "failed: it is still the old one")


def _renew(tokens: Tokens, name: str) -> str:
    if name == KEYS_NAME:
        tokens.renew_keys()
        return _print(tokens.store.get(name))
    value = secrets.token_urlsafe(32)
    tokens.store.set(name, value)
    return _print(value)


def _ask_verifiers(tokens: Tokens, marker: _Marker, verifiers: Mapping[str, Verifier], note: Callable[[str, bool, str], None]) -> None:
    # 3. Every verifier refuses every old token, and takes a new one: one that refuses everything has proven nothing.
    fresh = list(_canaries(tokens).values())
    if not verifiers:
        note("verifier", False, "unknown: no running verifier was asked")
    for name, verifier in verifiers.items():
        old = [_present(verifier, token) for token in marker.canaries.values()]
        new = [_present(verifier, token) for token in fresh]
        ok, detail = _judge(old, new)
        note(f"verifier {name}", ok, detail)


def _judge(old: list[bool | None], new: list[bool | None]) -> tuple[bool, str]:
    if any(answer is True for answer in old):
        return False, "failed: it still accepts an old token"
    if any(answer is None for answer in old):
        return False, "unknown: it did not answer about an old token"
    if True not in new:
        return False, "unknown: it does not accept a new token either, so its refusal proves nothing"
    if not old:
        return True, "there was no usable old key; it accepts the new one"
    return True, "it refused the old tokens and accepts a new one"


def _present(verifier: Verifier, token: str) -> bool | None:
    answers: list[bool] = []

    def ask() -> None:
        with contextlib.suppress(ConsoleError, OSError, ValueError):
            answers.append(verifier(token))

    thread = threading.Thread(target=ask, name="rotation-verifier", daemon=True)
    thread.start()
    thread.join(VERIFIER_S)
    return answers[0] if answers and isinstance(answers[0], bool) else None


def _load_marker(path: Path) -> _Marker | None:
    """The unfinished rotation; one that cannot be read counts as none, so that everything is rotated again."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            data: Any = json.loads(file.read(1024 * 1024))
        marker = _Marker(list(data["todo"]), dict(data["before"]), dict(data["canaries"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = [*marker.todo, *marker.before, *marker.before.values(), *marker.canaries.values()]
    return marker if all(isinstance(text, str) for text in texts) and set(marker.todo) <= set(marker.before) else None


def _save_marker(path: Path, marker: _Marker) -> None:
    data = {"todo": marker.todo, "before": marker.before, "canaries": marker.canaries}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, json.dumps(data).encode())
