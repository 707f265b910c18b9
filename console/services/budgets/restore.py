"""What was kept of budgets, read at start-up. What cannot be read is never taken for a fresh budget."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

from console.domain.agent import AgentId
from console.domain.budget import UNCAPPED, Day, KeptBudget, Reservation, Usage
from console.enforcement.charging import nodes_of
from console.enforcement.state import EngineState
from console.ledger.budgets import DAY
from console.ledger.spending import SpendSample
from console.ledger.store import Ledger
from console.services.budgets.burn_rate import BurnBook
from console.services.routes.launch_body import limits_from
from console.settings.options import Options


def kept_budget(ledger: Ledger, options: Options, at: float) -> KeptBudget:
    """For ``Restored``. Raises ConsoleError when the ledger cannot be read."""
    given = options.budgets
    defaults = {scope: limits_from(getattr(given, scope)) for scope in ("agent", "tree", "session", "project", "day")}
    defaults |= {f"type:{name}": limits_from(limits) for name, limits in given.types.items()}
    return KeptBudget(
        boot_id=boot_id(),
        day=_day(ledger.kv_get(DAY)),
        limits=ledger.budget_limits(),
        defaults={name: limits for name, limits in defaults.items() if limits != UNCAPPED},
        usage={node: (kept.usage, kept.boot_s, kept.boot_id) for node, kept in ledger.budget_usage().items()},
        reservations=tuple(
            (Reservation(r.reservation_id, r.agent_id, r.estimate, r.expires_boot, r.tool), r.boot_id) for r in ledger.reservations()
        ),
        warned=ledger.budget_warned(),
        today_usd=ledger.spend_today(at).cost_usd,
    )


def recall_burn(book: BurnBook, state: EngineState, samples: Iterable[SpendSample], at: float, boot_s: float) -> None:
    """Restore the last hour's charts after a restart. Rates start at zero: calls and iterations have no stored samples."""
    for sample in samples:
        agent = state.agents.get(AgentId(sample.agent_id))
        if agent is not None and sample.at <= at:
            spent = Usage(cost_usd=sample.cost_usd, tokens=sample.tokens)
            book.add(nodes_of(state, agent), spent, max(0.0, boot_s - (at - sample.at)))


def boot_id() -> str:
    """Which boot of the machine this is (random(4)); empty where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:64]
    except OSError:
        return ""


def _day(text: str | None) -> Day:
    """The day that was open; one that cannot be read is today, with what was kept of it."""
    try:
        found = json.loads(text or "")
        time.strptime(str(found["date"]), "%Y-%m-%d")
        return Day(str(found["date"]), float(found["ends_boot"]), str(found["boot_id"]), float(found["metered_usd"]))
    except (ValueError, KeyError, TypeError):
        return Day()
