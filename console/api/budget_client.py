"""Budgets through operator.sock, one function per verb."""

from __future__ import annotations

from console.api import budgets as b
from console.api.wire import CHANGE_S, Wire


class BudgetRoutes:
    """Limits, what is used of them, and who changed them."""

    _wire: Wire

    def budgets(self, order: str = "time") -> b.BudgetsView:
        """GET /api/budgets: every tree, the first to end first; ``order`` may be ``spend``."""
        return self._wire.ask(b.BudgetsView, "GET", "/api/budgets", query={"order": order})

    def budget_node(self, scope: b.BudgetScope, key: str = "") -> b.BudgetNodeView:
        """GET /api/budgets/node."""
        return self._wire.ask(b.BudgetNodeView, "GET", "/api/budgets/node", query={"scope": scope, "key": key or None})

    def budget_history(self, scope: str = "", key: str = "", limit: int = 50) -> b.BudgetHistoryView:
        """GET /api/budgets/history, newest first."""
        query = {"scope": scope or None, "key": key or None, "limit": limit}
        return self._wire.ask(b.BudgetHistoryView, "GET", "/api/budgets/history", query=query)

    def change_budget(self, body: b.BudgetBody) -> b.BudgetSetView:
        """POST /api/budgets; returns once it is recorded, kept and in force."""
        return self._wire.ask(b.BudgetSetView, "POST", "/api/budgets", body=body, timeout_s=CHANGE_S)
