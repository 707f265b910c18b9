"""Golden files that need no process: the help of every verb, and receipts."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

from console.cli.find import every_verb
from console.cli.main import main
from console.domain.headline import headline_of
from console.domain.kill import (
    Connection,
    Daemon,
    Outcome,
    Receipt,
    Return,
    Step,
    StepName,
    StepStatus,
    Survivor,
    Suspect,
    Target,
)
from console.domain.verdict import judged, verdict
from tests.golden.normal import text_of

WIDTH = "120"


def helps() -> str:
    """``--help`` of the program, of every verb and of every sub-verb."""
    said = []
    with mock.patch.dict(os.environ, {"COLUMNS": WIDTH, "TERMINAL_WIDTH": WIDTH, "TERM": "dumb", "NO_COLOR": "1"}):
        for path in verbs():
            heard = io.StringIO()
            with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
                code = main([*path, "--help"])
            lines = "\n".join(line.rstrip() for line in heard.getvalue().strip().splitlines())
            said.append(f"$ watchfloor {' '.join([*path, '--help'])}  -> {code}\n{lines}\n")
    return "\n".join(said)


def verbs() -> Iterator[tuple[str, ...]]:
    """Each path of verbs."""
    yield ()
    yield from sorted(path for path, _ in every_verb())


def _steps(**status: StepStatus) -> tuple[Step, ...]:
    return tuple(
        Step(name, status.get(name.value, StepStatus.OK), 1.5 * (n + 1), f"said of {name.value}") for n, name in enumerate(StepName)
    )


def _target(name: str, outcome: Outcome, level: str = "managed") -> Target:
    return Target(name, level, outcome, 12.5, {"cgroup": "v2", "populated": 0, "pids_before": [{"pid": 7, "start": 70, "exe": "/bin/x"}]})


def receipts() -> dict[str, str]:
    """Kills that every reader of receipts has to understand."""
    first, second = _target("a-1", Outcome.PROVEN_ZERO), _target("a-2", Outcome.PROVEN_ZERO)
    kill = Receipt(
        "20260102-030405-00000001", "00c0ffee", "a-1", "one of them", "operator:0", 1767322800.0, steps=_steps(), targets=(first,)
    )
    kill = replace(kill, ms_total=612.5, complete=True)
    panic = replace(kill, kill_id="20260102-030405-00000002", scope="all", targets=(first, second), only_seen=0, order="3:abc")
    survivor = Survivor("a-2", 8, "D", "nfs_wait", "python3 x.py", "it waits for a disk")
    open_kill = replace(
        panic, targets=(first, _target("a-2", Outcome.NOT_PROVEN)), survivors=(survivor,), steps=_steps(zero=StepStatus.UNKNOWN)
    )
    values = {
        "kill": kill,
        "panic": panic,
        "kill-not-proven": replace(
            open_kill, kill_id="20260102-030405-00000003", amended=("a-2 was dead later",), excluded=("the console",)
        ),
        "panic-best-effort": replace(panic, targets=(first, _target("a-2", Outcome.BEST_EFFORT, "adopted")), only_seen=1),
        "panic-later-step-failed": replace(panic, steps=_steps(rotate=StepStatus.FAILED, remote=StepStatus.SKIPPED)),
        "kill-pending": replace(kill, complete=False, steps=_steps(rotate=StepStatus.PENDING, evidence=StepStatus.PENDING)),
        "panic-with-programs-outside": replace(
            panic,
            returns=(Return("a-1", "s", 8, 80, 7, "claude", "claude --resume", 9.0, "session id", True, True, True, "same session"),),
            connections=(Connection("a-1", "tcp", "127.0.0.1:5", "127.0.0.1:6", 9, 90, "postgres", 26, ""),),
            connections_state="recorded",
            uncovered=("a-2",),
            suspects=(Suspect("a-1", 10, 100, "/bin/sleep", 0, "sleep 9", "started by its program", "marker", True, 9),),
            daemons=(Daemon("claude-code", "daemon", 11, 110, "/bin/claude", 0, ("s",), ("t",), "frozen", "hosts it", "claude stop s"),),
        ),
    }
    found = {}
    for name, receipt in values.items():
        said = verdict(receipt)
        answers = {
            "exit_code": int(said.exit_code),
            "headline": headline_of(receipt),
            "verified_zero": said.verified_zero,
            "may_run": said.may_run,
        }
        found[f"receipt-{name}.json"] = text_of({"receipt": judged(receipt).as_json(), "verdict": answers})
    return found
