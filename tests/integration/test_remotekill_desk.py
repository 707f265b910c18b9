"""The remote channel as the supervisor and the operator use it, against the strict stand-in: turns, silent hosts, review and release."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, ConsoleError, NotFound, UsageProblem
from console.domain.kill import Receipt, Step, StepName, StepStatus
from console.remotekill.document import order_of, parse
from console.remotekill.keys import init_keys, load_keys
from console.remotekill.machine import Effect, Mode
from console.remotekill.state_file import hold_state
from console.services.remote.service import RemoteDesk
from console.settings.options import RemoteOptions
from console.settings.places import Places, find_places
from console.supervisor.verbs.signing import keys, release
from tests.fakes.instance import until
from tests.fakes.strict_gcs import StrictGcs

KEY = "platform/kill-switch.json"
EMERGENCY = b'{"killed":true,"reason":"emergency\\u001b[2J"}'


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs("fleet") as server:
        yield server


@pytest.fixture
def places(gcs: StrictGcs, state_dir: Path) -> Places:
    """An instance whose fleet takes two keys, with its baseline in the bucket."""
    (state_dir / "settings.json").write_text(json.dumps({"remote": {"bucket": "fleet", "endpoint": gcs.url}}))
    found = find_places(str(state_dir), create=True)
    keys(found, Namespace(action="init", fleet=None, quorum=2, json=True))
    return found


def asked(**changes: Any) -> Namespace:
    return Namespace(**({"reason": "over", "review": False, "order": None, "key": [], "yes": True, "json": True} | changes))


def order_in(gcs: StrictGcs) -> str:
    found = gcs.bucket.objects[KEY]
    return str(order_of(found.generation, found.body))


# --- review and release


def test_a_review_shows_what_a_release_would_end_and_signs_nothing(
    gcs: StrictGcs, places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    gcs.bucket.put(KEY, EMERGENCY)
    assert release(places, asked(review=True, reason="")) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["order"] == order_in(gcs) and seen["orders"] == [order_in(gcs)] and seen["quorum"] == 2 and len(seen["signing"]) == 2
    assert release(places, asked(review=True, reason="", json=False)) == 0
    words = capsys.readouterr().out
    assert order_in(gcs) in words and "2 keys needed" in words and "\x1b" not in words
    assert gcs.bucket.objects[KEY].body == EMERGENCY


def test_a_release_takes_a_quorum_of_key_files_wherever_they_are_kept(gcs: StrictGcs, places: Places, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    files = []
    for path in sorted(places.keys_dir.glob("*.key")):
        files.append(stick / path.name)
        shutil.move(path, files[-1])
    gcs.bucket.put(KEY, EMERGENCY)
    order = order_in(gcs)
    for too_few in ([], [str(files[0])], [str(files[0]), str(files[0])]):
        with pytest.raises(Conflict, match="takes 2 signing keys"):
            release(places, asked(order=order, key=too_few))
    assert gcs.bucket.objects[KEY].body == EMERGENCY
    assert release(places, asked(order=order, key=[str(f) for f in files])) == 0
    content = parse(gcs.bucket.objects[KEY].body, load_keys(places.keys_dir))
    assert content.releases == (order,)  # type: ignore[union-attr]
    with pytest.raises(NotFound, match="signed un-kill"):
        release(places, asked(order=order, key=[str(f) for f in files]))


def stranger(folder: Path, places: Places) -> str:
    init_keys(folder / "other", "default")
    return str(next((folder / "other").glob("*.key")))


def readable(folder: Path, places: Places) -> str:
    path = Path(shutil.copy(next(places.keys_dir.glob("*.key")), folder / "open.key"))
    path.chmod(0o644)
    return str(path)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (stranger, UsageProblem, "does not trust"),
        (readable, ConsoleError, "can be read by others"),
        (lambda f, p: "/nonexistent", ConsoleError, "cannot be read"),
    ],
)
def test_a_key_that_is_not_to_be_trusted_is_refused(
    gcs: StrictGcs, places: Places, tmp_path: Path, make: Callable[[Path, Places], str], kind: type[ConsoleError], words: str
) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    with pytest.raises(kind, match=words):
        release(places, asked(order=order_in(gcs), key=[make(tmp_path, places)]))
    assert gcs.bucket.objects[KEY].body == EMERGENCY


def test_a_release_is_refused_without_a_reason_without_a_review_and_for_another_order(
    gcs: StrictGcs, places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    with pytest.raises(UsageProblem, match="reason"):
        release(places, asked(reason="  ", order=order_in(gcs)))
    with pytest.raises(UsageProblem, match="--yes needs --order"):
        release(places, asked())
    monkeypatch.setattr("sys.stdin.readline", lambda: "yes\n", raising=False)
    with pytest.raises(UsageProblem, match="was not typed"):
        release(places, asked(yes=False))
    assert ", the generation of the order, to release all of these: " in capsys.readouterr().err
    reviewed = order_in(gcs)
    gcs.bucket.put(KEY, EMERGENCY)  # the same bytes again: another generation, another order
    with pytest.raises(Conflict, match="not what you reviewed"):
        release(places, asked(order=reviewed))
    assert gcs.bucket.objects[KEY].body == EMERGENCY


def test_a_kill_that_lands_between_review_and_write_makes_the_release_fail(gcs: StrictGcs, places: Places) -> None:
    gcs.bucket.put(KEY, EMERGENCY)
    order = order_in(gcs)
    original = gcs.bucket.put

    def put(name: str, body: bytes, conditions: dict[str, str] | None = None, *rest: Any) -> Any:
        if name == KEY and conditions:
            original(KEY, EMERGENCY)
        return original(name, body, conditions, *rest)

    gcs.bucket.put = put  # type: ignore[method-assign,assignment]
    with pytest.raises(Conflict, match="review it again"):
        release(places, asked(order=order))
    assert gcs.bucket.objects[KEY].body == EMERGENCY and 412 in [s for _, _, s in gcs.requests]


# --- the supervisor's desk


@pytest.fixture
def desk(gcs: StrictGcs, places: Places) -> Iterator[RemoteDesk]:
    options = RemoteOptions(bucket="fleet", endpoint=gcs.url, poll_s=0.2, hosts=["one", "never-heard-of"])
    made = RemoteDesk(options, places.keys_dir, places.state_dir / "remote-state.json", "one", False)
    yield made
    made.stop(60)


def receipt(kill_id: str, **changes: Any) -> Receipt:
    steps = tuple(Step(name, StepStatus.OK, 1.0) for name in StepName)
    return Receipt(kill_id, "0a1b2c3d", "all", "why", "remote", 1.0, "", verified_zero=True, steps=steps, complete=True, **changes)


def test_who_is_silent_is_said_whether_named_in_the_options_or_known_from_an_earlier_order(gcs: StrictGcs, desk: RemoteDesk) -> None:
    gcs.bucket.put("platform/receipts/5/two.json", b'{"verified_zero": true}')
    gcs.bucket.put("platform/receipts/5/<b>.json", b"{}")
    gcs.bucket.put("platform/receipts/9/three.json", b'{"verified_zero": "yes", "survivors": {}, "pressed_at": "now", "kill_id": []}')
    assert desk.answer_order("9:", receipt("k-1")) == ""
    desk.look_at_hosts()
    seen = {h.host: (h.acknowledged, h.verified_zero) for h in desk.hosts}
    assert seen == {"one": (True, True), "three": (True, None), "two": (False, None), "never-heard-of": (False, None)}
    assert all("silent for" in h.detail for h in desk.hosts if not h.acknowledged)
    with gcs.failing("503"):
        desk.look_at_hosts()
    assert {"(bucket)", "one", "two"} <= {h.host for h in desk.hosts if not h.acknowledged}


def test_an_order_is_answered_once_and_an_earlier_answer_of_the_same_kill_stands(gcs: StrictGcs, desk: RemoteDesk) -> None:
    assert desk.answer_order("9:", receipt("k-1")) == ""
    first = gcs.bucket.objects["platform/receipts/9/one.json"].body
    assert desk.answer_order("9:", receipt("k-1", ms_total=5.0)) == "", "the supervisor's fuller one does not replace it"
    assert "another receipt" in desk.answer_order("9:", receipt("k-2"))
    assert gcs.bucket.objects["platform/receipts/9/one.json"].body == first


def test_two_never_poll_with_one_state_and_the_second_begins_when_the_first_is_gone(places: Places, desk: RemoteDesk) -> None:
    held = hold_state(places.state_dir / "remote-state.json")
    assert held is not None and hold_state(places.state_dir / "remote-state.json") is None
    took: list[Effect] = []
    with closing(held):
        desk.start(took.append, 50.0)
        assert desk.poller is None and desk.path_view(50.0).state == "in_doubt" and "watch" in desk.path_view(50.0).detail
    until(lambda: desk.poller is not None and desk.poller.status().mode is Mode.ARMED)
    assert hold_state(places.state_dir / "remote-state.json") is None


def test_the_remote_path_is_green_only_while_nothing_speaks_against_it(
    gcs: StrictGcs, desk: RemoteDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.start(lambda effect: None, 0.0)
    until(lambda: desk.path_view(50.0).state == "proven")
    view = desk.path_view(50.0)
    assert view.lease_left_s == 50.0 and view.clock_off_s is not None and abs(view.clock_off_s) < 5 and view.heartbeat_age_s is not None
    assert "holds no lease" in desk.path_view(None).detail and "holds no lease" in desk.path_view(0.0).detail
    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "clock_off", lambda: (-3600.0, 1.0))
        assert desk.path_view(50.0).state == "in_doubt" and "clock is off by -3600 s" in desk.path_view(50.0).detail
    with gcs.failing("403"):
        until(lambda: (seen := desk.path_view(50.0)).state == "in_doubt" and "HTTP 403" in seen.detail)
    until(lambda: desk.path_view(50.0).state == "proven")
    assert desk.poller is not None
    desk.poller.stop(60)
    assert "does not run" in desk.path_view(50.0).detail
