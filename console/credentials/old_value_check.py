"""The second presentation: after a restart every old value is shown to its verifier once more. Only then is it forgotten."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from console.credentials.marker import Again, Last, RotationItem, forget, load_last, olds, save_last
from console.credentials.plugs.interface import Plug
from console.credentials.proof import (
    API_KEY,
    KEY_ITEMS,
    SIGNING_KEY,
    OwnKey,
    Verifier,
    fingerprint,
    forged,
    present_keys,
    present_one,
)
from console.credentials.rotation import RotationResult
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError

LOST = "the record of the last rotation is lost"
"""Begins the words of a ``Last`` that stands for one that is missing or damaged."""


def keep_result(tokens: Tokens, result: RotationResult, at: float, process: str) -> Last:
    """Writes down what a rotation came to: every proven item is due a second time. Raises OSError; ConsoleError when the store fails.

    A rotation of some names is laid over what is known of the rest.
    """
    before = load_last(tokens.store.folder)
    again: dict[str, Again] = {}
    if before is not None:
        again = {name: state for name, state in before.again.items() if state is not Again.REFUSED}
    again |= {item.name: Again.DUE for item in result.items if item.ok and olds(tokens.store, _kept_under(item.name))}
    last = Last(at, result.kill_id, result.ok, result.detail, list(result.items), process, again, None, result.keys_after)
    last.let_go = dict(result.let_go)
    if before is not None:
        last.keys_after = result.keys_after or before.keys_after
        if not result.is_whole:
            _lay_over(last, before)
    save_last(tokens.store.folder, last)
    return last


def _lay_over(last: Last, before: Last) -> None:
    named = {item.name for item in last.items}
    last.items = [item for item in before.items if item.name not in named] + last.items
    last.kill_id = last.kill_id or before.kill_id
    last.let_go = {**before.let_go, **last.let_go}
    last.ok = last.ok and all(item.ok for item in last.items) and not last.let_go
    last.detail = f"{sum(item.ok for item in last.items)} of {len(last.items)} proven, some of them earlier"
    if before.detail.startswith(LOST):
        last.ok, last.detail = False, before.detail
    elif last.let_go:
        last.detail += f"; given up unproven: {', '.join(last.let_go)}"


def due(tokens: Tokens) -> list[str]:
    """Names whose second presentation is still to come."""
    last = load_last(tokens.store.folder)
    return [] if last is None else _due(last)


def _due(last: Last) -> list[str]:
    return [name for name, state in last.again.items() if state is not Again.REFUSED]


def stand_in(tokens: Tokens, names: Sequence[str], at: float, *, is_expected: bool) -> Last | None:
    """Return a record in place of one that is missing or damaged: every old value of ``names`` that waits is due. None: nothing is lost.

    ``is_expected``: another record mentions a rotation. Raises ConsoleError when the store cannot be read.
    """
    if load_last(tokens.store.folder) is not None:
        return None
    waiting = [name for name in names if olds(tokens.store, _kept_under(name))]
    if not waiting and not is_expected:
        return None
    words = f"{LOST}: " + ("what still waits is presented again" if waiting else "no old value is left that could be presented again")
    return Last(at, "", False, words, [], "", dict.fromkeys(waiting, Again.DUE))


def present_again(
    tokens: Tokens, verifiers: Mapping[str, Verifier], plugs: Sequence[Plug], *, last: Last | None = None
) -> list[RotationItem]:
    """Presents what is due; what is refused once more is forgotten. Never raises ConsoleError: a failure is an item. Raises OSError.

    ``last``: what stands for a lost record.
    """
    last = last or load_last(tokens.store.folder)
    if last is None:
        return []
    start, names = time.monotonic(), _due(last)
    judged: dict[str, tuple[bool, str]] = {}
    if any(name in KEY_ITEMS for name in names):
        # Canaries of an hour ago prove nothing by being refused today; what the old key signs today does.
        keys = _keys(tokens, verifiers, last.keys_after)
        judged |= {name: keys for name in names if name in KEY_ITEMS}
    by_name: dict[str, Plug] = {plug.name: plug for plug in plugs} | {API_KEY: OwnKey(tokens, verifiers)}
    for name in names:
        if name not in KEY_ITEMS:
            judged[name] = _one(tokens, by_name.get(name))
    for name, (ok, words) in judged.items():
        last.again[name] = Again.REFUSED if ok else (Again.ACCEPTED if words.startswith("failed") else Again.UNKNOWN)
    if names:
        last.again_at = time.time()
    save_last(tokens.store.folder, last)
    ms = round((time.monotonic() - start) * 1000, 1)
    items = [RotationItem(name, ok, ms, tokens.store.redact(words)[:400]) for name, (ok, words) in judged.items()]
    return [_forgotten(tokens, item) for item in items]


def _forgotten(tokens: Tokens, item: RotationItem) -> RotationItem:
    """The old values of what was refused twice are let go."""
    if item.ok:
        try:
            forget(tokens.store, _kept_under(item.name))
        except ConsoleError as error:
            words = tokens.store.redact(f"{item.detail}; its old value stays in the store: {error}")[:400]
            return replace(item, detail=words)
    return item


def _kept_under(name: str) -> str:
    return SIGNING_KEY if name in KEY_ITEMS else name


def _keys(tokens: Tokens, verifiers: Mapping[str, Verifier], keys_after: str) -> tuple[bool, str]:
    try:
        now = fingerprint(tokens)
        if keys_after and now != keys_after:
            return False, "failed: the key in force is not the one that was rotated to; another was put in its place"
        if not forged(tokens):
            return False, "unknown: no old key is kept any more, so nothing signed with it could be presented"
        ok, words = present_keys(tokens, verifiers, {})[SIGNING_KEY]
    except ConsoleError as error:
        return False, f"unknown: {error}"
    if ok and not keys_after:
        return False, "unknown: old key refused, but which one it was rotated to is not on record"
    return ok, words


def _one(tokens: Tokens, plug: Plug | None) -> tuple[bool, str]:
    if plug is None:
        return False, "unknown: it is no longer in the plan, so it cannot be checked"
    try:
        return present_one(tokens, plug, later=True)
    except ConsoleError as error:
        return False, f"unknown: {error}"
