"""What the network, rollback and audit pages show in the mock-ups, and as many rows as a test asks for."""

from __future__ import annotations

import hashlib

from console.api.allowlist_review import AllowlistVersionView, EntryChangeView, FieldChangeView
from console.api.messages import AllowlistEntryView, EgressView, MarkView
from console.api.records import AuditRow, DiffLine, RollbackDetailView, RollbackRow
from tests.fakes.gui_fixture import HOSTILE_NAMES

# host, port, methods, paths, may receive, owner, reason, seconds since used, hits
_ENTRIES = (
    ("api.anthropic.com", 443, "", "", "CONFIDENTIAL", "platform", "Model calls", 1, 18_204),
    ("api.stripe.com", 443, "", "", "CONFIDENTIAL", "support", "Refund drafts", 120, 1_912),
    ("crates.io", 443, "", "", "INTERNAL", "platform", "Rust builds", 4, 164),
    ("*.githubusercontent.com", 443, "", "", "PUBLIC", "platform", "Release files", 540, 604),
    ("github.com", 443, "", "", "INTERNAL", "release", "Source fetch", 31, 3_377),
    ("index.crates.io", 443, "", "", "INTERNAL", "platform", "Rust index", 4, 5_118),
    ("mail.internal", 993, "", "", "CONFIDENTIAL", "support", "Ticket inbox", 12, 8_640),
    ("objects.eu-1.store.net", 8080, "GET PUT", "/build-cache/", "INTERNAL", "platform", "Build cache", 180, 1_046),
    ("osv.dev", 443, "", "", "PUBLIC", "security", "CVE look-up", 14, 388),
    ("packages.internal", 80, "GET HEAD", "/simple/", "PUBLIC", "platform", "Python builds", 360, 1_275),
    ("mirror.internal", 80, "GET", "/", "PUBLIC", "release", "Debian mirror", None, 0),
)


def entries(now: float, number: int = 38) -> list[AllowlistEntryView]:
    """The mock-up's entries, then as many more."""
    out = []
    for at in range(number):
        host, port, methods, paths, may, owner, reason, ago, hits = _ENTRIES[at % len(_ENTRIES)]
        more = at // len(_ENTRIES)
        out.append(
            AllowlistEntryView(
                entry_id=f"e{at + 1}",
                host=host if not more else f"{host.removeprefix('*.').split('.')[0]}-{more}.internal",
                port=port,
                methods=methods.split(),
                paths=paths.split(),
                may_receive=may,
                owner=owner,
                reason=reason,
                review_by="2027-02-19",
                private_networks=["10.20.0.0/16"] if host.endswith(".internal") else [],
                last_used=None if ago is None else now - ago - more * 900,
                hits_7d=hits // (1 + more * 3),
                marks=_marks(host) if not more else [],
            )
        )
    return out


def _marks(host: str) -> list[MarkView]:
    """What the mock-up's reviewer should see."""
    anybody = "an attacker may have an account there, so data can be sent to it"
    if host == "*.githubusercontent.com":
        return [MarkView(kind="unused", words="not used for 31 days"), MarkView(kind="multi_tenant", words=anybody, danger=True)]
    if host == "objects.eu-1.store.net":
        return [MarkView(kind="multi_tenant", words=f"{anybody} (narrowed by path)")]
    return [MarkView(kind="unused", words="never used in 41 days")] if host == "mirror.internal" else []


def versions(now: float, newest: int = 118) -> list[AllowlistVersionView]:
    """The history, newest first; one of them is damaged."""
    paths = FieldChangeView(field="paths", before="any", after="/simple/")
    owner = FieldChangeView(field="owner", before="release", after="platform")
    changes = (
        [EntryChangeView(entry_id="e9", what="added", host="osv.dev")],
        [EntryChangeView(entry_id="e10", what="changed", host="packages.internal", fields=[paths, owner])],
        [EntryChangeView(entry_id="e44", what="removed", host="pastebin.com"), EntryChangeView(entry_id="e8", what="added", host="x.net")],
    )
    return [
        AllowlistVersionView(
            version=newest - at,
            by="operator:1000",
            reason=("CVE look-up", "Python builds read no more", "not needed any more")[at % 3],
            at=now - 3600 * at,
            entries=38 - at % 3,
            readable=at != 4,
            changes=changes[at % 3] if at != 4 else [],
        )
        for at in range(9)
    ]


# seconds ago, agent, method, host, path, bytes, allowed, rule
_EGRESS = (
    (0.8, "inbox-reader", "CONNECT", "mail.internal", "", 41_000, True, "entry e7"),
    (1.1, "cve-lookup", "CONNECT", "osv.dev", "", 3_100, True, "entry e9"),
    (
        1.6,
        "dependency-audit",
        "GET",
        "packages.internal",
        "/api/v1/serde",
        0,
        False,
        "GET packages.internal:80/api/v1/serde is outside entry e10",
    ),
    (2.2, "refund-drafter", "CONNECT", "api.stripe.com", "", 1_400, True, "entry e2"),
    (
        3.3,
        "dependency-audit",
        "GET",
        "packages.internal",
        "/me/tokens",
        0,
        False,
        "GET packages.internal:80/me/tokens is outside entry e10",
    ),
    (4.5, "refund-drafter", "CONNECT", "pastebin.com", "", 0, False, "no entry for CONNECT pastebin.com:443"),
    (
        4.8,
        "snapshot-pruner",
        "GET",
        "169.254.169.254",
        "/latest/meta-data",
        0,
        False,
        "no entry for GET 169.254.169.254:80/latest/meta-data",
    ),
    (6.0, "build-matrix", "CONNECT", "index.crates.io", "", 88_000, True, "entry e6"),
    (7.5, "data-sync", "GET", "objects.eu-1.store.net:8080", "/build-cache/7f", 0, True, "entry e8"),
)


def egress(now: float, number: int = 9) -> list[EgressView]:
    """Newest first."""
    out = []
    for at in range(number):
        ago, agent, method, host, path, size, allowed, rule = _EGRESS[at % len(_EGRESS)]
        status = (200 if size else 503) if allowed else 403
        out.append(
            EgressView(
                at=now - ago - 9 * (at // len(_EGRESS)),
                agent_id=agent,
                agent_name=agent,
                method=method,
                host=host,
                path=path,
                status=status,
                bytes_down=size,
                allowed=allowed,
                rule=rule,
            )
        )
    return out


# agent, seconds ago, kind, path, state
_RECORDS = (
    ("backfill-worker", 38, "file_write", "etl/orders/transform.py", "conflict"),
    ("backfill-worker", 204, "file_write", "etl/orders/backfill_2.py", "can_restore"),
    ("backfill-worker", 291, "file_delete", "etl/orders/old_map.json", "can_restore"),
    ("backfill-worker", 422, "file_write", "config/pipeline.yaml", "can_restore"),
    ("backfill-worker", 959, "file_write", "etl/orders/schema.sql", "can_restore"),
    ("backfill-worker", 1264, "file_write", "etl/orders/transform.py", "newer_exists"),
    ("dependency-audit", 179, "file_write", "Cargo.lock", "can_restore"),
    ("dependency-audit", 201, "file_write", "Cargo.toml", "can_restore"),
    ("dependency-audit", 1081, "file_delete", "vendor/serde-1.0.190/LICENSE", "can_restore"),
    ("snapshot-pruner", 1096, "file_delete", "snapshots/2026-08.tar", "unknown"),
    ("snapshot-pruner", 1193, "file_write", "terraform.tfvars", "restored"),
    ("support-triage", 1329, "file_write", "prompts/refund.md", "can_restore"),
)
_BEFORE_TEXT = """def map_row(row):
    total = Decimal(row['total'])
    if row['currency'] != 'EUR':
        total = convert(total, row)
    return {
        'id': row['id'],
        'total': quantize(total),
        'tax': row['tax'],
    }

def load(path):
    return read_rows(path)

def main(argv):"""
_NOW_TEXT = """def map_row(row):
    total = float(row['total'])
    if row['currency'] != 'EUR':
    return {
        'id': row['id'],
        'total': round(total, 2),
        'tax': row.get('tax', 0),
    }

BATCH = 4100

def load(path):
    return read_rows(path)[:BATCH]

def main(argv):"""
_BEFORE, _NOW = _BEFORE_TEXT.split("\n"), _NOW_TEXT.split("\n")
_SIGNS = "|,~2 2,|3 3,+4,|4 5,|5 6,~6 7,~7 8,|8 9,-9,-10,|11 10,|12 11,~13 12,|14 13,|15 14"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def diff() -> list[DiffLine]:
    """The mock-up's diff: left is the file now, right what is put back."""
    lines = [DiffLine(sign="", left_no=1, left=_NOW[0], right_no=1, right=_BEFORE[0])]
    for word in _SIGNS.split(",")[1:]:
        sign, numbers = word[0], [int(n) for n in word[1:].split()]
        if sign == "-":
            lines.append(DiffLine(sign="-", left_no=numbers[0], left=_NOW[numbers[0] - 1]))
        elif sign == "+":
            lines.append(DiffLine(sign="+", right_no=numbers[0], right=_BEFORE[numbers[0] - 1]))
        else:
            shown = "" if sign == "|" else "~"
            lines.append(
                DiffLine(sign=shown, left_no=numbers[0], left=_NOW[numbers[0] - 1], right_no=numbers[1], right=_BEFORE[numbers[1] - 1])
            )
    return lines


def records(now: float, number: int = 12) -> list[RollbackRow]:
    """Newest first within each agent."""
    out = []
    for at in range(number):
        agent, ago, kind, path, state = _RECORDS[at % len(_RECORDS)]
        more = at // len(_RECORDS)
        out.append(
            RollbackRow(
                record_id=f"r-{20418 - at}",
                agent_id=agent,
                agent_name=agent,
                context_id=f"ctx-{agent}",
                kind=kind,
                path=path if not more else f"{more}/{path}",
                before_size=8100 + at,
                state=state,
                created_at=now - ago - more * 1400,
                restored_at=now - 60 if state == "restored" else None,
                restored_by="operator:1000" if state == "restored" else "",
            )
        )
    return out


def record_detail(row: RollbackRow) -> RollbackDetailView:
    """What the supervisor says of a record; a deleted file is not there now."""
    gone = row.kind == "file_delete"
    before, now = sha(f"before {row.record_id}"), None if gone else sha(f"now {row.record_id}")
    if row.state == "restored":
        now = before
    conflict = (
        "What is on disk is not what the agent left: it changed since, last at 2026-11-21 14:01:58." if row.state == "conflict" else ""
    )
    if conflict:
        steps = [f"Refused: {conflict}", "Nothing would be written."]
    elif row.state == "restored":
        steps = ["The file already is as it was before; nothing would be written."]
    else:
        steps = [
            "Records that nothing is there now, first."
            if gone
            else "Keeps what is on disk now (8,312 bytes, sha256 c41d7e0a11c2) as a new record first.",
            f"Puts back {row.path}: {row.before_size:,} bytes, mode 0644, owner 1000:1000, sha256 {before[:12]}.",
            "Can itself be undone.",
        ]
    lines = diff() if not gone else [DiffLine(sign="+", right_no=n, right=text) for n, text in enumerate(_BEFORE, 1)]
    if row.state == "restored":
        lines = [DiffLine(sign="", left_no=n, left=t, right_no=n, right=t) for n, t in enumerate(_BEFORE, 1)]
    return RollbackDetailView(row=row, conflict=conflict, before_sha256=before, now_sha256=now, diff=lines, dry_run=steps)


# actor, kind, what, verdict, agent id
_AUDIT = (
    ("supervisor", "budget.warning", "data-sync passed 50% of $80", "", "data-sync"),
    ("agent:cve-lookup", "permission", "network: GET osv.dev/v1/query", "ask", "cve-lookup"),
    ("agent:dependency-audit", "permission", "network: GET crates.io/me/tokens", "deny", "dependency-audit"),
    ("operator:1000", "rollback.restore", "restore r-20411: wrong currency", "allow", ""),
    ("supervisor", "budget.halt", "refund-drafter reached 100% of $20", "halt", "refund-drafter"),
    ("agent:backfill-worker", "permission", "file_write etl/orders/backfill_2.py", "allow", "backfill-worker"),
    ("operator:1000", "allowlist.add", "add osv.dev:443 (version 118)", "allow", ""),
    ("operator:1000", "launch", "launch policy-check depth 2 sandbox docker", "allow", "policy-check"),
    ("supervisor", "network.switched", "support-triage: FULL → PROXIED, CONFIDENTIAL", "", "support-triage"),
    ("agent:dependency-audit", "permission", "file_write .cargo/credentials.toml", "deny", "dependency-audit"),
)


def audit_rows(now: float, number: int = 2_618, newest: int = 1_204_331, hostile: bool = False) -> list[AuditRow]:
    """The last ``number`` records of a chain that ends with ``newest``, oldest first; their hashes join."""
    out: list[AuditRow] = []
    previous = "0" * 64
    for seq in range(newest - number + 1, newest + 1):
        actor, kind, what, verdict, agent_id = _AUDIT[(newest - seq) % len(_AUDIT)]
        if hostile:
            what = HOSTILE_NAMES[seq % len(HOSTILE_NAMES)]
        own = sha(f"{seq} {previous} {what}")
        data = {"rollback_id": f"r-{20418 - seq % 12}"} if what.startswith("file_write etl") else {}
        row = AuditRow(
            seq=seq,
            at=now - (newest - seq) * 17.3,
            actor=actor,
            kind=kind,
            what=what,
            verdict=verdict,
            agent_id=agent_id,
            hash=own,
            previous=previous,
            data=data,
        )
        out.append(row)
        previous = own
    return out
