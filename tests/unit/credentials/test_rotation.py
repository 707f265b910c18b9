"""Rotation is ok only with proof; a crash between any two steps resumes (fault 22)."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from console.credentials import rotation
from console.credentials.keyring_store import Store
from console.credentials.rotation import rotate, unfinished
from console.credentials.tokens import KEYS_NAME, Tokens
from console.domain.errors import Unreachable

NAMES = ["webhook", "session", "export", "peer"]
ROOT = Path(__file__).resolve().parents[3]


def honest(tokens: Tokens) -> dict[str, Any]:
    return {
        "operator door": lambda t: tokens.accepts(t, "operator"),
        "agent door": lambda t: tokens.accepts(t, "agent-service"),
    }


def test_a_rotation_with_proof(tokens: Tokens) -> None:
    old_token, before = tokens.issue("operator", "ann"), tokens.store.get(KEYS_NAME)
    tokens.store.set("webhook", "old-value-1")
    done = rotate(tokens, honest(tokens), ["webhook"])
    assert done.ok and [i.name for i in done.items] == [KEYS_NAME, "webhook", "verifier operator door", "verifier agent door"], done
    assert all(i.ms >= 0 and i.detail for i in done.items) and done.detail == "4 of 4 proven"
    assert tokens.store.get(KEYS_NAME) != before and tokens.store.get("webhook") != "old-value-1"
    assert not tokens.accepts(old_token, "operator") and not unfinished(tokens)


def test_a_verifier_that_still_takes_the_old_token_fails_it(tokens: Tokens) -> None:
    done = rotate(tokens, {**honest(tokens), "stale": lambda t: True})
    assert not done.ok and "still accepts" in done.items[-1].detail and unfinished(tokens)


def test_a_verifier_with_the_key_in_a_constant_is_caught(tokens: Tokens) -> None:
    """The measured fault: a key taken once, as a default argument."""
    frozen = tokens.keys()

    def verifier(token: str, keys: Any = frozen) -> bool:
        import jwt

        try:
            jwt.decode(token, keys.keys[keys.current], algorithms=["HS256"], options={"verify_aud": False, "verify_iat": False})
        except jwt.PyJWTError:
            return False
        return True

    tokens._clock = __import__("time").time
    assert not rotate(tokens, {"frozen": verifier}).ok


@pytest.mark.parametrize(
    ("verifier", "words"),
    [
        (lambda t: False, "proves nothing"),
        (lambda t: (_ for _ in ()).throw(Unreachable("down")), "did not answer"),
        (lambda t: (_ for _ in ()).throw(ConnectionError()), "did not answer"),
        (lambda t: "no", "did not answer"),
        (lambda t: None, "did not answer"),
    ],
)
def test_unknown_is_not_proof(tokens: Tokens, verifier: Any, words: str) -> None:
    done = rotate(tokens, {"door": verifier})
    assert not done.ok and words in done.items[-1].detail, done


def test_a_hanging_verifier_is_unknown_in_bounded_time(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "VERIFIER_S", 0.1)
    gate = threading.Event()
    try:
        done = rotate(tokens, {"door": lambda t: gate.wait(20)})
        assert not done.ok and "did not answer" in done.items[-1].detail
    finally:
        gate.set()


def test_no_verifier_at_all_proves_nothing(tokens: Tokens) -> None:
    done = rotate(tokens, {})
    assert not done.ok and "no running verifier" in done.items[-1].detail


def test_a_store_that_swallows_the_write_is_noticed(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens.store.set("webhook", "old-value-1")
    real = tokens.store.set
    monkeypatch.setattr(tokens.store, "set", lambda name, value: None if name == "webhook" else real(name, value))
    done = rotate(tokens, honest(tokens), ["webhook"])
    assert not done.ok and [i.ok for i in done.items if i.name == "webhook"] == [False]
    monkeypatch.undo()
    assert rotate(tokens, honest(tokens), ["webhook"]).ok and tokens.store.get("webhook") != "old-value-1"


def test_a_store_that_cannot_be_written_is_an_item_not_an_exception(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, value: str) -> None:
        raise Unreachable(f"The keyring is locked; it was given {value}.")

    monkeypatch.setattr(tokens.store, "set", refuse)
    done = rotate(tokens, honest(tokens))
    assert not done.ok and done.items[-1].name == "rotation" and "locked" in done.items[-1].detail


def test_details_hold_no_secret(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tokens.store.set

    def refuse(name: str, value: str) -> None:
        real(name, value)
        raise Unreachable(f"refused: {value}")

    monkeypatch.setattr(tokens.store, "set", refuse)
    done = rotate(tokens, honest(tokens))
    kept = tokens.store.get(KEYS_NAME) or ""
    assert kept and kept not in done.items[-1].detail and "[secret]" in done.items[-1].detail


def test_lost_keys_are_replaced_and_proven(tokens: Tokens) -> None:
    (tokens.store.folder / "tokens.json").unlink()
    tokens.store.set(KEYS_NAME, "junk")
    done = rotate(tokens, honest(tokens))
    assert done.ok, done


# --- fault 22: crash between two steps --------------------------------------------------------------------------------

CRASH = """
    import os, sys
    from pathlib import Path
    from console.credentials.keyring_store import Store
    from console.credentials.tokens import Tokens
    from console.credentials.rotation import rotate
    folder, where, names = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
    tokens = Tokens(Store("0123abcd", folder, backend="file"))
    rotate(tokens, {"door": lambda t: tokens.accepts(t, "operator")}, names, on_step=lambda s: os._exit(9) if s == where else None)
"""
STEPS = ["marked", *(f"{w} {n}" for n in [KEYS_NAME, *NAMES] for w in ("written", "done")), "proven"]


@pytest.mark.fault
@pytest.mark.parametrize("where", STEPS)
def test_a_crash_at_any_step_resumes_and_no_old_secret_survives(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "keys"
    tokens = Tokens(Store("0123abcd", folder, backend="file"))
    tokens.ensure()
    for name in NAMES:
        tokens.store.set(name, f"old-value-of-{name}")
    old = {name: tokens.store.get(name) for name in [KEYS_NAME, *NAMES]}
    token = tokens.issue("operator", "ann")
    command = [sys.executable, "-c", textwrap.dedent(CRASH), str(folder), where, ",".join(NAMES)]
    assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == 9
    assert unfinished(tokens) == (where != "proven")
    done = rotate(tokens, honest(tokens), NAMES)
    assert done.ok and done.resumed == (where != "proven"), done
    assert not tokens.accepts(token, "operator") and not unfinished(tokens)
    for name, value in old.items():
        assert tokens.store.get(name) not in (None, value), name


@pytest.mark.fault
def test_a_resumed_rotation_still_presents_the_tokens_from_before_the_crash(tokens: Tokens) -> None:
    first = tokens.issue("operator", "ann")

    def crash(step: str) -> None:
        if step == f"done {KEYS_NAME}":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rotate(tokens, honest(tokens), on_step=crash)
    stale_key = first.split(".")[0]  # the header names the old kid

    def keeps_old_keys(token: str) -> bool:
        return token.split(".")[0] == stale_key or tokens.accepts(token, "operator")

    done = rotate(tokens, {"door": keeps_old_keys})
    assert done.resumed and not done.ok and "still accepts" in done.items[-1].detail


@pytest.mark.fault
def test_a_backup_put_back_in_the_middle_is_rotated_again(tokens: Tokens) -> None:
    tokens.store.set("webhook", "old-value-1")
    before, token = tokens.store.get(KEYS_NAME) or "", tokens.issue("operator", "ann")
    assert not rotate(tokens, {}, ["webhook"]).ok
    tokens.store.set("webhook", "old-value-1")
    tokens.store.set(KEYS_NAME, before)
    done = rotate(tokens, honest(tokens), ["webhook"])
    assert done.ok and tokens.store.get("webhook") != "old-value-1" and not tokens.accepts(token, "operator")


@pytest.mark.fault
def test_a_damaged_marker_rotates_everything_again(tokens: Tokens) -> None:
    (tokens.store.folder / "rotation.json").write_text('{"todo": ["x"], "before"')
    token = tokens.issue("operator", "ann")
    done = rotate(tokens, honest(tokens), ["webhook"])
    assert done.ok and not tokens.accepts(token, "operator")


def test_the_marker_is_0600_and_holds_no_value(tokens: Tokens) -> None:
    tokens.store.set("webhook", "old-value-1")
    rotate(tokens, {}, ["webhook"])
    marker = tokens.store.folder / "rotation.json"
    assert marker.stat().st_mode & 0o777 == 0o600
    for name in (KEYS_NAME, "webhook"):
        assert (tokens.store.get(name) or "") not in marker.read_text()
    assert "old-value-1" not in marker.read_text()
