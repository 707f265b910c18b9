"""Sentences about a supervisor that starts while the guard is silent: who was gone has not ended until the guard says so."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from console.domain.engine.event import NOT_ANSWERED, WENT
from tests.fakes.instance import Instance, until


def test_a_start_beside_a_silent_guard_waits_for_nobody_and_calls_nobody_ended(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Instance(state_dir) as it:
        agent = it.launch("sleep", "600")
        pid = it.agent_pid(agent)
        it.stop(signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)  # our own agent
        guard = os.pidfd_open(it.living_guard())
        armed = state_dir / "armed"
        armed.write_text("restore.begun:hang")
        monkeypatch.setenv("FAILPOINT", f"@{armed}")
        try:
            starting = start_beside(it, armed, guard)
            assert starting == (NOT_ANSWERED, "lost", None)
            until(lambda: any("the guard does not say" in words for words in it.api.status().notices), words="that is said")
        finally:
            signal.pidfd_send_signal(guard, signal.SIGCONT)
            os.close(guard)
        until(lambda: it.agent(agent).state_reason == WENT, words="the guard has said that no process of it is left")
        assert it.agent(agent).ended_at


def start_beside(it: Instance, armed: Path, guard: int) -> tuple[str, str, float | None]:
    """Starts the supervisor; once it has heard the guard's first answer, the guard falls silent."""

    def silence() -> None:
        until(lambda: armed.with_name("armed.hit").exists(), words="the start is under way")
        signal.pidfd_send_signal(guard, signal.SIGSTOP)
        armed.write_text("")

    meanwhile = threading.Thread(target=silence)
    meanwhile.start()
    it.start()
    meanwhile.join()
    [agent] = it.api.fleet().agents
    return agent.state_reason, agent.state, agent.ended_at
