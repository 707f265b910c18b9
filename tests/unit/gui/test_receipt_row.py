"""The list of receipts: one figure for how long a kill took, the one of its headline."""

from __future__ import annotations

from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.gui.pages.kill_switch.lists import confirmed_after
from console.services.fleet.views import receipt_row


def test_the_list_tells_the_time_of_the_headline() -> None:
    zero, look = Step(StepName.ZERO, StepStatus.OK, 48.0, ""), Step(StepName.SECOND_LOOK, StepStatus.OK, 540.0, "")
    target = Target("a1", "managed", Outcome.PROVEN_ZERO, 52.0, {})
    row = receipt_row(Receipt("k", "i", "a1", "r", "b", 1.0, steps=(zero, look), targets=(target,), ms_total=544.0))
    assert "Confirmed after 0.05 s." in row.headline and confirmed_after(row) == "52 ms"
    open_ = receipt_row(Receipt("k", "i", "a1", "r", "b", 1.0, ms_total=544.0))
    assert open_.proven_ms is None and confirmed_after(open_) == "—"
