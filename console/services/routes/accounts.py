"""Names of accounts for the window: records hold numbers, and a person reads names."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from console.api.records import AccountsView, AccountView
from console.domain.errors import UsageProblem
from console.domain.process.account import account_names
from console.services.routes.responses import answer

MOST = 64
"""Numbers in one request."""


async def accounts(request: Request) -> Response:
    """GET /api/accounts?uids=0,1000. A directory service may take its time, and holds up no other request."""
    given = [text for text in request.query_params.get("uids", "").split(",")[: MOST + 1] if text]
    if len(given) > MOST or not all(text.isascii() and text.isdigit() and len(text) <= 10 for text in given):
        raise UsageProblem(f"uids must be at most {MOST} whole numbers with commas between them.", "Ask for ?uids=0,1000.")
    found = await asyncio.to_thread(lambda: [AccountView(uid, *account_names(uid)) for uid in sorted({int(text) for text in given})])
    return answer(AccountsView(accounts=found))
