"""The client's routes to what agents may reach and spend: allowlist, budgets and settings."""

from __future__ import annotations

from console.api import allowlist_review as r
from console.api import budgets as b
from console.api import messages as m
from console.api import settings as st
from console.api.client.wire import CHANGE_S, Wire, segment


class AllowlistRoutes:
    """What agents in PROXIED mode may reach, with its history."""

    _wire: Wire

    def allowlist(self) -> m.AllowlistView:
        """GET /api/allowlist."""
        return self._wire.ask(m.AllowlistView, "GET", "/api/allowlist")

    def add_entry(self, body: m.AllowlistEntryBody) -> m.AllowlistChangedView:
        """POST /api/allowlist; returns once Envoy validated and confirmed it."""
        return self._wire.ask(m.AllowlistChangedView, "POST", "/api/allowlist", body=body, timeout_s=CHANGE_S)

    def change_entry(self, entry_id: str, body: m.AllowlistEntryBody) -> m.AllowlistChangedView:
        """PUT /api/allowlist/{entry_id}."""
        return self._wire.ask(m.AllowlistChangedView, "PUT", f"/api/allowlist/{segment(entry_id)}", body=body, timeout_s=CHANGE_S)

    def remove_entry(self, entry_id: str, *, reason: str, base_version: int | None = None) -> m.AllowlistChangedView:
        """DELETE /api/allowlist/{entry_id}."""
        query = {"reason": reason, "base_version": base_version}
        return self._wire.ask(m.AllowlistChangedView, "DELETE", f"/api/allowlist/{segment(entry_id)}", query=query, timeout_s=CHANGE_S)

    def test_url(self, body: m.UrlTestBody) -> m.UrlTestView:
        """POST /api/allowlist/test."""
        return self._wire.ask(m.UrlTestView, "POST", "/api/allowlist/test", body=body, timeout_s=CHANGE_S)

    def allowlist_history(self, limit: int = 50) -> r.AllowlistHistoryView:
        """GET /api/allowlist/history, newest first."""
        return self._wire.ask(r.AllowlistHistoryView, "GET", "/api/allowlist/history", query={"limit": limit})

    def revert_allowlist(self, body: r.RevertBody) -> m.AllowlistChangedView:
        """POST /api/allowlist/revert."""
        return self._wire.ask(m.AllowlistChangedView, "POST", "/api/allowlist/revert", body=body, timeout_s=CHANGE_S)

    def backtest(self, body: r.BacktestBody) -> r.BacktestView:
        """POST /api/allowlist/backtest."""
        return self._wire.ask(r.BacktestView, "POST", "/api/allowlist/backtest", body=body, timeout_s=CHANGE_S)

    def allowlist_file(self) -> r.AllowlistFileView:
        """GET /api/allowlist/file."""
        return self._wire.ask(r.AllowlistFileView, "GET", "/api/allowlist/file")

    def import_allowlist(self, body: r.ImportBody) -> r.ImportView:
        """POST /api/allowlist/import."""
        return self._wire.ask(r.ImportView, "POST", "/api/allowlist/import", body=body, timeout_s=CHANGE_S)


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


class SettingsRoutes:
    """Settings of the instance."""

    _wire: Wire

    def settings(self) -> st.SettingsView:
        """GET /api/settings."""
        return self._wire.ask(st.SettingsView, "GET", "/api/settings")

    def change_setting(self, body: st.SettingBody) -> st.SettingsView:
        """POST /api/settings; returns once it is recorded and written. It takes effect at the next start."""
        return self._wire.ask(st.SettingsView, "POST", "/api/settings", body=body, timeout_s=CHANGE_S)
