"""Rotation is ok only with proof; a crash between any two steps resumes (fault 22)."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from console.credentials import proof, rotation
from console.credentials.api_key import ApiKey
from console.credentials.keyring_store import Store
from console.credentials.marker import RotationItem, load_marker, olds
from console.credentials.old_value_check import keep_result
from console.credentials.plan import OWN_ITEMS
from console.credentials.rotation import RotationResult, rotate, unfinished
from console.credentials.token_keys import KEYS_NAME
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError, Unreachable
from tests.fakes.plugs import FolderPlug

NAMES = ["webhook", "session", "export", "peer", "deploy"]
ROOT = Path(__file__).resolve().parents[3]
OWN = list(OWN_ITEMS)


def honest(tokens: Tokens) -> dict[str, Any]:
    key = ApiKey(tokens.store)
    return {"door": lambda t: key.accepts(t) or tokens.accepts(t, "operator") or tokens.accepts(t, "agent-service")}


@pytest.fixture
def plug(tmp_path: Path) -> FolderPlug:
    """A service that accepts one value."""
    return FolderPlug(tmp_path / "services", "webhook", "old-value-1")


def by_name(done: RotationResult) -> dict[str, RotationItem]:
    return {item.name: item for item in done.items}


def test_a_rotation_with_proof(tokens: Tokens, plug: FolderPlug) -> None:
    old_token, before, key = tokens.issue("operator", "ann"), tokens.store.get(KEYS_NAME), ApiKey(tokens.store).renew()
    done = rotate(tokens, honest(tokens), [plug])
    assert done.ok and [i.name for i in done.items] == [*OWN, "webhook"], done
    assert {i.detail.partition(" (")[0] for i in done.items} == {"old value refused, new one accepted"}
    assert all(i.ms >= 0 for i in done.items) and done.detail == "5 of 5 proven" and not done.resumed
    assert tokens.store.get(KEYS_NAME) != before and plug.old() not in (None, "old-value-1")
    assert not tokens.accepts(old_token, "operator") and not ApiKey(tokens.store).accepts(key) and not unfinished(tokens)


def test_what_the_old_key_signs_today_is_presented_too(tokens: Tokens) -> None:
    """A verifier that keeps the old key, and looks at nothing but signature and epoch, refuses no forger."""
    kept = tokens.keys()

    def lenient(token: str) -> bool:
        import jwt

        try:
            found = jwt.decode(token, kept.keys[kept.current], algorithms=["HS256"], options={"verify_aud": False, "verify_iat": False})
        except jwt.PyJWTError:
            return tokens.accepts(token, "operator") or tokens.accepts(token, "agent-service")
        return bool(found["epoch"] == tokens.epoch)

    tokens._clock = __import__("time").time
    items = by_name(rotate(tokens, {"lenient": lenient}))
    assert not items["signing-key"].ok and "still accepted (lenient)" in items["signing-key"].detail
    assert items["operator-tokens"].ok, "the tokens from before the rotation carry an older epoch: by them alone it would have passed"


def test_a_verifier_that_still_takes_the_old_token_fails_it(tokens: Tokens) -> None:
    done = rotate(tokens, {**honest(tokens), "stale": lambda t: True})
    assert not done.ok and "still accepted (stale)" in done.items[0].detail and unfinished(tokens)


@pytest.mark.parametrize(
    ("verifier", "words"),
    [
        (lambda t: False, "proves nothing"),
        (lambda t: (_ for _ in ()).throw(Unreachable("down")), "no clear answer"),
        (lambda t: (_ for _ in ()).throw(ConnectionError()), "no clear answer"),
        (lambda t: "no", "no clear answer"),
        (lambda t: None, "no clear answer"),
    ],
)
def test_unknown_is_not_proof(tokens: Tokens, verifier: Any, words: str) -> None:
    done = rotate(tokens, {"door": verifier})
    assert not done.ok and words in done.items[0].detail and done.items[0].detail.startswith("unknown"), done


def test_a_hanging_verifier_is_unknown_in_bounded_time(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "VERIFIER_S", 0.05)
    gate = threading.Event()
    try:
        done = rotate(tokens, {"door": lambda t: gate.wait(20)})
        assert not done.ok and "no clear answer" in done.items[0].detail
    finally:
        gate.set()


def test_no_verifier_at_all_proves_nothing(tokens: Tokens) -> None:
    done = rotate(tokens, {})
    assert not done.ok and "no running verifier" in done.items[0].detail


@pytest.mark.parametrize(
    ("fault", "words", "is_seen_good"),
    [
        ("keeps_old", "failed: the old value is still accepted", True),
        ("refuses_all", "unknown: the new value is not accepted either", False),
        ("silent", "unknown: no clear answer", False),
        ("breaks", "failed: The service is down.", True),
        ("same", "failed: the old value is still accepted", True),
    ],
)
def test_a_secret_of_the_plan_needs_both_answers(tokens: Tokens, plug: FolderPlug, fault: str, words: str, is_seen_good: bool) -> None:
    plug.fault = fault
    done = rotate(tokens, honest(tokens), [plug])
    item = by_name(done)["webhook"]
    assert not done.ok and not item.ok and item.detail.startswith(words), item
    assert all(by_name(done)[name].ok for name in OWN), "one that fails holds up no other"
    plug.fault = ""
    again = rotate(tokens, honest(tokens), [plug])
    assert again.ok is is_seen_good and again.resumed and plug.old() != "old-value-1", again
    if not is_seen_good:
        assert by_name(again)["webhook"].detail.startswith("unknown: ") and "before the change" in by_name(again)["webhook"].detail


class Mistaken(FolderPlug):
    """What it takes for the value in force is none: refused before the change, and after it."""

    def old(self) -> str | None:
        return "a-value-of-last-year"

    def present(self, value: str) -> bool | None:
        return value == super().old()


def test_an_old_value_that_was_never_good_proves_nothing(tokens: Tokens, tmp_path: Path) -> None:
    """The positive control: green would say that a value is dead which nobody has presented."""
    plug = Mistaken(tmp_path, "webhook", "the-value-in-force")
    for resumed in (False, True):
        done = rotate(tokens, honest(tokens), [plug], kill_id="k")
        detail = by_name(done)["webhook"].detail
        assert not done.ok and done.resumed is resumed and unfinished(tokens)
        assert detail.startswith("unknown: its verifier refused the old value before the change too"), detail
    assert FolderPlug(tmp_path, "webhook", None).old() != "the-value-in-force", "it was changed all the same"


@pytest.mark.parametrize(
    ("fault", "words"), [("silent", "no clear answer before the change"), ("down", "could not be asked before the change: The service")]
)
def test_nor_does_one_whose_verifier_was_silent_before_the_change(tokens: Tokens, plug: FolderPlug, fault: str, words: str) -> None:
    def mends_itself(step: str) -> None:
        if step == "prepared webhook":
            plug.fault = ""

    plug.fault = fault
    done = rotate(tokens, honest(tokens), [plug], on_step=mends_itself)
    item = by_name(done)["webhook"]
    assert not item.ok and item.detail.startswith("unknown: ") and words in item.detail, item
    marker = load_marker(tokens.store.folder)
    assert marker is not None and marker.phases["webhook"] == "changed" and plug.old() != "old-value-1"


def test_what_was_never_seen_good_is_rotated_once_more_by_name_and_the_kill_stays_unproven(tokens: Tokens, plug: FolderPlug) -> None:
    plug.fault = "silent"
    rotate(tokens, honest(tokens), [plug], kill_id="k")
    plug.fault, second = "", plug.old()
    done = rotate(tokens, honest(tokens), [plug], only=frozenset({"webhook"}))
    assert all(i.ok for i in done.items) and plug.old() not in ("old-value-1", second) and done.kill_id == "k"
    assert not done.ok and "never seen to be good" in done.let_go["webhook"] and "given up unproven: webhook" in done.detail
    assert not unfinished(tokens), "nothing is left to be done"
    assert olds(tokens.store, "webhook") == ["old-value-1", second], "the first one is presented all the same"
    after = rotate(tokens, honest(tokens), [plug])
    assert after.ok and after.kill_id == "", "the next one, which is no part of that kill, is clean"


def test_a_value_set_by_hand_in_the_middle_is_rotated_once_more_by_name(tokens: Tokens, plug: FolderPlug) -> None:
    """Otherwise the kill could never be rearmed: the value that the rotation had set is not accepted any more."""

    def goes_silent(step: str) -> None:
        if step == "changed webhook":
            plug.fault = "silent"

    rotate(tokens, honest(tokens), [plug], kill_id="k", on_step=goes_silent)
    plug.fault = ""
    plug.change("", "set-by-hand-12")
    stuck = rotate(tokens, honest(tokens), [plug])
    assert not stuck.ok and "the new value is not accepted either" in by_name(stuck)["webhook"].detail
    done = rotate(tokens, honest(tokens), [plug], only=frozenset({"webhook"}))
    assert done.ok and done.let_go == {} and "set-by-hand-12" in olds(tokens.store, "webhook"), done
    assert "old-value-1" in olds(tokens.store, "webhook"), "what was seen to be good is presented, so nothing is let go"


def test_the_doubt_outlives_a_crash_before_the_change(tokens: Tokens, plug: FolderPlug) -> None:
    def crash(step: str) -> None:
        if step == "prepared webhook":
            raise Crash

    plug.fault = "silent"
    with pytest.raises(Crash):
        rotate(tokens, honest(tokens), [plug], on_step=crash)
    plug.fault = ""
    done = rotate(tokens, honest(tokens), [plug])
    assert not done.ok and "no clear answer before the change" in by_name(done)["webhook"].detail


def test_without_an_old_value_nothing_is_proven_but_the_next_time_it_is(tokens: Tokens, tmp_path: Path) -> None:
    plug = FolderPlug(tmp_path, "webhook", None)
    done = rotate(tokens, honest(tokens), [plug])
    assert not done.ok and "no old value was ever told" in by_name(done)["webhook"].detail
    assert rotate(tokens, honest(tokens), [plug], kill_id="later").ok


def test_a_value_made_by_the_other_side_is_the_one_that_counts(tokens: Tokens, plug: FolderPlug) -> None:
    plug.issues = True
    assert rotate(tokens, honest(tokens), [plug]).ok
    assert (plug.old() or "").startswith("issued-") and tokens.store.get("new.webhook") == plug.old()


def test_some_items_alone(tokens: Tokens, plug: FolderPlug) -> None:
    before = tokens.store.get(KEYS_NAME)
    done = rotate(tokens, honest(tokens), [plug], only=frozenset({"webhook"}))
    assert done.ok and [i.name for i in done.items] == ["webhook"] and tokens.store.get(KEYS_NAME) == before
    done = rotate(tokens, honest(tokens), [plug], only=frozenset({"agent-tokens"}))
    assert [i.name for i in done.items] == OWN[:3] and tokens.store.get(KEYS_NAME) != before, "one key set signs both kinds"


def test_the_time_limit_leaves_the_rest_for_the_next_rotation(tokens: Tokens, plug: FolderPlug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "LIMIT_S", -1.0)
    done = rotate(tokens, honest(tokens), [plug])
    assert not done.ok and "not begun" in by_name(done)["webhook"].detail and plug.old() == "old-value-1"
    monkeypatch.undo()
    assert rotate(tokens, honest(tokens), [plug]).ok


def test_another_kill_rotates_again_what_an_unfinished_rotation_had_done(tokens: Tokens, tmp_path: Path) -> None:
    good, bad = FolderPlug(tmp_path, "good", "old-good-1"), FolderPlug(tmp_path, "bad", "old-bad-12")
    bad.fault = "breaks"
    assert not rotate(tokens, honest(tokens), [good, bad], kill_id="one").ok
    second, keys = good.old(), tokens.store.get(KEYS_NAME)
    assert not rotate(tokens, honest(tokens), [good, bad], kill_id="one").ok
    assert good.old() == second and tokens.store.get(KEYS_NAME) == keys, "a mere resumption begins nothing anew"
    bad.fault = ""
    done = rotate(tokens, honest(tokens), [good, bad], kill_id="two")
    assert done.ok and done.kill_id == "two" and good.old() not in ("old-good-1", second) and tokens.store.get(KEYS_NAME) != keys
    assert olds(tokens.store, "good") == ["old-good-1", second], "each of them waits for its second presentation"


def test_a_store_that_swallows_the_write_is_noticed(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tokens.store.set
    monkeypatch.setattr(tokens.store, "set", lambda name, value: None if name == KEYS_NAME else real(name, value))
    done = rotate(tokens, honest(tokens))
    assert not by_name(done)["signing-key"].ok
    monkeypatch.undo()
    assert rotate(tokens, honest(tokens)).ok


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
        if name == KEYS_NAME:
            raise Unreachable(f"refused: {value}")

    monkeypatch.setattr(tokens.store, "set", refuse)
    done = rotate(tokens, honest(tokens))
    kept = tokens.store.get(KEYS_NAME) or ""
    assert kept and kept not in done.items[0].detail and "[secret]" in done.items[0].detail


def test_lost_keys_are_replaced_and_proven(tokens: Tokens) -> None:
    (tokens.store.folder / "tokens.json").unlink()
    tokens.store.set(KEYS_NAME, "junk")
    done = rotate(tokens, honest(tokens))
    assert done.ok, done


# --- fault 22: crash between two steps --------------------------------------------------------------------------------

CRASH = """
    import os, sys
    from pathlib import Path
    sys.path.insert(0, os.getcwd())
    from console.credentials.keyring_store import Store
    from console.credentials.tokens import Tokens
    from console.credentials.rotation import rotate
    from tests.fakes.plugs import FolderPlug
    folder, where, names = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
    tokens = Tokens(Store("0123abcd", folder / "keys", backend="file"))
    plugs = [FolderPlug(folder / "services", name, None) for name in names]
    takes = lambda t: tokens.accepts(t, "operator") or tokens.accepts(t, "agent-service")
    rotate(tokens, {"door": takes}, plugs, kill_id="k", on_step=lambda s: os._exit(9) if s == where else None)
"""
STEPS = [
    "marked",
    "written signing-key",
    "changed signing-key",
    "asked signing-key",
    *(f"{w} {n}" for n in (NAMES[0], NAMES[2]) for w in ("prepared", "written", "changed", "proven")),
    *(f"written {n}" for n in (NAMES[1], NAMES[3], NAMES[4])),
    "finished",
]


class Crash(BaseException):
    """Nothing catches it, as nothing catches a SIGKILL."""


def with_old_values(folder: Path) -> tuple[Tokens, list[FolderPlug]]:
    tokens = Tokens(Store("0123abcd", folder / "keys", backend="file"))
    tokens.ensure()
    return tokens, [FolderPlug(folder / "services", name, f"old-value-of-{name}") for name in NAMES]


def check_resumed(tokens: Tokens, plugs: list[FolderPlug], token: str, keys: str | None, where: str) -> None:
    assert unfinished(tokens) == (where != "finished")
    done = rotate(tokens, honest(tokens), plugs, kill_id="k")
    assert done.ok and done.resumed == (where != "finished"), done
    assert not tokens.accepts(token, "operator") and not unfinished(tokens) and tokens.store.get(KEYS_NAME) != keys
    for plug in plugs:
        assert plug.present(f"old-value-of-{plug.name}") is False and plug.present(plug.old() or "") is True
        assert f"old-value-of-{plug.name}" in olds(tokens.store, plug.name)
        if where != "finished":
            assert plug.changes() == 1, "the very same new value was set again, not one new value after the other"


@pytest.mark.fault
@pytest.mark.parametrize("where", STEPS)
def test_a_crash_at_any_step_resumes_and_no_old_secret_survives(tmp_path: Path, where: str) -> None:
    tokens, plugs = with_old_values(tmp_path)
    keys, token = tokens.store.get(KEYS_NAME), tokens.issue("operator", "ann")

    def crash(step: str) -> None:
        if step == where:
            raise Crash

    with pytest.raises(Crash):
        rotate(tokens, honest(tokens), plugs, kill_id="k", on_step=crash)
    fresh = Tokens(Store("0123abcd", tmp_path / "keys", backend="file"))
    check_resumed(fresh, plugs, token, keys, where)


@pytest.mark.fault
@pytest.mark.parametrize("where", ["written export"])
def test_so_does_one_in_another_process(tmp_path: Path, where: str) -> None:
    tokens, plugs = with_old_values(tmp_path)
    keys, token = tokens.store.get(KEYS_NAME), tokens.issue("operator", "ann")
    command = [sys.executable, "-c", textwrap.dedent(CRASH), str(tmp_path), where, ",".join(NAMES)]
    assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == 9
    check_resumed(tokens, plugs, token, keys, where)


@pytest.mark.fault
def test_a_resumed_rotation_still_presents_the_tokens_from_before_the_crash(tokens: Tokens) -> None:
    first = tokens.issue("operator", "ann")

    def crash(step: str) -> None:
        if step == "changed signing-key":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rotate(tokens, honest(tokens), on_step=crash)
    stale_key = first.split(".")[0]  # the header names the old kid

    def keeps_old_keys(token: str) -> bool:
        return token.split(".")[0] == stale_key or honest(tokens)["door"](token)

    done = rotate(tokens, {"door": keeps_old_keys})
    assert done.resumed and not done.ok and "still accepted" in by_name(done)["operator-tokens"].detail


@pytest.mark.fault
def test_a_backup_put_back_in_the_middle_is_rotated_again(tokens: Tokens, plug: FolderPlug) -> None:
    before, token = tokens.store.get(KEYS_NAME) or "", tokens.issue("operator", "ann")
    assert not rotate(tokens, {}, [plug]).ok
    plug.change("", "old-value-1")
    tokens.store.set(KEYS_NAME, before)
    done = rotate(tokens, honest(tokens), [plug])
    assert done.ok and plug.old() != "old-value-1" and not tokens.accepts(token, "operator")


@pytest.mark.fault
@pytest.mark.parametrize(
    "text", ['{"phases": {"x"', "[]", '{"phases": {"x": "odd"}, "kill_id": "", "keys_before": "", "canaries": {}}', ""]
)
def test_a_damaged_marker_rotates_everything_again(tokens: Tokens, plug: FolderPlug, text: str) -> None:
    (tokens.store.folder / "rotation.json").write_text(text)
    token = tokens.issue("operator", "ann")
    done = rotate(tokens, honest(tokens), [plug])
    assert done.ok and done.resumed and not tokens.accepts(token, "operator") and plug.old() != "old-value-1"


def keeping(tokens: Tokens) -> Any:
    return lambda result: keep_result(tokens, result, 1.0, "p")


@pytest.mark.parametrize("where", ["marked", "written webhook", "changed webhook", "asked signing-key"])
def test_an_item_taken_out_of_the_plan_before_it_was_proven_keeps_the_kill_unproven(tokens: Tokens, plug: FolderPlug, where: str) -> None:
    def crash(step: str) -> None:
        if step == where:
            raise Crash

    with pytest.raises(Crash):
        rotate(tokens, honest(tokens), [plug], kill_id="k", on_step=crash)
    done = rotate(tokens, honest(tokens), [], kill_id="k", keep=keeping(tokens))
    assert not done.ok and "its old value may still be good" in done.let_go["webhook"] and all(i.ok for i in done.items)
    assert not unfinished(tokens), "a rearm does not wait for it for ever"
    for kill_id in ("k", "k", "k2", "k3"):
        done = rotate(tokens, honest(tokens), [], kill_id=kill_id, keep=keeping(tokens))
        assert not done.ok and "webhook" in done.let_go, "no later rotation of a kill turns green over it"
    back = rotate(tokens, honest(tokens), [plug], kill_id="k4", keep=keeping(tokens))
    assert back.ok and back.let_go == {}, "put back into the plan and proven for another kill"


def test_a_rotation_by_a_person_does_not_carry_what_a_kill_let_go(tokens: Tokens, plug: FolderPlug) -> None:
    plug.fault = "keeps_old"
    rotate(tokens, honest(tokens), [plug], kill_id="k", keep=keeping(tokens))
    assert not rotate(tokens, honest(tokens), [], keep=keeping(tokens)).ok, "it belongs to the kill that it took up"
    done = rotate(tokens, honest(tokens), [], keep=keeping(tokens))
    assert done.ok and done.kill_id == "" and done.let_go == {}


def test_an_item_that_was_proven_may_go(tokens: Tokens, plug: FolderPlug, tmp_path: Path) -> None:
    bad = FolderPlug(tmp_path / "services", "deploy", "old-value-2")
    bad.fault = "breaks"
    rotate(tokens, honest(tokens), [plug, bad], kill_id="k")
    bad.fault = ""
    assert rotate(tokens, honest(tokens), [bad], kill_id="k").ok


def test_a_plan_that_cannot_be_read_lets_nothing_go(tokens: Tokens, plug: FolderPlug) -> None:
    plug.fault = "keeps_old"
    rotate(tokens, honest(tokens), [plug], kill_id="k")
    done = rotate(tokens, honest(tokens), [], kill_id="k", is_plan_known=False)
    assert not done.ok and "the plan cannot be read" in by_name(done)["webhook"].detail and unfinished(tokens) and not done.let_go
    plug.fault = ""
    assert rotate(tokens, honest(tokens), [plug], kill_id="k").ok


def test_what_it_came_to_is_kept_before_the_marker_goes(tokens: Tokens) -> None:
    seen: list[bool] = []
    done = rotate(tokens, honest(tokens), keep=lambda result: seen.append(unfinished(tokens) and result.ok))
    assert done.ok and seen == [True] and not unfinished(tokens)


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), ConsoleError("The keyring is locked.")])
def test_what_cannot_be_kept_is_said_and_stays_unfinished(tokens: Tokens, problem: Exception) -> None:
    def full(result: RotationResult) -> None:
        raise problem

    done = rotate(tokens, honest(tokens), keep=full)
    assert not done.ok and done.items[-1].name == "record" and "cannot be kept" in done.items[-1].detail and unfinished(tokens)
    assert rotate(tokens, honest(tokens), keep=lambda result: None).ok and not unfinished(tokens)


def test_an_old_key_set_that_is_not_kept_is_not_refused(tokens: Tokens) -> None:
    def lose(step: str) -> None:
        if step == "changed signing-key":
            tokens.store.delete("olds.signing-key")

    done = rotate(tokens, honest(tokens), on_step=lose)
    assert not done.ok and "the old key is not kept" in by_name(done)["signing-key"].detail


def test_the_marker_is_0600_and_holds_no_value(tokens: Tokens, plug: FolderPlug) -> None:
    rotate(tokens, {}, [plug])
    path = tokens.store.folder / "rotation.json"
    marker, text = load_marker(tokens.store.folder), path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600 and marker is not None and json.loads(text)
    for value in (tokens.store.get(KEYS_NAME), plug.old(), "old-value-1", *olds(tokens.store, "signing-key")):
        assert value and value not in text
