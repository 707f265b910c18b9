"""Fault 7, as a person meets it: an engine that takes every connection and never answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.domain.kill import StepName, StepStatus
from tests.fakes.engine_stub import EngineStub
from tests.fakes.instance import Instance, until


@pytest.mark.fault
def test_with_an_engine_that_hangs_the_status_is_answered_and_a_press_runs_to_its_end(state_dir: Path) -> None:
    stub = EngineStub(state_dir / "engine", "hangs")
    try:
        with Instance(state_dir, "--engine-socket", str(state_dir / "engine")) as it:
            it.launch("sleep", "600")
            for _ in range(3):
                engines = it.api.status().engines
                assert "did not answer" in engines["docker"] and "did not answer" in engines["gvisor"]
                assert engines["managed"] == ""
            assert len([asked for asked in stub.asked if asked.endswith("/version")]) < 6  # one look at a time
            kill_id = it.api.activate("it hangs").kill_id
            until(lambda: it.api.receipt(kill_id).complete)
            receipt = it.api.receipt(kill_id)
            assert receipt.verified_zero
            steps = {step.name: step.status for step in receipt.steps}
            assert (steps[StepName.ROTATE], steps[StepName.EVIDENCE]) == (StepStatus.OK, StepStatus.OK)
            stub.mood = "lies"  # the end of the instance asks it what to clean up
    finally:
        stub.close()
