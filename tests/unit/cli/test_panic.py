"""Panic: whatever goes wrong around it, the kill goes out, and what is not known is unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import console
from console.cli import embedded
from console.cli.stop import panic
from console.domain.errors import ConsoleError, Denied, TimedOut, TooLarge
from console.domain.guard import LINE_LIMIT
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target, decided
from console.domain.verdict import verdict
from console.settings.places import Places
from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor

ROOT = Path(console.__file__).resolve().parent.parent
LOCAL_STEPS = (StepName.LATCH, StepName.REFUSE, StepName.SIGNAL, StepName.ZERO, StepName.SECOND_LOOK)
LOCAL = Receipt(
    "k1",
    "00000000",
    "all",
    "why",
    "who",
    1.0,
    verified_zero=True,
    steps=tuple(Step(n, StepStatus.OK, 5.0) for n in LOCAL_STEPS),
    targets=(Target("a", "managed", Outcome.PROVEN_ZERO, 5.0),),
    ms_total=505.0,
    complete=True,  # so the guard says: its own part is
)
HALF = replace(LOCAL, complete=False)
"""As the supervisor shows it while it is at work."""
WHOLE = replace(LOCAL, steps=tuple(Step(n, StepStatus.OK, 5.0) for n in StepName))
STATUS = {"instance": "i", "host": "h", "version": "1", "state_dir": "/", "mode": "root", "killed": True, "pid": 1}


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Stands for the guard; what was pressed."""
    pressed: list[tuple[Any, ...]] = []

    def guard(*args: Any) -> Receipt:
        pressed.append(args)
        return LOCAL

    monkeypatch.setattr(panic, "press_and_wait", guard)
    monkeypatch.setattr(panic, "FINISH_S", 0.3)
    return pressed


@pytest.mark.parametrize("reason", ["x", "é" * 500, "\U0001f4a5" * 500, "\x00" * 500, "\n" * 500])
def test_any_reason_fits_into_the_guards_line(reason: str) -> None:
    cut = panic.fitting(reason)
    assert reason.startswith(cut) and cut
    assert len(json.dumps({"op": "press", "scope": "all", "reason": cut, "by": "b" * 100, "order": ""})) < LINE_LIMIT


def test_the_supervisors_receipt_is_waited_for_and_printed(watchfloor: Watchfloor, api: CannedApi, press: list[Any]) -> None:
    api.say("GET /api/status", STATUS)
    api.answers["GET /api/receipts/k1"] = [
        (404, b'{"error": "not yet", "exit_code": 3}'),
        (200, json.dumps(HALF.as_json()).encode()),
        (200, json.dumps(WHOLE.as_json()).encode()),
    ]
    said = watchfloor("panic", "--reason", "r", "--json")
    assert (
        said.code == 0
        and said.json["complete"] is True
        and said.json["headline"] == "All processes of 1 agent are dead. Confirmed after 0.01 s."
    )
    assert press[0][3:5] == ("all", "r")


@pytest.mark.parametrize("words", [(), ("--reason", "  ")])
def test_a_panic_waits_for_no_reason(watchfloor: Watchfloor, api: CannedApi, press: list[Any], words: tuple[str, ...]) -> None:
    api.say("GET /api/status", STATUS)
    api.say("GET /api/receipts/k1", WHOLE.as_json())
    assert watchfloor("panic", *words).code == 0
    assert press[0][3:5] == ("all", "no reason given")


def test_a_guard_that_lost_its_record_is_not_taken_for_nobody_before_the_supervisor_has_spoken(
    watchfloor: Watchfloor, api: CannedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panic, "press_and_wait", lambda *_: replace(LOCAL, targets=(), only_seen=0))
    lost = Target("a-lost", "managed", Outcome.NOT_PROVEN, None, {"unaccounted": True})
    api.say("GET /api/status", STATUS)
    api.say("GET /api/receipts/k1", replace(WHOLE, targets=(lost,), only_seen=0).as_json())
    said = watchfloor("panic", "--reason", "r")
    assert said.code == 9 and "NOT PROVEN: 1 of 1 agent may still run" in said.out
    assert "first result: nothing on record was running" in said.err and "Nothing was running" not in said.err + said.out


@pytest.mark.parametrize("seen", [HALF, LOCAL, None], ids=["half", "the guard's part alone", "never heard of it"])
def test_a_supervisor_that_never_finishes_leaves_unknown_steps(
    watchfloor: Watchfloor, api: CannedApi, press: list[Any], monkeypatch: pytest.MonkeyPatch, seen: Receipt | None
) -> None:
    api.say("GET /api/status", STATUS)
    if seen is None:
        api.answers["GET /api/receipts/k1"] = [(404, b'{"error": "not yet", "exit_code": 3}')]
    else:
        api.say("GET /api/receipts/k1", seen.as_json())
    monkeypatch.setattr(panic.finished, "__defaults__", (0.3,))
    said = watchfloor("panic", "--reason", "r", "--json")
    assert said.code == 7 and said.json["complete"] is False
    assert {s["name"]: s["status"] for s in said.json["steps"]} == {n.value: "ok" if n in LOCAL_STEPS else "unknown" for n in StepName}


def test_a_supervisor_that_cannot_be_started_leaves_unknown_steps(
    watchfloor: Watchfloor, places: Places, press: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ConsoleError("The supervisor could not start.", "See its log.")

    monkeypatch.setattr(embedded, "start_supervisor", broken)
    said = watchfloor("panic", "--reason", "r", "--json")
    assert said.code == 7 and press
    assert [s["detail"] for s in said.json["steps"] if s["status"] == "unknown"] == ["The supervisor could not start."] * 3


@pytest.mark.parametrize("problem", [TooLarge("x"), TimedOut("x"), ConsoleError("x")])
def test_a_guard_that_refuses_is_done_without(
    watchfloor: Watchfloor, places: Places, api: CannedApi, press: list[Any], monkeypatch: pytest.MonkeyPatch, problem: ConsoleError
) -> None:
    def refuse(*_: Any) -> Receipt:
        raise problem

    done: list[Any] = []

    def here(*args: Any) -> Receipt:
        done.append(args)
        return LOCAL

    monkeypatch.setattr(panic, "press_and_wait", refuse)
    monkeypatch.setattr(panic, "press_without_guard", here)
    api.say("GET /api/status", STATUS)
    api.say("GET /api/receipts/k1", WHOLE.as_json())
    said = watchfloor("panic", "--reason", "r")
    assert said.code == 0 and len(done) == 1
    assert "doing its work here" in said.err


def test_an_agent_has_no_say(watchfloor: Watchfloor, places: Places, press: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Receipt:
        raise Denied("An agent has no say here.")

    monkeypatch.setattr(panic, "press_and_wait", refuse)
    assert watchfloor("panic", "--reason", "r").code == 4


def test_a_reason_is_bounded(watchfloor: Watchfloor, places: Places, press: list[Any]) -> None:
    assert watchfloor("panic", "--reason", "x" * 501).code == 2
    assert press == []


def test_the_wrong_folder_kills_nothing_and_is_never_green(watchfloor: Watchfloor, press: list[Any], state_dir: Path) -> None:
    said = watchfloor("panic", "--reason", "r")
    assert said.code == 3 and "nothing was ever started there" in said.err and press == []
    assert list(state_dir.iterdir()) == []


def test_unknown_is_never_done() -> None:
    assert verdict(decided(WHOLE, "why")).exit_code == 7


def test_the_press_waits_for_no_heavy_import() -> None:
    code = (
        "import sys\nfrom console.cli import main\nfrom console.cli.stop import panic\n"
        "heavy = {'pydantic', 'msgspec', 'httpx', 'sqlalchemy', 'rich', 'console.api.messages', 'console.killswitch.kill.session'}\n"
        "panic.pressed = lambda *given: print(sorted(heavy & set(sys.modules))) or sys.exit(0)\n"
        "panic.places_to_kill = lambda state_dir: [None]\n"
        "main.main(['panic', '--reason', 'r'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
