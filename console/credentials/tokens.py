"""Tokens for the routes over TCP and for agents: HS256, two disjoint audiences, and every request checked with the current keys.

No key is kept in a constant, a default argument or a cache: a rotation in another process counts for the next request.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import jwt

from console.credentials.keyring_store import Store
from console.credentials.token_keys import KEY_BYTES, KEYS_NAME, KID, TokenKeys, read_keys, write_keys
from console.credentials.token_state import TokenState, TokenStateFile
from console.domain.errors import ConsoleError, Denied, TokenRefused, UsageProblem

# Clocks of the host and of a container or another host differ by a few seconds.
LEEWAY_S = 5
# Cut before any parsing: what comes here is not authenticated yet.
_LONGEST_TOKEN = 4096
_JTI = re.compile(r"[0-9a-f]{32}")
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# Measured: PyJWT takes a token without exp as one that never ends, unless the claim is required.
_REQUIRED = ["exp", "iat", "aud", "jti", "sub", "iss", "epoch"]


class Audience(StrEnum):
    """Disjoint: no token is good for both."""

    OPERATOR = "operator"
    AGENT_SERVICE = "agent-service"


LONGEST_S = {Audience.OPERATOR: 8 * 3600, Audience.AGENT_SERVICE: 4 * 3600}
DEFAULT_S = {Audience.OPERATOR: 8 * 3600, Audience.AGENT_SERVICE: 15 * 60}


@dataclass(frozen=True, slots=True)
class Claims:
    """What a good token says."""

    audience: Audience
    subject: str
    agent_id: str
    """Empty for an operator."""
    jti: str
    issued_at: int
    expires_at: int
    epoch: int


class Tokens:
    """Issues and verifies. Thread-safe, because it remembers nothing: every call reads the store and the state."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._state = TokenStateFile(store.folder / "tokens.json")
        self._clock = clock
        self._issuer = store.service

    def ensure(self) -> None:
        """Makes a first key and state when there are none. A lost state beside living keys is not mended here: rotate."""
        if self.store.get(KEYS_NAME) is None:
            self.renew_keys()

    def issue(self, audience: str, subject: str, ttl_s: float | None = None, agent_id: str = "") -> str:
        """A new token; UsageProblem for a wrong audience, subject or lifetime, Denied for a revoked agent."""
        kind = _audience(audience)
        ttl = DEFAULT_S[kind] if ttl_s is None else ttl_s
        if not 1 <= ttl <= LONGEST_S[kind]:
            raise UsageProblem(f"A token for {kind} lives 1 to {LONGEST_S[kind]} seconds.", "Ask for a shorter one.")
        if (kind is Audience.AGENT_SERVICE) != bool(agent_id) or (agent_id and not _AGENT.fullmatch(agent_id)):
            raise UsageProblem("An agent's token names its agent; an operator's names none.", "Check agent_id.")
        if not 1 <= len(subject) <= 200 or not subject.isprintable():
            raise UsageProblem("The subject is empty, too long or not printable.", "Name who the token is for.")
        keys, state = self.keys(), self._state.load()
        if agent_id in state.revoked | state.barred:
            raise Denied(f"The tokens of agent {agent_id} are revoked.", "Launch a new agent.")
        claims = self._claims_of(kind, subject, agent_id, int(ttl), max(state.epoch, keys.epoch_floor))
        return _signed(claims, keys.keys[keys.current], keys.current)

    def _claims_of(self, kind: Audience, subject: str, agent_id: str, ttl: int, epoch: int) -> dict[str, Any]:
        now = int(self._clock())
        claims = {
            "iss": self._issuer,
            "aud": str(kind),
            "sub": subject,
            "iat": now,
            "exp": now + ttl,
            "jti": secrets.token_hex(16),
            # The epoch makes every token of before a kill worthless at once, long before the keys are rotated.
            "epoch": epoch,
        }
        return {**claims, "agent_id": agent_id} if agent_id else claims

    def signed_with(self, old: TokenKeys) -> list[str]:
        """Return the tokens that a thief of a rotated key set could make today, signed with each of its keys.

        Under their own kid and under the current one, for both audiences. Every verifier must refuse each of them.
        """
        # The header names a key, and a thief may put the current name above an old signature.
        kids = {self.keys().current}
        made = []
        for kid, key in old.keys.items():
            for kind, agent_id in ((Audience.OPERATOR, ""), (Audience.AGENT_SERVICE, "rotation-canary")):
                claims = self._claims_of(kind, "rotation", agent_id, 600, self.epoch)
                made += [_signed(claims, key, name) for name in sorted(kids | {kid})]
        return made

    def verify(self, token: str, audience: str) -> Claims:
        """The claims of a good token for exactly this audience. Denied, with no detail an attacker could use, otherwise."""
        kind = _audience(audience)
        # 1. The header names a key of now, and HS256, and nothing else that would pick a key.
        kid, keys = _kid_of(token), self.keys()
        if kid not in keys.keys:
            raise _refused()
        # 2. Signature, lifetime, audience, issuer; all claims present (RFC 8725 3.1, 3.8, 3.9).
        try:
            data = jwt.decode(
                token,
                keys.keys[kid],
                algorithms=["HS256"],
                audience=str(kind),
                issuer=self._issuer,
                leeway=LEEWAY_S,
                # Lifetimes are checked below by our own clock, which tests and a suspend can be measured against.
                options={"require": _REQUIRED, "strict_aud": True, "verify_exp": False, "verify_iat": False},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise _refused() from error
        claims = _claims(data, kind)
        # 3. Lifetime by our clock: no longer than the audience allows, not from the future, not over.
        now = self._clock()
        if not 0 < claims.expires_at - claims.issued_at <= LONGEST_S[kind]:
            raise _refused()
        if claims.issued_at > now + LEEWAY_S or claims.expires_at <= now - LEEWAY_S:
            raise _refused()
        # 4. The epoch of now (a kill raises it), and not revoked.
        state = self._state.load()
        # The floor lies with the keys: a state file that is put back to an older one must not revive tokens.
        if claims.epoch != max(state.epoch, keys.epoch_floor) or claims.agent_id in state.revoked | state.barred:
            raise _refused()
        return claims

    def accepts(self, token: str, audience: str) -> bool:
        """Whether ``verify`` takes it; a ConsoleError that is not a refusal (a store that cannot be read) is raised."""
        try:
            self.verify(token, audience)
        except Denied:
            return False
        return True

    def revoke(self, *agent_ids: str) -> None:
        """Every token of these agents is refused from now on, and none is issued. One write, durable when it returns."""
        for agent_id in agent_ids:
            _check_agent(agent_id)
        self._state.change(lambda s: TokenState(s.epoch, s.revoked | set(agent_ids), s.barred))

    def bar(self, agent_id: str) -> None:
        """As ``revoke``, by a person's order: a rotation does not lift it."""
        _check_agent(agent_id)
        self._state.change(lambda s: TokenState(s.epoch, s.revoked, s.barred | {agent_id}))

    def is_barred(self, agent_id: str) -> bool:
        """Whether a person revoked this agent's tokens; in doubt, when the list cannot be read, yes."""
        try:
            return agent_id in self._state.load().barred
        except ConsoleError:
            return True

    def raise_epoch(self) -> int:
        """Every token issued before dies. Called by a kill at once; the rotation follows. The new epoch."""
        floor = self.keys().epoch_floor
        return self._state.change(lambda s: TokenState(max(s.epoch, floor) + 1, s.revoked, s.barred)).epoch

    @property
    def epoch(self) -> int:
        """Return the current epoch; ConsoleError when it cannot be read."""
        return max(self._state.load().epoch, self.keys().epoch_floor)

    def keys(self) -> TokenKeys:
        """The key set as it is kept now; ConsoleError when there is none or it is damaged (every token is then refused)."""
        text = self.store.get(KEYS_NAME)
        if text is None:
            raise ConsoleError("There are no token keys.", "Rotate the credentials.")
        return read_keys(text)

    def renew_keys(self) -> str:
        """Replace the whole key set by one new key, so that no old token survives. Returns its kid. The state starts new, one epoch
        higher."""
        # The state is written first: ``ensure`` does not repair keys without a state, and power may fail between the two writes.
        epoch = self._highest_known_epoch() + 1
        kid, key = secrets.token_hex(8), secrets.token_bytes(KEY_BYTES)
        self.store.redactor.learn(key)
        self._state.replace(TokenState(epoch, frozenset()))
        self.store.set(KEYS_NAME, write_keys(TokenKeys(kid, {kid: key}, epoch)))
        return kid

    def _highest_known_epoch(self) -> int:
        text = self.store.get(KEYS_NAME)
        try:
            floor = read_keys(text).epoch_floor if text is not None else 0
        except ConsoleError:
            floor = 0
        try:
            return max(floor, self._state.load().epoch)
        except ConsoleError:
            return floor


def _check_agent(agent_id: str) -> None:
    if not _AGENT.fullmatch(agent_id):
        raise UsageProblem("That is not an agent's id.", "Use the id from the fleet.")


def _signed(claims: dict[str, Any], key: bytes, kid: str) -> str:
    return jwt.encode(claims, key, algorithm="HS256", headers={"kid": kid})


def _kid_of(token: str) -> str:
    """Which key a token names."""
    if not isinstance(token, str) or len(token) > _LONGEST_TOKEN:
        raise _refused()
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise _refused() from error
    kid = header.get("kid")
    # Any further field (jku, jwk, x5u) could name a key of the sender's own (RFC 8725, 3.10).
    if set(header) != {"alg", "typ", "kid"} or header["alg"] != "HS256" or header["typ"] != "JWT":
        raise _refused()
    if not isinstance(kid, str) or not KID.fullmatch(kid):
        raise _refused()
    return kid


def _refused() -> TokenRefused:
    return TokenRefused("The token is not accepted.", "Ask for a new one.")


def _audience(audience: str) -> Audience:
    try:
        return Audience(audience)
    except ValueError as error:
        raise UsageProblem("There is no such audience.", "It is operator or agent-service.") from error


def _claims(data: dict[str, Any], kind: Audience) -> Claims:
    numbers = [data.get(name) for name in ("iat", "exp", "epoch")]
    texts = [data.get("sub"), data.get("jti"), data.get("agent_id", "")]
    if not all(type(n) is int for n in numbers) or not all(isinstance(t, str) for t in texts):
        raise _refused()
    agent_id = str(data.get("agent_id", ""))
    if (kind is Audience.AGENT_SERVICE) != bool(agent_id) or not _JTI.fullmatch(data["jti"]):
        raise _refused()
    return Claims(kind, data["sub"], agent_id, data["jti"], data["iat"], data["exp"], data["epoch"])
