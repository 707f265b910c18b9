"""Rotation and its proof: every secret is replaced, its old value is presented to its verifier and refused, the new one accepted.

Before the change the old value must have been accepted: a refusal of what was never good proves nothing. A crash between two steps leaves a
durable marker; the next ``rotate`` takes up from there and proves the same things. Old values are kept until they were refused a second
time, after a restart (``again.py``).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from console.credentials.api_key import ApiKey
from console.credentials.marker import (
    MARKER,
    Marker,
    Phase,
    RotationItem,
    keep_old,
    load_last,
    load_marker,
    olds,
    save_marker,
)
from console.credentials.plan import OWN_ITEMS
from console.credentials.plugs.interface import Plug
from console.credentials.proof import (
    API_KEY,
    KEY_ITEMS,
    SIGNING_KEY,
    OwnKey,
    Verifier,
    canaries_of,
    doubt_of,
    fingerprint,
    fingerprint_of,
    present_keys,
    present_one,
)
from console.credentials.token_keys import KEYS_NAME
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError

# A rearm waits for the rotation: one verifier that hangs must not hold the whole instance for minutes.
LIMIT_S = 25.0
"""No further secret is begun after this; what is left goes on with the next rotation."""
NOT_ON_RECORD = "whether its old value was accepted before the change is not on record"
_TAKEN_OUT = "it was taken out of the plan before it was proven: its old value may still be good"
_NEVER_SEEN = "the value it had before was never seen to be good, so its refusal could not be proven"


@dataclass(frozen=True, slots=True)
class RotationResult:
    """``ok`` only when every item is proven, and nothing was let go unproven."""

    items: tuple[RotationItem, ...]
    ok: bool
    detail: str
    resumed: bool = False
    kill_id: str = ""
    """The kill this rotation belongs to; of one that was taken up, the kill it was begun for."""
    let_go: Mapping[str, str] = field(default_factory=dict)
    """name -> why nothing can ever be proven of it any more, as far as this kill goes."""
    keys_after: str = ""
    """SHA-256 of the key set that it was rotated to; empty when the key set is no part of this."""
    is_whole: bool = True
    """Whether everything was meant, not some names."""


@dataclass(slots=True)
class Run:
    """One rotation under way."""

    tokens: Tokens
    verifiers: Mapping[str, Verifier]
    marker: Marker
    on_step: Callable[[str], None]
    start: float = field(default_factory=time.monotonic)
    items: list[RotationItem] = field(default_factory=list)
    keys_after: str = ""
    carried: set[str] = field(default_factory=set)
    """What an earlier kill's rotation let go: settled when it is proven in this one."""

    def note(self, name: str, ok: bool, detail: str) -> None:
        """One item is decided; its words hold no secret."""
        words = self.tokens.store.redact(detail)[:400]
        self.items.append(RotationItem(name, ok, round((time.monotonic() - self.start) * 1000, 1), words))

    def save(self, step: str) -> None:
        """Store the marker, then tell the listener. Raises OSError."""
        save_marker(self.tokens.store.folder, self.marker)
        self.on_step(step)

    def reached(self, name: str, phase: Phase) -> None:
        """Note durably that one secret is one step further."""
        self.marker.phases[name] = phase
        self.save(f"{phase} {name}")


def rotate(
    tokens: Tokens,
    verifiers: Mapping[str, Verifier],
    plugs: Sequence[Plug] = (),
    *,
    only: frozenset[str] = frozenset(),
    kill_id: str = "",
    is_plan_known: bool = True,
    keep: Callable[[RotationResult], None] = lambda result: None,
    on_step: Callable[[str], None] = lambda step: None,
) -> RotationResult:
    """Replaces the token keys, the API key and every secret of the plan, then proves it. Never raises ConsoleError: a failure is an item.

    ``only``: names; without any, everything. What an earlier rotation left is always taken up. ``is_plan_known``: False when the plan
    cannot be read; what it does not name then is not taken for dropped. ``keep`` writes down what it came to, before the marker goes:
    when it raises OSError or ConsoleError, the marker stays and the rotation is not ok. ``on_step`` hears of each durable step.
    """
    resumed = unfinished(tokens)
    run = Run(tokens, verifiers, Marker(kill_id, {}), on_step)
    try:
        _open(run, plugs, only)
        on_step("marked")
        if SIGNING_KEY in run.marker.phases:
            _keys_or_why(run)
        for plug in (OwnKey(tokens, verifiers), *plugs):
            if plug.name in run.marker.phases:
                _rotate_one(run, plug)
        _let_go_of_missing(run, plugs, is_plan_known)
    except (ConsoleError, OSError) as error:
        run.note("rotation", False, f"failed: {error}")
    result = _result(run, resumed, not only)
    try:
        keep(result)
        # The marker is the only proof that something is open, so it goes last and only when nothing is.
        if run.items and all(item.ok for item in run.items):
            (tokens.store.folder / MARKER).unlink(missing_ok=True)
            on_step("finished")
    except (ConsoleError, OSError) as error:
        run.note("record", False, f"failed: what it came to cannot be kept, so it is proven again: {error}")
        result = _result(run, resumed, not only)
    return result


def _result(run: Run, resumed: bool, is_whole: bool) -> RotationResult:
    settled = run.carried & {item.name for item in run.items if item.ok}
    good, let_go = sum(item.ok for item in run.items), {n: w for n, w in run.marker.let_go.items() if n not in settled}
    words = f"{good} of {len(run.items)} proven" + (" (took up an unfinished rotation)" if resumed else "")
    if let_go:
        words += f"; given up unproven: {', '.join(let_go)}"
    ok = bool(run.items) and good == len(run.items) and not let_go
    return RotationResult(tuple(run.items), ok, words, resumed, run.marker.kill_id, let_go, run.keys_after, is_whole)


def unfinished(tokens: Tokens) -> bool:
    """Whether a rotation was begun and not proven: call ``rotate`` again before anything else is trusted."""
    return (tokens.store.folder / MARKER).exists()


def _open(run: Run, plugs: Sequence[Plug], only: frozenset[str]) -> None:
    # 1. Take up what was left, or note what is about to be replaced, durably, before anything is.
    wanted = [name for name in (*KEY_ITEMS, API_KEY, *(plug.name for plug in plugs)) if not only or name in only]
    if any(name in wanted for name in KEY_ITEMS):
        # One key set signs for both audiences, so neither can be replaced without the other.
        wanted = [*KEY_ITEMS, *(name for name in wanted if name not in KEY_ITEMS)]
    left = load_marker(run.tokens.store.folder)
    if left is not None:
        if run.marker.kill_id not in ("", left.kill_id):
            run.carried |= left.let_go.keys()
            _begin_anew(left)
        else:
            _begin_named_anew(left, only)
        # A kill that finds a half-done rotation rotates all the rest as well; what is proven is not begun again by a mere resumption.
        left.phases |= {name: Phase.TODO for name in wanted if name not in left.phases}
        left.kill_id = run.marker.kill_id or left.kill_id
        run.marker = left
    else:
        run.marker.phases = dict.fromkeys(wanted, Phase.TODO)
    last = load_last(run.tokens.store.folder)
    if run.marker.kill_id and last is not None:
        # A kill does not forget what the one before it had to let go; a rotation without one, begun anew by a person, does.
        run.carried |= last.let_go.keys() if last.kill_id != run.marker.kill_id else set()
        run.marker.let_go = {**last.let_go, **run.marker.let_go}
    if SIGNING_KEY in run.marker.phases and not run.marker.keys_before:
        text = run.tokens.store.get(KEYS_NAME)
        run.marker.keys_before = fingerprint_of(text)
        run.marker.canaries = canaries_of(run.tokens)
        if text is not None:
            # Kept before it is replaced: without the old key no old token can be made, and none presented.
            keep_old(run.tokens.store, SIGNING_KEY, text)
    save_marker(run.tokens.store.folder, run.marker)


def _begin_anew(left: Marker) -> None:
    """Another kill since: what the unfinished rotation had replaced may be known again. What it was about to set was never in use."""
    left.phases = {name: phase if phase is Phase.PREPARED else Phase.TODO for name, phase in left.phases.items()}
    left.keys_before = ""


def _begin_named_anew(left: Marker, names: frozenset[str]) -> None:
    """Start the named secrets again that were changed and not proven: from their current value to another.

    Their older values are presented all the same. A person uses this after a value was set by hand, or when a value was never seen to be
    valid. Such a value is given up.
    """
    for name in names.difference(KEY_ITEMS):
        if left.phases.get(name) is Phase.CHANGED:
            left.phases[name] = Phase.TODO
            if left.doubts.get(name, NOT_ON_RECORD):
                left.let_go[name] = _NEVER_SEEN


# --- our own keys -----------------------------------------------------------------------------------------------------


def _keys_or_why(run: Run) -> None:
    try:
        _rotate_keys(run)
    except ConsoleError as error:  # the secrets of the plan are rotated all the same
        run.note(SIGNING_KEY, False, f"failed: {error}")


def _rotate_keys(run: Run) -> None:
    # 2. The key set: write the new one, read it back from where it is kept, compare with the old.
    marker, store = run.marker, run.tokens.store
    # Not done, or undone since (a backup was put back over it): a new one.
    if marker.phases[SIGNING_KEY] is Phase.TODO or fingerprint(run.tokens) == marker.keys_before:
        run.tokens.renew_keys()
        run.on_step(f"written {SIGNING_KEY}")
        for name in KEY_ITEMS:
            marker.phases[name] = Phase.CHANGED
        run.save(f"{Phase.CHANGED} {SIGNING_KEY}")
    run.keys_after = fingerprint(run.tokens)
    if run.keys_after == marker.keys_before:
        run.note(SIGNING_KEY, False, "failed: it is still the old one")
        return
    kept = {fingerprint_of(text) for text in olds(store, SIGNING_KEY)}
    if marker.keys_before != fingerprint_of(None) and marker.keys_before not in kept:
        run.note(SIGNING_KEY, False, "unknown: the old key is not kept any more, so nothing signed with it could be presented")
        return
    for name, (ok, detail) in present_keys(run.tokens, run.verifiers, marker.canaries).items():
        if ok:
            run.marker.phases[name] = Phase.PROVEN
        run.note(name, ok, detail)
    run.save(f"asked {SIGNING_KEY}")


# --- one secret of the plan -------------------------------------------------------------------------------------------


def _rotate_one(run: Run, plug: Plug) -> None:
    # 3. Each secret: both values wait in the store, then it is changed, then the old one is presented.
    name = plug.name
    if time.monotonic() - run.start > LIMIT_S:
        run.note(name, False, f"unknown: not begun within {LIMIT_S:g} s, the others took too long; rotate again")
        return
    try:
        if name == API_KEY and plug.old() is None and run.marker.phases[name] in (Phase.TODO, Phase.PROVEN):
            run.reached(name, Phase.PROVEN)
            run.note(name, True, "none was ever made")
            return
        if run.marker.phases[name] is Phase.TODO:
            _prepare(run, plug)
        if run.marker.phases[name] is Phase.PREPARED:
            _change(run, plug)
        ok, words = _shown(run, plug)
        if not ok and words.startswith("failed") and not plug.issues:
            # It was undone since, or did not hold: once more, with the very same value.
            _change(run, plug)
            ok, words = _shown(run, plug)
    except ConsoleError as error:
        ok, words = False, f"failed: {error}"
    # A value that was never accepted is refused as well; only a change from accepted to refused proves the rotation.
    if ok and (doubt := run.marker.doubts.get(name, NOT_ON_RECORD)):
        ok, words = False, f"unknown: {doubt}, so that it is refused now proves nothing; the new one is accepted. Rotate it again by name"
    if ok:
        run.reached(name, Phase.PROVEN)
    run.note(name, ok, words)


def _prepare(run: Run, plug: Plug) -> None:
    store, name = run.tokens.store, plug.name
    old = plug.old()
    if old is not None:
        keep_old(store, name, old)
    run.marker.doubts[name] = store.redact(doubt_of(plug, old))[:300]
    fresh = "" if plug.issues else (ApiKey.fresh() if name == API_KEY else secrets.token_urlsafe(32))
    # Stored before it is set anywhere: a crash in between would leave a system with a value that is on no disk.
    store.set(f"new.{name}", fresh)
    run.reached(name, Phase.PREPARED)


def _shown(run: Run, plug: Plug) -> tuple[bool, str]:
    try:
        return present_one(run.tokens, plug)
    except ConsoleError as error:
        return False, f"unknown: it cannot be presented: {error}"


def _change(run: Run, plug: Plug) -> None:
    store, name = run.tokens.store, plug.name
    before = olds(store, name)
    given = store.get(f"new.{name}") or ""
    if not given and not plug.issues:
        raise ConsoleError(f"The new value of {name} is lost.", "Rotate again.")
    held = plug.change(before[-1] if before else "", given)
    # Before any words of the other system are kept: an error text may quote the value that was just set.
    store.redactor.learn(held)
    if held != given:
        store.set(f"new.{name}", held)
    run.on_step(f"written {name}")
    run.reached(name, Phase.CHANGED)


def _let_go_of_missing(run: Run, plugs: Sequence[Plug], is_plan_known: bool) -> None:
    """What an unfinished rotation had before it and the plan no longer knows: let go, since a rearm must not wait for it for ever.

    But never forgotten: this kill's receipt stays unproven (``Marker.let_go``, then ``Last.let_go``).
    """
    known = {*OWN_ITEMS, *(plug.name for plug in plugs)}
    for name, phase in list(run.marker.phases.items()):
        if name in known:
            continue
        if not is_plan_known:
            if phase is Phase.PROVEN:
                continue
            run.note(name, False, "unknown: the plan cannot be read, so it cannot be checked")
            continue
        del run.marker.phases[name]
        if phase is not Phase.PROVEN:  # what is proven misses its second presentation alone, and that is said there
            run.marker.let_go[name] = _TAKEN_OUT
        save_marker(run.tokens.store.folder, run.marker)
