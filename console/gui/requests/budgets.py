"""The verbs of budgets: the page, one node, the pictures, and changes of limits."""

from __future__ import annotations

from console.api import budgets as b
from console.api import endpoints as ep
from console.gui.link.http import Link
from console.gui.link.pending import Pending


class BudgetRequests:
    """Limits and what is used of them."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def page(self, order: str = "time", limit: int = b.ROWS) -> Pending[b.BudgetsView]:
        """The trees, the first to end first; ``order`` may be ``spend``, ``limit`` bounds each list."""
        return self._link.ask(ep.BUDGETS, order=order, limit=limit)

    def node(self, scope: str, key: str) -> Pending[b.BudgetNodeView]:
        """One agent, tree, session, project or day: every limit, who spends it, the last changes."""
        return self._link.ask(ep.BUDGET_NODE, scope=scope, key=key)

    def pictures(self) -> Pending[b.BudgetPictures]:
        """Today's burn, cost by model and day, windows of subscriptions."""
        return self._link.ask(ep.BUDGET_PICTURES)

    def change(self, body: b.BudgetBody) -> Pending[b.BudgetSetView]:
        """Sets and clears limits; with ``dry_run`` it only says what that would do."""
        return self._link.ask(ep.CHANGE_BUDGET, body=body)
