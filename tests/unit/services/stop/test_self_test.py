"""The canary: a proof needs the guard's word and its parent's, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.domain.errors import ConsoleError, Denied, TimedOut
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel import processes
from console.services.stop import self_test
from console.services.stop.readiness import Flight
from console.services.stop.self_test import MISSED, fly_canary
from console.settings.options import AgentOptions

INSTANCE = secrets.token_hex(4)


class Guard:
    """Answers as told; kills the bird when it is an honest one."""

    def __init__(
        self, *, kills: bool = True, finds: str = "kills", proven: int = 1, done: bool = True, refuses: ConsoleError | None = None
    ) -> None:
        self.kills, self.finds, self.proven, self.done, self.refuses = kills, finds, proven, done, refuses
        self.folder = Path()
        self.bird = 0
        self.asked: list[str] = []

    def call(self, op: str, **fields: Any) -> dict[str, Any]:
        self.asked.append(op)
        if op == "ticket" and self.refuses is not None:
            raise self.refuses
        if op == "confirm":
            self.bird = fields["pid"]
        if op == "halt" and self.kills:
            os.kill(self.bird, signal.SIGKILL)
        if op == "progress":
            self._look_again()
        answers: dict[str, dict[str, Any]] = {
            "status": {"pid": 41},
            "ticket": {"leaf": "", "generation": 3},
            "halt": {"kill_id": "k"},
            "progress": {"done": self.done, "total": 1, "proven": self.proven},
        }
        return answers.get(op, {})

    def _look_again(self) -> None:
        found = [one for one in processes.find_marked(INSTANCE, self.folder) if one.agent_id.startswith("canary-")]
        assert [one.pid for one in found] != [self.bird]
        for one in found:
            if self.finds == "kills":
                os.kill(one.pid, signal.SIGKILL)
        if self.finds == "names":
            (self.folder / "receipts").mkdir()
            (self.folder / "receipts" / "k.json").write_text(json.dumps({"survivors": [{"pid": one.pid} for one in found]}))


def fly(guard: Guard, tmp_path: Path) -> Flight:
    guard.folder = tmp_path
    places: Any = SimpleNamespace(guard_dir=tmp_path, instance_id=INSTANCE)
    return fly_canary(cast(GuardClient, guard), places, AgentOptions())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "LIMIT_S", 0.3)


def test_a_canary_that_dies_is_proof_with_its_milliseconds_and_its_guard(tmp_path: Path) -> None:
    guard = Guard()
    flight = fly(guard, tmp_path)
    assert flight.proven and flight.ms is not None and flight.guard_pid == 41 and "dead in" in flight.words
    assert guard.asked[-1] == "forget"


def test_a_canary_that_does_not_die_is_no_proof_whatever_the_guard_says_and_is_not_left_behind(tmp_path: Path) -> None:
    guard = Guard(kills=False)
    flight = fly(guard, tmp_path)
    assert not flight.proven and flight.ms is None and "NOT confirmed dead" in flight.words
    assert not Path(f"/proc/{guard.bird}").exists() and guard.asked[-1] == "forget"


def test_a_guard_that_cannot_prove_it_is_no_proof(tmp_path: Path) -> None:
    assert not fly(Guard(proven=0), tmp_path).proven
    assert not fly(Guard(done=False), tmp_path).proven


@pytest.mark.parametrize("finds", ["kills", "names", "nothing"])
def test_a_second_look_that_does_not_find_what_got_away_is_no_proof(tmp_path: Path, finds: str) -> None:
    flight = fly(Guard(finds=finds), tmp_path)
    assert flight.proven == (finds != "nothing") and (flight.words == MISSED) == (finds == "nothing")
    assert list(processes.find_marked(INSTANCE, tmp_path)) == [], "nothing of it stays behind"


@pytest.mark.parametrize("error", [TimedOut("The guard did not answer in time."), Denied("Soft stop: lease over.")])
def test_a_guard_that_refuses_or_is_silent_is_no_proof(tmp_path: Path, error: ConsoleError) -> None:
    flight = fly(Guard(refuses=error), tmp_path)
    assert not flight.proven and error.what in flight.words and flight.at
