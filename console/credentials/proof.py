"""What the answers of verifiers prove: every old value refused and a new one accepted. A verifier that does not answer proves nothing."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from console.credentials.api_key import ApiKey
from console.credentials.marker import olds
from console.credentials.plan import OWN_ITEMS
from console.credentials.plugs.interface import Plug
from console.credentials.token_keys import KEYS_NAME, read_keys
from console.credentials.tokens import Audience, Tokens
from console.domain.errors import ConsoleError

VERIFIER_S = 5.0
"""One of our own verifiers that says nothing for this long is unknown, which is not proof."""
SIGNING_KEY, OPERATOR_TOKENS, AGENT_TOKENS, API_KEY = OWN_ITEMS
KEY_ITEMS = (SIGNING_KEY, OPERATOR_TOKENS, AGENT_TOKENS)
"""One key set signs both kinds of token: these three are only ever rotated together."""
_CANARY_S = 3600
_CANARY_AGENT = "rotation-canary"
Verifier = Callable[[str], bool]
"""Presents a token or key to a running server or socket: True when it was accepted, False when it was refused."""


def fingerprint(tokens: Tokens) -> str:
    """SHA-256 of the key set as it is kept now; ``none`` without one. Raises ConsoleError when the store cannot be read."""
    return fingerprint_of(tokens.store.get(KEYS_NAME))


def fingerprint_of(text: str | None) -> str:
    """SHA-256 of a key set's text."""
    return hashlib.sha256(text.encode()).hexdigest() if text is not None else "none"


def canaries_of(tokens: Tokens) -> dict[str, str]:
    """Return valid tokens of the current key. Empty when there is no usable key: then nothing can be old."""
    try:
        return {
            Audience.OPERATOR: tokens.issue(Audience.OPERATOR, "rotation", _CANARY_S),
            Audience.AGENT_SERVICE: tokens.issue(Audience.AGENT_SERVICE, "rotation", _CANARY_S, _CANARY_AGENT),
        }
    except ConsoleError:
        return {}


def present_keys(tokens: Tokens, verifiers: Mapping[str, Verifier], canaries: Mapping[str, str]) -> dict[str, tuple[bool, str]]:
    """Every verifier refuses what the old keys signed, then and today, and takes new tokens: one that refuses everything proves nothing."""
    fresh = canaries_of(tokens)
    found = {SIGNING_KEY: _judge(verifiers, forged(tokens), list(fresh.values()))}
    for name, audience in ((OPERATOR_TOKENS, Audience.OPERATOR), (AGENT_TOKENS, Audience.AGENT_SERVICE)):
        old = [canaries[audience]] if audience in canaries else []
        found[name] = _judge(verifiers, old, [fresh[audience]] if audience in fresh else [])
    return found


def forged(tokens: Tokens) -> list[str]:
    """Return fresh tokens signed with every key that was rotated away and still waits; the newest key's first."""
    made: list[str] = []
    for text in reversed(olds(tokens.store, SIGNING_KEY)):
        with contextlib.suppress(ConsoleError):  # a damaged key set signs nothing
            made += tokens.signed_with(read_keys(text))
    return made


def _judge(verifiers: Mapping[str, Verifier], old: list[str], new: list[str]) -> tuple[bool, str]:
    if not verifiers:
        return False, "unknown: no running verifier was asked"
    for name, verifier in verifiers.items():
        ok, words = judged((ask(verifier, value) for value in old), (ask(verifier, value) for value in new))
        if not ok:
            return False, f"{words} ({name})"
    return True, words + f" ({', '.join(verifiers)})"


def judged(old: Iterable[bool | None], new: Iterable[bool | None]) -> tuple[bool, str]:
    """What one verifier's answers to old and new values prove. Asked one after the other: the first that is not clear ends it.

    A verifier that hangs is waited for once, not once for every value.
    """
    shown = 0
    for answer in old:
        shown += 1
        if answer is True:
            return False, "failed: the old value is still accepted"
        if answer is not False:
            return False, "unknown: no clear answer about the old value"
    taken = 0
    for answer in new:
        taken += 1
        if answer is not True:
            taken = 0
            break
    if not taken:
        return False, "unknown: the new value is not accepted either, so the refusal of the old one proves nothing"
    return True, "old value refused, new one accepted" if shown else "there was no usable old value; the new one is accepted"


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


def doubt_of(plug: Plug, old: str | None) -> str:
    """The positive control, before anything is changed: why the old value's refusal will prove nothing, or nothing.

    Only a value that was accepted before the change can be shown to be refused because of it.
    """
    if old is None:
        return "no old value was ever told"
    try:
        answer = plug.present(old)
    except ConsoleError as error:
        return f"its verifier could not be asked before the change: {error}"
    if answer is True:
        return ""
    return "its verifier refused the old value before the change too" if answer is False else "no clear answer before the change"


def present_one(tokens: Tokens, plug: Plug, *, later: bool = False) -> tuple[bool, str]:
    """The old values, all that wait, are refused and the new one is accepted. Raises ConsoleError when the verifier cannot be asked.

    ``later``: since the rotation a person may have set another value by hand; then that one is accepted in the place of the new one.
    """
    before, new = olds(tokens.store, plug.name), tokens.store.get(f"new.{plug.name}")
    if not before:
        accepted = "the new one is accepted" if new and plug.present(new) is True else "nor is the new one accepted"
        return False, f"unknown: no old value was ever told, so none could be presented; {accepted}"
    if new in before:
        return False, "failed: the new value is an old one"

    def answers() -> Iterator[bool | None]:
        answer = plug.present(new) if new else None
        if answer is not True and later:
            now = plug.old()
            answer = plug.present(now) if now and now not in before else answer
        yield answer

    return judged((plug.present(value) for value in reversed(before)), answers())
