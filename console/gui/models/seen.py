"""Agents that were only seen, which a press may leave alone: its receipt names those of its moment, the fleet those that still run."""

from __future__ import annotations

from collections.abc import Iterable

from console.domain.kill import Receipt
from console.gui.models.row import Row


def still_running(receipt: Receipt | None, rows: Iterable[Row]) -> list[str]:
    """Names of those that ran at the press of everything, still run, and are none of its targets."""
    if receipt is None or receipt.scope != "all":
        return []
    targets = {target.agent_id for target in receipt.targets}
    return [
        row.name
        for row in rows
        if row.is_live and row.view.control_level == "observed" and row.id not in targets and row.view.started_at <= receipt.pressed_at
    ]


def running_words(names: list[str]) -> str:
    """``1 only seen still runs``."""
    return f"{len(names):,} only seen still {'runs' if len(names) == 1 else 'run'}" if names else ""
