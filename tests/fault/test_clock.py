"""Fault 5: the wall clock jumps a year ahead, or an hour back, under a running supervisor. Budgets, tokens and the kill do not mind."""

from __future__ import annotations

from pathlib import Path

import jwt
import pytest

from console.credentials.keyring_store import Store
from console.credentials.tokens import Tokens
from console.domain.errors import Denied
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, living
from tests.fakes.jumping_clock import JUMP
from tests.fault.conftest import Make

YEAR, HOUR = 365 * 86_400.0, 3600.0
SPEND = "agent.usage(cost_usd=0.60)\nprint('spent', flush=True)\nwhile True: time.sleep(60)\n"
SPEND_AGAIN = SPEND.replace("while True: time.sleep(60)", "import pathlib\nwhile not pathlib.Path('more').exists(): time.sleep(0.05)\n")
SPEND_AGAIN += "agent.usage(cost_usd=0.60)\nwhile True: time.sleep(60)\n"


@pytest.mark.parametrize("jump", [YEAR, pytest.param(-HOUR, marks=pytest.mark.long)])
def test_a_clock_that_jumps_refills_no_budget_and_ends_nobody_early(broken: Make, jump: float) -> None:
    it = broken()
    it.module = "tests.fakes.jumping_clock"
    it.start()
    spender = it.python(SPEND_AGAIN, context_id="money", limits={"cost": 1.0, "wall": 3000})
    it.says(spender, "spent")
    (it.state_dir / JUMP).write_text(str(jump))
    # Over a restart too: what was used and how long it ran is counted on, by no wall clock.
    for _ in range(2):
        view = it.state_becomes(spender, "running", "waiting")
        assert view.usage["cost_usd"] == pytest.approx(0.6) and view.usage.get("wall_s", 0.0) < 600
        it.stop()
        it.start()
    it.state_becomes(spender, "running", "waiting")
    (it.places.workspaces_dir / "money" / "more").write_text("")
    it.state_becomes(spender, "halted")
    other = it.stubborn()
    receipt = it.api.activate("the clock is wrong")
    assert receipt.verified_zero
    # The jump may have begun a test of the kill switch, which lets a process of its own lie outside until the second look.
    until(lambda: not living(it.places), words="nothing of the instance lives")
    it.receipt_of(receipt.kill_id)
    assert it.agent(other).state == "killed"
    it.stop()
    (it.state_dir / JUMP).write_text("0")
    it.start()
    assert it.api.fleet().killed, "nor does the way back release anything"
    check_invariants(it.places, killed=True)


def test_tokens_are_neither_longer_lived_nor_revived_by_a_clock(tmp_path: Path) -> None:
    at = [1_800_000_000.0]
    tokens = Tokens(Store("0123abcd", tmp_path / "keys", backend="file"), clock=lambda: at[0])
    tokens.ensure()
    token = tokens.issue("agent-service", "a-1", 900, agent_id="a-1")
    assert tokens.accepts(token, "agent-service")
    at[0] += YEAR
    assert not tokens.accepts(token, "agent-service")
    at[0] -= YEAR + HOUR
    assert not tokens.accepts(token, "agent-service"), "from the future"
    at[0] += HOUR
    tokens.raise_epoch()  # what a kill does
    for jump in (0.0, YEAR, -YEAR - HOUR):
        at[0] += jump
        with pytest.raises(Denied):
            tokens.verify(token, "agent-service")
    assert jwt.decode(token, options={"verify_signature": False})["exp"] == 1_800_000_900
