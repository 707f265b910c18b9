"""The routes behind the network, rollback and audit pages of the stand-in supervisor: state that can be changed, refused and broken."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from console.api import allowlist_review as rv
from console.api import messages as m
from console.api.network import EnvoyConfigView
from console.api.records import AuditPage, AuditRow, AuditVerdict, RestoreBody, RollbackDetailView, RollbackPage
from console.domain.errors import ConsoleError
from console.domain.network import Allowlist, AllowlistEntry, Sensitivity
from console.egress.url_test import judge_url
from tests.fakes import pages_fixture as fixture
from tests.fakes.view_answers import refuse, say

Tell = Callable[[str, dict[str, Any]], None]


def _entry(entry_id: str, view: m.AllowlistEntryBody | m.AllowlistEntryView) -> AllowlistEntry:
    return AllowlistEntry(
        entry_id,
        view.host,
        view.port,
        tuple(view.methods),
        tuple(view.paths),
        view.reason,
        view.owner,
        view.review_by,
        Sensitivity(view.may_receive),
        tuple(view.private_networks),
    )


class FakeRooms:
    """Tests set the fields and read ``log``."""

    def __init__(self, tell: Tell, now: float) -> None:
        self.tell = tell
        self.entries = fixture.entries(now)
        self.version = 118
        self.envoy = "healthy"
        self.envoy_says: bool | None = True
        self.envoy_words = "Envoy accepts the list."
        self.refuse_save = ""
        self.egress = fixture.egress(now)
        self.records = fixture.records(now)
        self.details: dict[str, RollbackDetailView] = {}
        self._audit_log: list[AuditRow] | None = None
        self.verdict: AuditVerdict | None = None
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.versions = fixture.versions(now)
        self.refuse_backtest = ""
        self.backtest = rv.BacktestView(days=30, judged=0, changed=0, words="Nothing would have changed.")

    @property
    def audit(self) -> list[AuditRow]:
        """Oldest first; made when first asked for."""
        if self._audit_log is None:
            self._audit_log = fixture.audit_rows(time.time())
        return self._audit_log

    @audit.setter
    def audit(self, rows: list[AuditRow]) -> None:
        self._audit_log = rows

    def routes(self) -> list[Route]:
        """All of them."""
        routes: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/api/allowlist", self._list),
            ("POST", "/api/allowlist", self._add),
            ("POST", "/api/allowlist/test", self._test),
            ("GET", "/api/allowlist/history", self._history),
            ("POST", "/api/allowlist/revert", self._revert),
            ("POST", "/api/allowlist/backtest", self._backtest),
            ("PUT", "/api/allowlist/{id}", self._edit),
            ("DELETE", "/api/allowlist/{id}", self._remove),
            ("GET", "/api/envoy/config", self._config),
            ("GET", "/api/egress", self._egress),
            ("GET", "/api/rollback", self._rollbacks),
            ("GET", "/api/rollback/{id}", self._rollback),
            ("POST", "/api/rollback/{id}/restore", self._restore),
            ("GET", "/api/audit", self._audit_page),
            ("POST", "/api/audit/verify", self._verify),
            ("POST", "/api/audit/acknowledge", self._acknowledge),
        ]
        return [Route(path, answer, methods=[verb]) for verb, path, answer in routes]

    # --- network

    async def _list(self, _request: Request) -> Response:
        view = m.AllowlistView(version=self.version, entries=self.entries, envoy=self.envoy, sandboxes=14)  # type: ignore[arg-type]
        return say(view)

    async def _test(self, request: Request) -> Response:
        body = m.UrlTestBody.read_json(await request.body())
        self.log.append(("test", body.url, body.as_data()))
        live = [_entry(e.entry_id, e) for e in self.entries if e.entry_id != body.replaces]
        try:
            if body.entry is not None:
                draft = _entry("draft", body.entry)
                draft.check()
                live.append(draft)
            judged = judge_url(Allowlist(self.version, tuple(live)), body.method, body.url)
        except ConsoleError as error:
            return refuse(error.http_status, error.what, error.remedy)
        asked = body.entry is not None and body.validate_with_envoy
        return say(
            m.UrlTestView(
                allowed=judged.allowed,
                entry_id=judged.entry_id,
                reason=judged.reason,
                envoy_valid=self.envoy_says if asked else None,
                envoy_words=self.envoy_words if asked else "",
            )
        )

    async def _history(self, _request: Request) -> Response:
        return say(rv.AllowlistHistoryView(live=self.version, versions=self.versions))

    async def _revert(self, request: Request) -> Response:
        body = rv.RevertBody.read_json(await request.body())
        self.log.append(("revert", str(body.version), body.as_data()))
        against = self._stands_against(body.base_version)
        if against is not None:
            return against
        old = next(v for v in self.versions if v.version == body.version)
        back = {"version": self.version + 1, "reason": f"back to v{body.version}: {body.reason}", "changes": []}
        self.versions = [old.replaced(**back), *self.versions]
        return self._changed("")

    async def _backtest(self, request: Request) -> Response:
        body = rv.BacktestBody.read_json(await request.body())
        self.log.append(("backtest", body.replaces or body.remove or "", body.as_data()))
        return refuse(503, self.refuse_backtest) if self.refuse_backtest else say(self.backtest)

    def _changed(self, entry_id: str) -> Response:
        self.version += 1
        self.tell("allowlist", {"version": self.version})
        words = "validated by Envoy in 21 ms · applied to 14 sandboxes in 38 ms"
        view = m.AllowlistChangedView(version=self.version, entry_id=entry_id, validated_ms=21, applied_ms=38, sandboxes=14, words=words)
        return say(view)

    def _stands_against(self, base: int | None) -> Response | None:
        if self.refuse_save:
            return refuse(400, f"Envoy refused the change: {self.refuse_save}", "The old list is still live.")
        if base is not None and base != self.version:
            words = f"The allowlist is at version {self.version} now, not {base}."
            return refuse(409, words, "Look at it again, then repeat the change.")
        return None

    async def _add(self, request: Request) -> Response:
        body = m.AllowlistEntryBody.read_json(await request.body())
        self.log.append(("add", "", body.as_data()))
        against = self._stands_against(body.base_version)
        if against is not None:
            return against
        entry_id = f"e{len(self.entries) + 100}"
        self.entries = [*self.entries, m.AllowlistEntryView(entry_id=entry_id, **body.as_data(exclude={"base_version"}))]
        return self._changed(entry_id)

    async def _edit(self, request: Request) -> Response:
        entry_id = request.path_params["id"]
        body = m.AllowlistEntryBody.read_json(await request.body())
        self.log.append(("edit", entry_id, body.as_data()))
        against = self._stands_against(body.base_version)
        if against is not None:
            return against
        new = m.AllowlistEntryView(entry_id=entry_id, **body.as_data(exclude={"base_version"}))
        self.entries = [new if e.entry_id == entry_id else e for e in self.entries]
        return self._changed(entry_id)

    async def _remove(self, request: Request) -> Response:
        entry_id, query = request.path_params["id"], request.query_params
        self.log.append(("remove", entry_id, dict(query)))
        if not query.get("reason", "").strip():
            return refuse(400, "Removing an entry needs a reason.")
        against = self._stands_against(int(query["base_version"]) if "base_version" in query else None)
        if against is not None:
            return against
        self.entries = [e for e in self.entries if e.entry_id != entry_id]
        return self._changed(entry_id)

    async def _config(self, _request: Request) -> Response:
        text = "static_resources:\n  listeners:\n" + "".join(f"  - name: egress_{n}\n    filter_chains: []\n" for n in range(14))
        return say(EnvoyConfigView(version=self.version, text=text))

    async def _egress(self, request: Request) -> Response:
        return say(m.EgressPage(egress=self.egress[: int(request.query_params.get("limit", "200"))]))

    # --- rollback

    def detail(self, record_id: str) -> RollbackDetailView | None:
        """What a record's detail says now."""
        row = next((r for r in self.records if r.record_id == record_id), None)
        if row is None:
            return None
        return self.details.get(record_id) or fixture.record_detail(row)

    async def _rollbacks(self, _request: Request) -> Response:
        return say(RollbackPage(records=self.records))

    async def _rollback(self, request: Request) -> Response:
        found = self.detail(request.path_params["id"])
        return say(found) if found else refuse(404, "No such record.")

    async def _restore(self, request: Request) -> Response:
        record_id = request.path_params["id"]
        body = RestoreBody.read_json(await request.body())
        self.log.append(("restore", record_id, body.as_data()))
        found = self.detail(record_id)
        if found is None:
            return refuse(404, "No such record.")
        if found.conflict:
            return refuse(409, found.conflict, "Nothing was written.")
        if body.expect_now_sha256 != found.now_sha256:
            return refuse(409, "The file is not what you looked at any more.", "Look at the record again, then decide.")
        done = found.row.replaced(state="restored", restored_at=time.time(), restored_by="operator:1000")
        self.records = [done if r.record_id == record_id else r for r in self.records]
        self.details.pop(record_id, None)
        self.tell("rollback", {"record_id": record_id, "state": "restored"})
        return say(done)

    # --- audit

    async def _audit_page(self, request: Request) -> Response:
        query = request.query_params
        text, before = query.get("q", "").lower(), int(query.get("before", 2**62))
        limit = min(200, int(query.get("limit", "200")))
        self.log.append(("audit", text, dict(query)))
        found: list[AuditRow] = []
        first = self.audit[0].seq if self.audit else 1
        for row in reversed(self.audit[: max(0, before - first)]):
            if not text or text in f"{row.actor}\0{row.kind}\0{row.what}\0{row.agent_id}".lower():
                found.append(row)
            if len(found) == limit:
                break
        newest = self.audit[-1].seq if self.audit else 0
        return say(AuditPage(rows=found, total=newest, newest=newest))

    async def _acknowledge(self, request: Request) -> Response:
        self.log.append(("acknowledge", str((await request.json())["reason"]), {}))
        return await self._verify(request)

    async def _verify(self, _request: Request) -> Response:
        self.log.append(("verify", "", {}))
        whole = AuditVerdict(whole=True, records=self.audit[-1].seq if self.audit else 0, checked_at=time.time())
        return say(self.verdict or whole)
