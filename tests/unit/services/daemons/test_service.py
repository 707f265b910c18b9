"""A killed session that runs again after its return watch."""

from __future__ import annotations

import time

import pytest

from console.api.alerts import AlertView
from console.domain.agent import AgentId, ProcessIdentity
from console.domain.kill import Outcome, Receipt, Target
from console.services.daemons.facts import Asked
from console.services.daemons.service import DaemonService
from tests.fakes.daemons import alerts_into


@pytest.mark.parametrize(("left_s", "said"), [(-1.0, 1), (600.0, 0)])
async def test_a_killed_session_that_runs_again_after_its_watch_is_on_record_and_a_red_notice_once(left_s: float, said: int) -> None:
    first = Asked(AgentId("a1"), (), "s-1", ProcessIdentity(2**22 + 1, 1), "/")
    seen, records, notices = [first], list[tuple[str, str, str]](), list[tuple[str, str]]()
    alerts = list[AlertView]()
    told = (lambda *one: records.append(one), lambda *one: notices.append(one))
    service = DaemonService(lambda: seen, lambda *_, **__: {}, *told, alerts_into(alerts))
    await service.refresh()
    target = Target(AgentId("a1"), "adopted", Outcome.PROVEN_ZERO, 1.0, {})
    receipt = Receipt("k1", "00c0ffee", "a1", "now", "me", 2.0, targets=(target,), watch_until=time.time() + left_s)
    await service.after_zero(receipt)
    await service.refresh()
    assert not records, "the same process, not dead yet or best effort, is no return"
    seen[:] = [Asked(AgentId("a2"), (), "s-1", ProcessIdentity(2**22 + 2, 2), "/"), Asked(AgentId("a3"), (), "s-2", first.process, "/")]
    for _ in range(2):
        await service.refresh()
    words = [("kill.session_again", "k1", f"the killed session of a1 runs again after its return watch: a2, process {2**22 + 2}")]
    assert records == words * said and [colour for _, colour in notices] == ["red"] * said
    assert [(one.event, one.facts["agent_id"], one.facts["pid"]) for one in alerts] == [("agent_came_back", "a2", 2**22 + 2)] * said
