"""Names of accounts by their numbers, as the window asks for them."""

from __future__ import annotations

import os
import pwd

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from console.services.routes.accounts import accounts
from console.services.routes.responses import refusals


def test_numbers_are_answered_with_names_and_an_unknown_one_with_none() -> None:
    client = TestClient(Starlette(routes=[Route("/api/accounts", accounts)], exception_handlers=dict(refusals())))
    me = os.getuid()
    found = client.get(f"/api/accounts?uids={me},4000111").json()["accounts"]
    assert [(one["uid"], one.get("login", "")) for one in found] == [(me, pwd.getpwuid(me).pw_name), (4000111, "")]
    assert client.get("/api/accounts?uids=").json()["accounts"] == []
    for bad in ("ann", "-1", "1;2", ",".join("1" * 65), "99999999999"):
        refused = client.get("/api/accounts", params={"uids": bad})
        assert refused.status_code == 400 and "whole numbers" in refused.json()["error"], bad
