"""The second presentation: after a restart every old value is shown to its verifier once more. Only then is it forgotten."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from console.credentials.marker import Again, Last, RotationItem, forget, load_last, olds, save_last
from console.credentials.plugs.interface import Plug
from console.credentials.rotation import API_KEY, KEY_ITEMS, SIGNING_KEY, OwnKey, RotationResult, Verifier, present_keys, present_one
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError


def keep_result(tokens: Tokens, result: RotationResult, at: float, process: str) -> Last:
    """Writes down what a rotation came to: every proven item is due a second time. Raises OSError."""
    before = load_last(tokens.store.folder)
    again: dict[str, Again] = {}
    if before is not None:
        again = {name: state for name, state in before.again.items() if state is not Again.REFUSED}
    again |= {item.name: Again.DUE for item in result.items if item.ok and olds(tokens.store, _kept_under(item.name))}
    last = Last(at, result.kill_id, result.ok, result.detail, list(result.items), process, again)
    save_last(tokens.store.folder, last)
    return last


def due(tokens: Tokens) -> list[str]:
    """Names whose second presentation is still to come."""
    last = load_last(tokens.store.folder)
    return [] if last is None else [name for name, state in last.again.items() if state is not Again.REFUSED]


def present_again(tokens: Tokens, verifiers: Mapping[str, Verifier], plugs: Sequence[Plug]) -> list[RotationItem]:
    """Presents what is due; what is refused once more is forgotten. Never raises ConsoleError: a failure is an item. Raises OSError."""
    last = load_last(tokens.store.folder)
    names = due(tokens)
    if last is None or not names:
        return []
    start = time.monotonic()
    judged: dict[str, tuple[bool, str]] = {}
    if any(name in KEY_ITEMS for name in names):
        # Canaries of an hour ago prove nothing by being refused today; what the old key signs today does.
        ok, words = _keys(tokens, verifiers)
        judged |= {name: (ok, words) for name in names if name in KEY_ITEMS}
    by_name: dict[str, Plug] = {plug.name: plug for plug in plugs} | {API_KEY: OwnKey(tokens, verifiers)}
    for name in names:
        if name not in KEY_ITEMS:
            judged[name] = _one(tokens, by_name.get(name))
    for name, (ok, words) in judged.items():
        last.again[name] = Again.REFUSED if ok else (Again.ACCEPTED if words.startswith("failed") else Again.UNKNOWN)
    last.again_at = time.time()
    save_last(tokens.store.folder, last)
    for name, (ok, _) in judged.items():
        if ok:
            forget(tokens.store, _kept_under(name))
    ms = round((time.monotonic() - start) * 1000, 1)
    return [RotationItem(name, ok, ms, tokens.store.redact(words)[:400]) for name, (ok, words) in judged.items()]


def _kept_under(name: str) -> str:
    return SIGNING_KEY if name in KEY_ITEMS else name


def _keys(tokens: Tokens, verifiers: Mapping[str, Verifier]) -> tuple[bool, str]:
    try:
        return present_keys(tokens, verifiers, {})[SIGNING_KEY]
    except ConsoleError as error:
        return False, f"unknown: {error}"


def _one(tokens: Tokens, plug: Plug | None) -> tuple[bool, str]:
    if plug is None:
        return False, "unknown: it is no longer in the plan, so nobody can be asked"
    try:
        return present_one(tokens, plug)
    except ConsoleError as error:
        return False, f"unknown: {error}"
