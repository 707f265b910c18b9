"""Rotation and its proof: every secret is replaced, its old value is presented to its verifier and refused, the new one accepted.

A crash between two steps leaves a durable marker; the next ``rotate`` takes up from there and proves the same things. Old values are kept
until they were refused a second time, after a restart (``again.py``).
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
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
    load_marker,
    olds,
    save_marker,
)
from console.credentials.plan import OWN_ITEMS
from console.credentials.plugs.interface import Plug
from console.credentials.tokens import KEYS_NAME, Audience, Tokens, read_keys
from console.domain.errors import ConsoleError

VERIFIER_S = 2.0
"""One of our own verifiers that says nothing for this long is unknown, which is not proof."""
LIMIT_S = 25.0
"""No further secret is begun after this; what is left goes on with the next rotation."""
SIGNING_KEY, OPERATOR_TOKENS, AGENT_TOKENS, API_KEY = OWN_ITEMS
KEY_ITEMS = (SIGNING_KEY, OPERATOR_TOKENS, AGENT_TOKENS)
"""One key set signs both kinds of token: these three are only ever rotated together."""
_CANARY_S = 3600
_CANARY_AGENT = "rotation-canary"
Verifier = Callable[[str], bool]
"""Presents a token or key to a running server or socket: True when it was accepted, False when it was refused."""


@dataclass(frozen=True, slots=True)
class RotationResult:
    """``ok`` only when every item is proven."""

    items: tuple[RotationItem, ...]
    ok: bool
    detail: str
    resumed: bool = False
    kill_id: str = ""
    """The kill this rotation belongs to; of one that was taken up, the kill it was begun for."""


@dataclass(slots=True)
class Run:
    """One rotation under way."""

    tokens: Tokens
    verifiers: Mapping[str, Verifier]
    marker: Marker
    on_step: Callable[[str], None]
    start: float = field(default_factory=time.monotonic)
    items: list[RotationItem] = field(default_factory=list)

    def note(self, name: str, ok: bool, detail: str) -> None:
        """One item is decided; its words hold no secret."""
        words = self.tokens.store.redact(detail)[:400]
        self.items.append(RotationItem(name, ok, round((time.monotonic() - self.start) * 1000, 1), words))

    def save(self, step: str) -> None:
        """The marker is durable, then whoever listens hears of it. Raises OSError."""
        save_marker(self.tokens.store.folder, self.marker)
        self.on_step(step)

    def reached(self, name: str, phase: Phase) -> None:
        """One secret is one step further, durably."""
        self.marker.phases[name] = phase
        self.save(f"{phase} {name}")


def rotate(
    tokens: Tokens,
    verifiers: Mapping[str, Verifier],
    plugs: Sequence[Plug] = (),
    *,
    only: frozenset[str] = frozenset(),
    kill_id: str = "",
    on_step: Callable[[str], None] = lambda step: None,
) -> RotationResult:
    """Replaces the token keys, the API key and every secret of the plan, then proves it. Never raises ConsoleError: a failure is an item.

    ``only``: names; without any, everything. What an earlier rotation left is always taken up. ``on_step`` hears of each durable step.
    """
    folder = tokens.store.folder
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
        _say_missing(run, plugs)
        if run.items and all(item.ok for item in run.items):
            (folder / MARKER).unlink(missing_ok=True)
            on_step("finished")
    except (ConsoleError, OSError) as error:
        run.note("rotation", False, f"failed: {error}")
    good = sum(item.ok for item in run.items)
    words = f"{good} of {len(run.items)} proven" + (" (took up an unfinished rotation)" if resumed else "")
    return RotationResult(tuple(run.items), bool(run.items) and good == len(run.items), words, resumed, run.marker.kill_id)


def unfinished(tokens: Tokens) -> bool:
    """Whether a rotation was begun and not proven: call ``rotate`` again before anything else is trusted."""
    return (tokens.store.folder / MARKER).exists()


def _open(run: Run, plugs: Sequence[Plug], only: frozenset[str]) -> None:
    # 1. Take up what was left, or note what is about to be replaced, durably, before anything is.
    wanted = [name for name in (*KEY_ITEMS, API_KEY, *(plug.name for plug in plugs)) if not only or name in only]
    if any(name in wanted for name in KEY_ITEMS):
        wanted = [*KEY_ITEMS, *(name for name in wanted if name not in KEY_ITEMS)]
    left = load_marker(run.tokens.store.folder)
    if left is not None:
        if run.marker.kill_id not in ("", left.kill_id):
            _begin_anew(left)
        # A kill that finds a half-done rotation rotates all the rest as well; what is proven is not begun again by a mere resumption.
        left.phases |= {name: Phase.TODO for name in wanted if name not in left.phases}
        left.kill_id = run.marker.kill_id or left.kill_id
        run.marker = left
    else:
        run.marker.phases = dict.fromkeys(wanted, Phase.TODO)
    if SIGNING_KEY in run.marker.phases and not run.marker.keys_before:
        text = run.tokens.store.get(KEYS_NAME)
        run.marker.keys_before = _print(text)
        run.marker.canaries = _canaries(run.tokens)
        if text is not None:
            keep_old(run.tokens.store, SIGNING_KEY, text)
    save_marker(run.tokens.store.folder, run.marker)


def _begin_anew(left: Marker) -> None:
    """Another kill since: what the unfinished rotation had replaced may be known again. What it was about to set was never in use."""
    left.phases = {name: phase if phase is Phase.PREPARED else Phase.TODO for name, phase in left.phases.items()}
    left.keys_before = ""


def _print(value: str | None) -> str:
    return hashlib.sha256(value.encode()).hexdigest() if value is not None else "none"


def _canaries(tokens: Tokens) -> dict[str, str]:
    """Good tokens of the key of now. None when there is no usable key: then nothing can be old."""
    try:
        return {
            Audience.OPERATOR: tokens.issue(Audience.OPERATOR, "rotation", _CANARY_S),
            Audience.AGENT_SERVICE: tokens.issue(Audience.AGENT_SERVICE, "rotation", _CANARY_S, _CANARY_AGENT),
        }
    except ConsoleError:
        return {}


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
    if marker.phases[SIGNING_KEY] is Phase.TODO or _print(store.get(KEYS_NAME)) == marker.keys_before:
        run.tokens.renew_keys()
        run.on_step(f"written {SIGNING_KEY}")
        for name in KEY_ITEMS:
            marker.phases[name] = Phase.CHANGED
        run.save(f"{Phase.CHANGED} {SIGNING_KEY}")
    if _print(store.get(KEYS_NAME)) == marker.keys_before:
        run.note(SIGNING_KEY, False, "failed: it is still the old one")
        return
    for name, (ok, detail) in present_keys(run.tokens, run.verifiers, marker.canaries).items():
        if ok:
            run.marker.phases[name] = Phase.PROVEN
        run.note(name, ok, detail)
    run.save(f"asked {SIGNING_KEY}")


def present_keys(tokens: Tokens, verifiers: Mapping[str, Verifier], canaries: Mapping[str, str]) -> dict[str, tuple[bool, str]]:
    """Every verifier refuses what the old keys signed, then and today, and takes new tokens: one that refuses everything proves nothing."""
    fresh = _canaries(tokens)
    forged: list[str] = []
    for text in olds(tokens.store, SIGNING_KEY):
        with contextlib.suppress(ConsoleError):  # a damaged key set signs nothing
            forged += tokens.signed_with(read_keys(text))
    found = {SIGNING_KEY: _judge(verifiers, forged, list(fresh.values()))}
    for name, audience in ((OPERATOR_TOKENS, Audience.OPERATOR), (AGENT_TOKENS, Audience.AGENT_SERVICE)):
        old = [canaries[audience]] if audience in canaries else []
        found[name] = _judge(verifiers, old, [fresh[audience]] if audience in fresh else [])
    return found


def _judge(verifiers: Mapping[str, Verifier], old: Sequence[str], new: Sequence[str]) -> tuple[bool, str]:
    if not verifiers:
        return False, "unknown: no running verifier was asked"
    for name, verifier in verifiers.items():
        ok, words = judged([ask(verifier, value) for value in old], [ask(verifier, value) for value in new])
        if not ok:
            return False, f"{words} ({name})"
    return True, words + f" ({', '.join(verifiers)})"


def judged(old: Sequence[bool | None], new: Sequence[bool | None]) -> tuple[bool, str]:
    """What one verifier's answers to old and new values prove."""
    if any(answer is True for answer in old):
        return False, "failed: the old value is still accepted"
    if any(answer is None for answer in old):
        return False, "unknown: no clear answer about the old value"
    if not new or not all(answer is True for answer in new):
        return False, "unknown: the new value is not accepted either, so the refusal of the old one proves nothing"
    if not old:
        return True, "there was no usable old value; the new one is accepted"
    return True, "old value refused, new one accepted"


def ask(verifier: Verifier, value: str) -> bool | None:
    """Its answer within VERIFIER_S; None when there is none."""
    answers: list[bool] = []

    def call() -> None:
        with contextlib.suppress(ConsoleError, OSError, ValueError):
            answers.append(verifier(value))

    thread = threading.Thread(target=call, name="rotation-verifier", daemon=True)
    thread.start()
    thread.join(VERIFIER_S)
    return answers[0] if answers and isinstance(answers[0], bool) else None


class OwnKey:
    """The API key as one secret among others: its verifiers are our own doors."""

    name = API_KEY
    issues = False

    def __init__(self, tokens: Tokens, verifiers: Mapping[str, Verifier]) -> None:
        self._store, self._verifiers, self._key = tokens.store, verifiers, ApiKey(tokens.store)

    def old(self) -> str | None:
        """The key in force."""
        return self._key.current()

    def change(self, old: str, new: str) -> str:
        """Puts the new one in its place."""
        self._store.set(API_KEY, new)
        return new

    def present(self, value: str) -> bool | None:
        """Accepted by any of our doors is accepted; refused only by all."""
        answers = [ask(verifier, value) for verifier in self._verifiers.values()]
        if True in answers:
            return True
        return False if answers and None not in answers else None


# --- one secret of the plan -------------------------------------------------------------------------------------------


def _rotate_one(run: Run, plug: Plug) -> None:
    # 3. Each secret: both values wait in the store, then it is changed, then the old one is presented.
    store, name = run.tokens.store, plug.name
    if time.monotonic() - run.start > LIMIT_S:
        run.note(name, False, f"unknown: not begun within {LIMIT_S:g} s, the others took too long; rotate again")
        return
    try:
        if name == API_KEY and plug.old() is None and run.marker.phases[name] in (Phase.TODO, Phase.PROVEN):
            run.reached(name, Phase.PROVEN)
            run.note(name, True, "none was ever made")
            return
        if run.marker.phases[name] is Phase.TODO:
            old = plug.old()
            if old is not None:
                keep_old(store, name, old)
            fresh = "" if plug.issues else (ApiKey.fresh() if name == API_KEY else secrets.token_urlsafe(32))
            store.set(f"new.{name}", fresh)
            run.reached(name, Phase.PREPARED)
        if run.marker.phases[name] is Phase.PREPARED:
            _change(run, plug)
        ok, words = present_one(run.tokens, plug)
        if not ok and words.startswith("failed") and not plug.issues:
            # It was undone since, or did not hold: once more, with the very same value.
            _change(run, plug)
            ok, words = present_one(run.tokens, plug)
    except ConsoleError as error:
        ok, words = False, f"failed: {error}"
    if ok:
        run.reached(name, Phase.PROVEN)
    run.note(name, ok, words)


def _change(run: Run, plug: Plug) -> None:
    store, name = run.tokens.store, plug.name
    before = olds(store, name)
    given = store.get(f"new.{name}") or ""
    if not given and not plug.issues:
        raise ConsoleError(f"The new value of {name} is lost.", "Rotate again.")
    held = plug.change(before[-1] if before else "", given)
    store.redactor.learn(held)
    if held != given:
        store.set(f"new.{name}", held)
    run.on_step(f"written {name}")
    run.reached(name, Phase.CHANGED)


def present_one(tokens: Tokens, plug: Plug) -> tuple[bool, str]:
    """The old values, all that wait, are refused and the new one is accepted. Raises ConsoleError when the verifier cannot be asked."""
    before, new = olds(tokens.store, plug.name), tokens.store.get(f"new.{plug.name}")
    if not before:
        accepted = "the new one is accepted" if new and plug.present(new) is True else "nor is the new one accepted"
        return False, f"unknown: no old value was ever told, so none could be presented; {accepted}"
    if new in before:
        return False, "failed: the new value is an old one"
    return judged([plug.present(value) for value in before], [plug.present(new)] if new else [])


def _say_missing(run: Run, plugs: Sequence[Plug]) -> None:
    """What an unfinished rotation had begun and the plan no longer knows is not forgotten silently."""
    known = {*OWN_ITEMS, *(plug.name for plug in plugs)}
    for name, phase in list(run.marker.phases.items()):
        if name in known:
            continue
        # Said once and then let go: whoever took it out may mean it, and a rearm must not wait for it for ever.
        del run.marker.phases[name]
        if phase not in (Phase.TODO, Phase.PROVEN):
            run.note(name, False, "failed: it was being rotated when it was taken out of the plan; its old value may still be good")
            save_marker(run.tokens.store.folder, run.marker)
