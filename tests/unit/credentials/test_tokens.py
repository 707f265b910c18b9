"""Threats S1, S2 and K6: what is not exactly a good token of now, for this audience, is refused."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import warnings
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.credentials.keyring_store import Store
from console.credentials.token_keys import KEYS_NAME
from console.credentials.tokens import Audience, Claims, Tokens
from console.domain.errors import ConsoleError, Denied, TokenRefused, UsageProblem


def forge(tokens: Tokens, drop: str = "", header: dict[str, Any] | None = None, key: bytes | None = None, **change: Any) -> str:
    """A token with the real key and one thing wrong."""
    keys = tokens.keys()
    now = int(tokens._clock())
    claims = {
        "iss": tokens.store.service,
        "aud": "operator",
        "sub": "ann",
        "iat": now,
        "exp": now + 600,
        "jti": "0" * 32,
        "epoch": tokens.epoch,
        **change,
    }
    claims.pop(drop, None)
    return encode({"alg": "HS256", "typ": "JWT", "kid": keys.current, **(header or {})}, claims, key or keys.keys[keys.current])


def encode(header: dict[str, Any], claims: Any, key: bytes) -> str:
    """By hand, because PyJWT refuses to make some of these."""
    import hashlib
    import hmac

    def b64(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    signed = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{signed}.{b64(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"


def refused(tokens: Tokens, token: str, audience: str = "operator") -> bool:
    with pytest.raises(Denied) as caught:
        tokens.verify(token, audience)
    return caught.value.what == "The token is not accepted." and type(caught.value) is TokenRefused and caught.value.http_status == 401


def test_a_good_token_is_taken_for_its_audience_only(tokens: Tokens) -> None:
    token = tokens.issue("operator", "ann")
    claims = tokens.verify(token, "operator")
    assert isinstance(claims, Claims) and (claims.subject, claims.agent_id, claims.audience) == ("ann", "", Audience.OPERATOR)
    assert tokens.verify(forge(tokens), "operator"), "the forger itself works: what follows fails for the one thing wrong"
    agent = tokens.issue("agent-service", "agent one", agent_id="a-1")
    assert tokens.verify(agent, "agent-service").agent_id == "a-1"
    assert refused(tokens, token, "agent-service") and refused(tokens, agent, "operator")


def test_lifetimes(tokens: Tokens, clock: Any) -> None:
    agent = tokens.verify(tokens.issue("agent-service", "x", agent_id="a"), "agent-service")
    assert agent.expires_at - agent.issued_at == 15 * 60
    for audience, longest, extra in (("agent-service", 4 * 3600, {"agent_id": "a"}), ("operator", 8 * 3600, {})):
        token = tokens.issue(audience, "x", longest, **extra)
        with pytest.raises(UsageProblem):
            tokens.issue(audience, "x", longest + 1, **extra)
        clock.now += longest - 1
        assert tokens.accepts(token, audience)
        clock.now += 7
        assert not tokens.accepts(token, audience)
    for bad in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageProblem):
            tokens.issue("operator", "x", bad)


def test_a_clock_set_back_does_not_bring_tokens_to_life(tokens: Tokens, clock: Any) -> None:
    token = tokens.issue("operator", "ann", 600)
    clock.now -= 3600
    assert refused(tokens, token)
    clock.now += 3600 + 365 * 86400
    assert refused(tokens, token)


@pytest.mark.parametrize("claim", ["exp", "iat", "aud", "jti", "sub", "iss", "epoch"])
def test_every_claim_is_required(tokens: Tokens, claim: str) -> None:
    assert refused(tokens, forge(tokens, drop=claim))


@pytest.mark.parametrize(
    "change",
    [
        {"aud": ["operator", "agent-service"]},
        {"aud": ["operator"]},
        {"aud": "operators"},
        {"aud": "operator agent-service"},
        {"iss": "watchfloor-ffffffff"},
        {"exp": None},
        {"exp": "9999999999"},
        {"exp": 9e12},
        {"exp": 2**62},
        {"exp": True},
        {"iat": 0},
        {"iat": "now"},
        {"iat": 1_800_000_100, "exp": 1_800_000_200},
        {"jti": ""},
        {"jti": 7},
        {"jti": "../../x"},
        {"sub": 7},
        {"epoch": 0},
        {"epoch": 99},
        {"epoch": "1"},
        {"epoch": True},
        {"agent_id": "a-1"},
        {"agent_id": 7},
        {"nbf": 9_999_999_999},
    ],
)
def test_one_wrong_claim_is_enough(tokens: Tokens, change: dict[str, Any]) -> None:
    assert refused(tokens, forge(tokens, **change))


def test_an_agents_token_must_name_an_agent_and_an_operators_none(tokens: Tokens) -> None:
    assert refused(tokens, forge(tokens, aud="agent-service"), "agent-service")
    with pytest.raises(UsageProblem):
        tokens.issue("agent-service", "x")
    with pytest.raises(UsageProblem):
        tokens.issue("operator", "x", agent_id="a")
    with pytest.raises(UsageProblem):
        tokens.issue("kill", "x")
    with pytest.raises(UsageProblem):
        tokens.verify(tokens.issue("operator", "x"), "operator agent-service")


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "None"},
        {"alg": "HS512"},
        {"alg": "RS256"},
        {"alg": ["HS256"]},
        {"kid": "../../x"},
        {"kid": "0" * 16},
        {"kid": ""},
        {"kid": None},
        {"kid": ["0" * 16]},
        {"kid": "/dev/null"},
        {"typ": "at+jwt"},
        {"jwk": {"kty": "oct", "k": ""}},
        {"jku": "http://127.0.0.1/keys"},
        {"crit": ["exp"]},
        {"b64": False},
    ],
)
def test_a_header_can_pick_neither_algorithm_nor_key(tokens: Tokens, header: dict[str, Any]) -> None:
    assert refused(tokens, forge(tokens, header=header))


def test_a_header_without_kid(tokens: Tokens) -> None:
    keys = tokens.keys()
    good = jwt.decode(tokens.issue("operator", "x"), options={"verify_signature": False})
    assert refused(tokens, encode({"alg": "HS256", "typ": "JWT"}, good, keys.keys[keys.current]))


def test_alg_none_with_an_empty_signature(tokens: Tokens) -> None:
    head, body, _ = forge(tokens, header={"alg": "none"}).split(".")
    assert refused(tokens, f"{head}.{body}.")
    head, body, _ = forge(tokens).split(".")
    assert refused(tokens, f"{head}.{body}.") and refused(tokens, f"{head}.{body}")


def test_rs_tokens_are_refused(tokens: Tokens) -> None:
    private = rsa.generate_private_key(65537, 2048)
    claims = jwt.decode(tokens.issue("operator", "x"), options={"verify_signature": False})
    assert refused(tokens, jwt.encode(claims, private, "RS256", headers={"kid": tokens.keys().current}))
    public = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert refused(tokens, forge(tokens, key=public))


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "x" * 5000, "é.é.é", "\x00", None, 7, b"x"])
def test_what_is_no_token_at_all(tokens: Tokens, token: Any) -> None:
    assert refused(tokens, token)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_tampered_token_is_taken(tokens: Tokens, data: st.DataObject) -> None:
    token = tokens.issue("operator", "ann")
    position = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=~ "))
    tampered = token[:position] + letter + token[position + 1 :]
    decoded = [base64.urlsafe_b64decode(p + "==") for p in token.split(".")]
    try:
        same = [base64.urlsafe_b64decode(p + "==") for p in tampered.split(".")] == decoded
    except ValueError:
        same = False
    if not same:  # the last letter of a part has bits that mean nothing
        assert not tokens.accepts(tampered, "operator")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(claims=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)))
def test_no_claims_of_any_shape_crash_or_pass(tokens: Tokens, claims: Any) -> None:
    keys = tokens.keys()
    token = encode({"alg": "HS256", "typ": "JWT", "kid": keys.current}, claims, keys.keys[keys.current])
    assert not tokens.accepts(token, "operator")


# --- S1: keys of now --------------------------------------------------------------------------------------------------


def test_after_a_rotation_every_verifier_refuses_old_tokens_at_once(tokens: Tokens, clock: Any) -> None:
    elsewhere = Tokens(Store("0123abcd", tokens.store.folder, backend="file"), clock=clock)
    token = elsewhere.issue("operator", "ann")
    assert tokens.accepts(token, "operator")
    elsewhere.renew_keys()
    assert refused(tokens, token) and refused(elsewhere, token)
    assert tokens.accepts(tokens.issue("operator", "ann"), "operator")


def test_a_kill_raises_the_epoch_and_every_older_token_dies(tokens: Tokens) -> None:
    operator, agent = tokens.issue("operator", "ann"), tokens.issue("agent-service", "x", agent_id="a")
    before = tokens.epoch
    assert tokens.raise_epoch() == before + 1 == tokens.epoch
    assert refused(tokens, operator) and refused(tokens, agent, "agent-service")
    assert tokens.accepts(tokens.issue("operator", "ann"), "operator")
    tokens.renew_keys()
    assert tokens.epoch > before + 1, "a rotation never lowers it"


def test_one_agent_is_revoked_and_no_other(tokens: Tokens) -> None:
    one, two = (tokens.issue("agent-service", "x", agent_id=a) for a in ("a-1", "a-2"))
    tokens.revoke("a-1")
    assert refused(tokens, one, "agent-service") and tokens.accepts(two, "agent-service")
    with pytest.raises(Denied, match="revoked"):
        tokens.issue("agent-service", "x", agent_id="a-1")
    with pytest.raises(UsageProblem):
        tokens.revoke("../x")


def test_what_a_person_revoked_stays_revoked_after_a_rotation(tokens: Tokens) -> None:
    one = tokens.issue("agent-service", "x", agent_id="a-1")
    tokens.bar("a-1")
    tokens.revoke("a-2")
    assert refused(tokens, one, "agent-service") and tokens.is_barred("a-1") and not tokens.is_barred("a-2")
    tokens.raise_epoch()
    tokens.renew_keys()
    assert tokens.issue("agent-service", "x", agent_id="a-2")
    with pytest.raises(Denied, match="revoked"):
        tokens.issue("agent-service", "x", agent_id="a-1")
    with pytest.raises(UsageProblem):
        tokens.bar("../x")
    (tokens.store.folder / "tokens.json").unlink()
    assert tokens.is_barred("a-2"), "in doubt, yes"


def test_what_a_thief_of_the_old_key_signs_today_is_refused(tokens: Tokens) -> None:
    """The forger has everything but the key of now: kid, epoch, audience and claims of today."""
    old = tokens.keys()
    thief = tokens.signed_with(old)
    assert len(thief) == 2 and tokens.accepts(thief[0], "operator") and tokens.accepts(thief[1], "agent-service")
    tokens.renew_keys()
    forged = tokens.signed_with(old)
    assert {jwt.get_unverified_header(t)["kid"] for t in forged} == {old.current, tokens.keys().current} and len(forged) == 4
    assert all(refused(tokens, t, a) for t in forged for a in ("operator", "agent-service"))


def test_an_independent_implementation_reads_what_we_sign(tokens: Tokens) -> None:
    """RFC 7515 by hand: header, claims and HMAC-SHA256 of exactly the two encoded parts."""
    import hashlib
    import hmac

    head, body, signature = tokens.issue("agent-service", "x", agent_id="a-1").split(".")
    keys = tokens.keys()
    decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in (head, body, signature)]
    header, claims = json.loads(decoded[0]), json.loads(decoded[1])
    assert header == {"alg": "HS256", "typ": "JWT", "kid": keys.current}
    assert {"exp", "iat", "aud", "jti", "sub", "iss", "epoch", "agent_id"} == set(claims) and claims["exp"] - claims["iat"] == 900
    assert hmac.new(keys.keys[keys.current], f"{head}.{body}".encode(), hashlib.sha256).digest() == decoded[2]


def test_a_scope_is_compared_whole_never_as_a_part_of_another(tokens: Tokens) -> None:
    for audience in ("oper", "operator ", "operator,agent-service", "agent-service-operator", "OPERATOR"):
        assert refused(tokens, forge(tokens, aud=audience))
    assert refused(tokens, forge(tokens, aud=None)) and refused(tokens, forge(tokens, aud={"operator": 1}))


def test_a_lost_list_of_revocations_refuses_everything_until_rotation(tokens: Tokens) -> None:
    token = tokens.issue("operator", "ann")
    os.unlink(tokens.store.folder / "tokens.json")
    tokens.ensure()
    with pytest.raises(ConsoleError, match="lost"):
        tokens.accepts(token, "operator")
    tokens.renew_keys()
    assert refused(tokens, token) and tokens.accepts(tokens.issue("operator", "ann"), "operator")


def test_a_first_start_that_is_cut_off_between_state_and_keys_is_made_good_by_the_next(tmp_path: pathlib.Path) -> None:
    """Keys beside a lost state would refuse everything until somebody rotates."""
    store = Store("0123abcd", tmp_path / "keys", backend="file")

    def power_fails(name: str, value: str) -> None:
        raise ConsoleError("The power fails.", "")

    tokens, real = Tokens(store), store.set
    store.set = power_fails  # type: ignore[method-assign]
    with pytest.raises(ConsoleError):
        tokens.ensure()
    store.set = real  # type: ignore[method-assign]
    assert store.get(KEYS_NAME) is None
    tokens.ensure()
    assert tokens.accepts(tokens.issue("operator", "ann"), "operator")


def test_lost_or_damaged_keys_refuse_everything(tokens: Tokens) -> None:
    token = tokens.issue("operator", "ann")
    for text in ("", "{}", "[]", "null", '{"current":"x","keys":{},"epoch_floor":1}', "[" * 50000):
        tokens.store.set(KEYS_NAME, text)
        with pytest.raises(ConsoleError, match="damaged"):
            tokens.verify(token, "operator")
    tokens.store.delete(KEYS_NAME)
    with pytest.raises(ConsoleError, match="no token keys"):
        tokens.verify(token, "operator")


def test_keys_are_long_random_and_draw_no_warning(tokens: Tokens) -> None:
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            tokens.renew_keys()
            (key,) = tokens.keys().keys.values()
            seen.add(key)
            tokens.verify(tokens.issue("operator", "x"), "operator")
    assert len(seen) == 5 and all(len(k) == 32 for k in seen)


def test_errors_hold_no_secret(tokens: Tokens) -> None:
    token = tokens.issue("operator", "ann")
    tokens.renew_keys()
    with pytest.raises(Denied) as caught:
        tokens.verify(token, "operator")
    assert token not in str(caught.value) and token[:20] not in repr(caught.value)
