"""The schema on disk, as ordered steps that are never edited once released: a new one is added below."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; all of its statements and its row in ``schema_version`` are one transaction."""

    version: int
    what: str
    statements: tuple[str, ...]


def append_only(table: str, key: str) -> tuple[str, ...]:
    """Triggers that refuse every change of a row that is there.

    https://www.sqlite.org/lang_conflict.html: REPLACE fires delete triggers only with recursive_triggers on, a setting of
    each connection; the third trigger refuses REPLACE on any connection.
    """
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    return (
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}) {refuse}",
    )


def _lines(table: str) -> str:
    return f"""CREATE TABLE {table} (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, agent_id ANY NOT NULL, at REAL NOT NULL, kind ANY NOT NULL, text ANY NOT NULL
    ) STRICT"""


_FIRST = (
    """CREATE TABLE agents (
        agent_id ANY NOT NULL PRIMARY KEY, parent_id ANY, root_id ANY NOT NULL, depth INTEGER NOT NULL, context_id ANY NOT NULL,
        name ANY NOT NULL, control_level TEXT NOT NULL, sandbox TEXT NOT NULL, started_at REAL NOT NULL, argv TEXT NOT NULL,
        limits TEXT NOT NULL, tree_limits TEXT NOT NULL, state TEXT NOT NULL, live INTEGER NOT NULL, state_reason ANY NOT NULL,
        usage TEXT NOT NULL, sensitivity TEXT NOT NULL, network_mode TEXT NOT NULL, network_enforced INTEGER NOT NULL,
        network_note ANY NOT NULL, process TEXT, container_id ANY NOT NULL, cwd ANY NOT NULL, source ANY NOT NULL,
        causes TEXT NOT NULL, last_action ANY NOT NULL, last_action_at REAL NOT NULL, ended_at REAL, exit_code INTEGER
    ) STRICT""",
    "CREATE INDEX agents_by_life ON agents (live, started_at)",
    _lines("agent_events"),
    "CREATE INDEX agent_events_by_agent ON agent_events (agent_id, seq)",
    _lines("notices"),
    "CREATE INDEX notices_by_agent ON notices (agent_id, seq)",
    """CREATE TABLE sensitivity_events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, context_id ANY NOT NULL, level ANY NOT NULL, dataset ANY NOT NULL,
        source ANY NOT NULL, at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX sensitivity_events_by_context ON sensitivity_events (context_id, level)",
    *append_only("sensitivity_events", "seq"),
    """CREATE TABLE mode_events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, context_id ANY NOT NULL, mode ANY NOT NULL, why ANY NOT NULL, at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX mode_events_by_context ON mode_events (context_id, mode)",
    *append_only("mode_events", "seq"),
    """CREATE TABLE spend (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, agent_id ANY NOT NULL, root_id ANY NOT NULL, at REAL NOT NULL,
        cost_usd REAL NOT NULL, tokens INTEGER NOT NULL
    ) STRICT""",
    "CREATE INDEX spend_by_time ON spend (at)",
    "CREATE INDEX spend_by_agent ON spend (agent_id, at)",
    """CREATE TABLE egress (
        egress_id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, agent_id ANY NOT NULL, method ANY NOT NULL,
        host ANY NOT NULL, path ANY NOT NULL, status INTEGER NOT NULL, bytes_up INTEGER NOT NULL, bytes_down INTEGER NOT NULL,
        allowed INTEGER NOT NULL, rule ANY NOT NULL, entry_id ANY
    ) STRICT""",
    "CREATE INDEX egress_by_agent ON egress (agent_id, egress_id)",
    "CREATE INDEX egress_by_entry ON egress (entry_id, at)",
    "CREATE INDEX egress_by_outcome ON egress (allowed, at)",
    """CREATE TABLE allowlist_versions (
        version INTEGER PRIMARY KEY, entries TEXT NOT NULL, changed_by ANY NOT NULL, reason ANY NOT NULL, at REAL NOT NULL
    ) STRICT""",
    *append_only("allowlist_versions", "version"),
    "CREATE TABLE kv (key ANY NOT NULL PRIMARY KEY, value ANY NOT NULL) STRICT",
)

_ISOLATION = (
    "ALTER TABLE agents ADD COLUMN isolated ANY NOT NULL DEFAULT ''",
    "ALTER TABLE agents ADD COLUMN cut_off INTEGER NOT NULL DEFAULT 0",
    """CREATE TABLE isolation_events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, context_id ANY NOT NULL, isolated INTEGER NOT NULL, words ANY NOT NULL, at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX isolation_events_by_context ON isolation_events (context_id, seq)",
    *append_only("isolation_events", "seq"),
)

_CONTEXTS = (
    """CREATE TABLE contexts (
        context_id ANY NOT NULL PRIMARY KEY, agent ANY NOT NULL, stateless INTEGER NOT NULL, created_at REAL NOT NULL,
        last_used REAL NOT NULL, ended_at REAL, hold ANY NOT NULL, held_at REAL, held_s REAL NOT NULL, bytes INTEGER NOT NULL,
        measured_at REAL, complete INTEGER NOT NULL, gone_at REAL
    ) STRICT""",
)

_NETWORK_HISTORY = (
    "ALTER TABLE agents ADD COLUMN network_why ANY NOT NULL DEFAULT ''",
    "ALTER TABLE agents ADD COLUMN network_since REAL NOT NULL DEFAULT 0",
    *(
        f"ALTER TABLE {table} ADD COLUMN {column} ANY NOT NULL DEFAULT ''"
        for table in ("sensitivity_events", "mode_events")
        for column in ("cause", "changed_by")
    ),
    """CREATE TABLE network_events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, context_id ANY NOT NULL, agent_id ANY NOT NULL, at REAL NOT NULL, what TEXT NOT NULL,
        mode TEXT NOT NULL, enforced INTEGER, ms REAL, changed_by ANY NOT NULL, words ANY NOT NULL
    ) STRICT""",
    "CREATE INDEX network_events_by_context ON network_events (context_id, seq)",
    "CREATE INDEX network_events_by_agent ON network_events (agent_id, seq)",
    *append_only("network_events", "seq"),
)

_BUDGETS = (
    "ALTER TABLE agents ADD COLUMN project ANY NOT NULL DEFAULT ''",
    "ALTER TABLE agents ADD COLUMN halt TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE budget_limits (scope TEXT NOT NULL, key ANY NOT NULL, limits TEXT NOT NULL, PRIMARY KEY (scope, key)) STRICT",
    """CREATE TABLE budget_changes (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, scope TEXT NOT NULL, key ANY NOT NULL, name TEXT NOT NULL,
        old REAL, new REAL, changed_by ANY NOT NULL, reason ANY NOT NULL
    ) STRICT""",
    "CREATE INDEX budget_changes_by_node ON budget_changes (scope, key, seq)",
    *append_only("budget_changes", "seq"),
    """CREATE TABLE budget_usage (
        scope TEXT NOT NULL, key ANY NOT NULL, usage TEXT NOT NULL, boot_s REAL NOT NULL, boot_id TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (scope, key)
    ) STRICT""",
    """CREATE TABLE budget_warned (
        scope TEXT NOT NULL, key ANY NOT NULL, name TEXT NOT NULL, mark INTEGER NOT NULL, PRIMARY KEY (scope, key, name)
    ) STRICT""",
    """CREATE TABLE reservations (
        reservation_id TEXT NOT NULL PRIMARY KEY, agent_id ANY NOT NULL, estimate TEXT NOT NULL, expires_boot REAL NOT NULL,
        boot_id TEXT NOT NULL, tool ANY NOT NULL
    ) STRICT""",
)

_APPROVALS = (
    """CREATE TABLE approvals (
        approval_id TEXT NOT NULL PRIMARY KEY, agent_id ANY NOT NULL, root_id ANY NOT NULL, context_id ANY NOT NULL, tool ANY NOT NULL,
        argument ANY NOT NULL, cwd ANY NOT NULL, detail ANY NOT NULL, says ANY NOT NULL, call_id ANY NOT NULL, digest TEXT NOT NULL,
        shape ANY NOT NULL, rule ANY NOT NULL, reason ANY NOT NULL, parts TEXT NOT NULL, asked_at REAL NOT NULL,
        expires_boot REAL NOT NULL, boot_id TEXT NOT NULL, state TEXT NOT NULL, scope TEXT NOT NULL, decided_by ANY NOT NULL,
        decided_at REAL, words ANY NOT NULL
    ) STRICT""",
    "CREATE INDEX approvals_by_state ON approvals (state, asked_at)",
    "CREATE INDEX approvals_by_shape ON approvals (shape, asked_at)",
    "CREATE INDEX approvals_by_time ON approvals (asked_at)",
    """CREATE TABLE approval_grants (
        context_id ANY NOT NULL, digest TEXT NOT NULL, approval_id TEXT NOT NULL, granted_by ANY NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (context_id, digest)
    ) STRICT""",
)

_SCOPES = ("ALTER TABLE agents ADD COLUMN scopes TEXT",)

_CALLS = (
    """CREATE TABLE judged_calls (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, agent_id ANY NOT NULL, context_id ANY NOT NULL, tool ANY NOT NULL,
        argument ANY NOT NULL, cwd ANY NOT NULL, verdict TEXT NOT NULL, rule ANY NOT NULL
    ) STRICT""",
    "CREATE INDEX judged_calls_by_time ON judged_calls (at)",
)

_SEQUENCES = (
    """CREATE TABLE sequence_marks (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, pattern ANY NOT NULL, step ANY NOT NULL, value ANY NOT NULL, agent_id ANY NOT NULL,
        context_id ANY NOT NULL, root_id ANY NOT NULL, at REAL NOT NULL, text ANY NOT NULL, tighten TEXT NOT NULL
    ) STRICT""",
    *append_only("sequence_marks", "seq"),
)

_DRY_RUN = (
    "ALTER TABLE agents ADD COLUMN dry_run ANY NOT NULL DEFAULT ''",
    """CREATE TABLE dry_plans (
        plan_id TEXT NOT NULL PRIMARY KEY, head ANY NOT NULL, opened_at REAL NOT NULL, state TEXT NOT NULL, left_out INTEGER NOT NULL,
        sha256 TEXT NOT NULL, decided_by ANY NOT NULL, decided_at REAL, expires_boot REAL NOT NULL, boot_id TEXT NOT NULL,
        words ANY NOT NULL
    ) STRICT""",
    "CREATE INDEX dry_plans_by_head ON dry_plans (head, opened_at)",
    "CREATE INDEX dry_plans_by_state ON dry_plans (state)",
    """CREATE TABLE dry_calls (
        plan_id TEXT NOT NULL, seq INTEGER NOT NULL, agent_id ANY NOT NULL, context_id ANY NOT NULL, tool ANY NOT NULL,
        argument ANY NOT NULL, cwd ANY NOT NULL, detail ANY NOT NULL, says ANY NOT NULL, digest TEXT NOT NULL,
        verdict TEXT NOT NULL, rule ANY NOT NULL, reason ANY NOT NULL, outcome TEXT NOT NULL, outcome_words ANY NOT NULL,
        parts TEXT NOT NULL, preview TEXT NOT NULL,
        marks TEXT NOT NULL, at REAL NOT NULL, state TEXT NOT NULL, times INTEGER NOT NULL, PRIMARY KEY (plan_id, seq)
    ) STRICT""",
)

_CALL_NAMES = ("CREATE INDEX approvals_by_call ON approvals (agent_id, call_id, asked_at)",)

MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "agents, sessions, spend, egress, allowlist", _FIRST),
    Migration(2, "isolation by an operator", _ISOLATION),
    Migration(3, "workspaces of sessions", _CONTEXTS),
    Migration(4, "history of network modes", _NETWORK_HISTORY),
    Migration(5, "budgets: limits, changes, usage, what is set aside", _BUDGETS),
    Migration(6, "approvals: what waits for a human, and what was decided", _APPROVALS),
    Migration(7, "scopes that agents were granted", _SCOPES),
    Migration(8, "calls that were judged", _CALLS),
    Migration(9, "steps of forbidden sequences", _SEQUENCES),
    Migration(10, "dry-run: who is in it, and plans", _DRY_RUN),
    Migration(11, "approvals by their asker's name for the call", _CALL_NAMES),
)

VERSION_TABLE = (
    "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, what TEXT NOT NULL, applied_at REAL NOT NULL) STRICT"
)
