"""Names of accounts, for the numbers that records hold."""

from __future__ import annotations

from console.api.message import SCHEMA_VERSION, View


class AccountView(View):
    """An account of the host. ``login`` is empty when the host knows none of this number; ``full_name`` also when it has none."""

    uid: int
    login: str = ""
    full_name: str = ""


class AccountsView(View, kw_only=True):
    """GET /api/accounts?uids=0,1000."""

    schema_version: int = SCHEMA_VERSION
    accounts: list[AccountView] = []
