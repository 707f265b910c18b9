"""The tables as SQLAlchemy Core sees them. What is on disk is decided by `migrations`; a test compares the two."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Float, Integer, MetaData, String, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

# https://www.sqlite.org/datatype3.html: an INTEGER holds at most 8 signed bytes; Python's are not bounded.
INT64_MAX = 2**63 - 1


class HostileText(TypeDecorator[str]):
    """Text from outside, byte-exact: TEXT where UTF-8 has an encoding, BLOB for lone surrogates. Its columns are ANY, which keeps both."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """A str, or bytes where UTF-8 has no encoding for it."""
        return None if value is None else storable(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        """The str that was stored; a value of another type (edited by hand) reads as its text."""
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogatepass" if _is_surrogatepass(value) else "backslashreplace")
        return None if value is None else str(value)


def storable(text: str) -> str | bytes:
    """``text`` as SQLite can keep it without loss."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def _is_surrogatepass(value: bytes) -> bool:
    try:
        value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def int64(number: int) -> int:
    """``number`` within what SQLite holds; a counter beyond it stays at the limit."""
    return max(-INT64_MAX, min(INT64_MAX, int(number)))


METADATA = MetaData()

SCHEMA_VERSION = Table(
    "schema_version",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("what", String),
    Column("applied_at", Float),
)

AGENTS = Table(
    "agents",
    METADATA,
    Column("agent_id", HostileText, primary_key=True),
    Column("parent_id", HostileText),
    Column("root_id", HostileText),
    Column("depth", Integer),
    Column("context_id", HostileText),
    Column("name", HostileText),
    Column("control_level", String),
    Column("sandbox", String),
    Column("started_at", Float),
    Column("argv", String),
    Column("limits", String),
    Column("tree_limits", String),
    Column("state", String),
    Column("live", Integer),
    Column("state_reason", HostileText),
    Column("usage", String),
    Column("sensitivity", String),
    Column("network_mode", String),
    Column("network_enforced", Integer),
    Column("network_note", HostileText),
    Column("process", String),
    Column("container_id", HostileText),
    Column("cwd", HostileText),
    Column("source", HostileText),
    Column("causes", String),
    Column("last_action", HostileText),
    Column("last_action_at", Float),
    Column("ended_at", Float),
    Column("exit_code", Integer),
    Column("isolated", HostileText),
    Column("cut_off", Integer),
    Column("network_why", HostileText),
    Column("network_since", Float),
    Column("project", HostileText),
    Column("halt", String),
    Column("scopes", String),
    Column("dry_run", HostileText),
)


def _lines(name: str) -> Table:
    return Table(
        name,
        METADATA,
        Column("seq", Integer, primary_key=True),
        Column("agent_id", HostileText),
        Column("at", Float),
        Column("kind", HostileText),
        Column("text", HostileText),
    )


EVENTS = _lines("agent_events")
NOTICES = _lines("notices")

SENSITIVITIES = Table(
    "sensitivity_events",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("context_id", HostileText),
    Column("level", HostileText),
    Column("dataset", HostileText),
    Column("source", HostileText),
    Column("at", Float),
    Column("cause", HostileText),
    Column("changed_by", HostileText),
)

MODES = Table(
    "mode_events",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("context_id", HostileText),
    Column("mode", HostileText),
    Column("why", HostileText),
    Column("at", Float),
    Column("cause", HostileText),
    Column("changed_by", HostileText),
)

ISOLATIONS = Table(
    "isolation_events",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("context_id", HostileText),
    Column("isolated", Integer),
    Column("words", HostileText),
    Column("at", Float),
)

NETWORK_EVENTS = Table(
    "network_events",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("context_id", HostileText),
    Column("agent_id", HostileText),
    Column("at", Float),
    Column("what", String),
    Column("mode", String),
    Column("enforced", Integer),
    Column("ms", Float),
    Column("changed_by", HostileText),
    Column("words", HostileText),
)

CONTEXTS = Table(
    "contexts",
    METADATA,
    Column("context_id", HostileText, primary_key=True),
    Column("agent", HostileText),
    Column("stateless", Integer),
    Column("created_at", Float),
    Column("last_used", Float),
    Column("ended_at", Float),
    Column("hold", HostileText),
    Column("held_at", Float),
    Column("held_s", Float),
    Column("bytes", Integer),
    Column("measured_at", Float),
    Column("complete", Integer),
    Column("gone_at", Float),
)

SPEND = Table(
    "spend",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("agent_id", HostileText),
    Column("root_id", HostileText),
    Column("at", Float),
    Column("cost_usd", Float),
    Column("tokens", Integer),
)

BUDGET_LIMITS = Table(
    "budget_limits",
    METADATA,
    Column("scope", String, primary_key=True),
    Column("key", HostileText, primary_key=True),
    Column("limits", String),
)

BUDGET_CHANGES = Table(
    "budget_changes",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("at", Float),
    Column("scope", String),
    Column("key", HostileText),
    Column("name", String),
    Column("old", Float),
    Column("new", Float),
    Column("changed_by", HostileText),
    Column("reason", HostileText),
)

BUDGET_USAGE = Table(
    "budget_usage",
    METADATA,
    Column("scope", String, primary_key=True),
    Column("key", HostileText, primary_key=True),
    Column("usage", String),
    Column("boot_s", Float),
    Column("boot_id", String),
    Column("at", Float),
)

BUDGET_WARNED = Table(
    "budget_warned",
    METADATA,
    Column("scope", String, primary_key=True),
    Column("key", HostileText, primary_key=True),
    Column("name", String, primary_key=True),
    Column("mark", Integer),
)

RESERVATIONS = Table(
    "reservations",
    METADATA,
    Column("reservation_id", String, primary_key=True),
    Column("agent_id", HostileText),
    Column("estimate", String),
    Column("expires_boot", Float),
    Column("boot_id", String),
    Column("tool", HostileText),
)

APPROVALS = Table(
    "approvals",
    METADATA,
    Column("approval_id", String, primary_key=True),
    Column("agent_id", HostileText),
    Column("root_id", HostileText),
    Column("context_id", HostileText),
    Column("tool", HostileText),
    Column("argument", HostileText),
    Column("cwd", HostileText),
    Column("detail", HostileText),
    Column("says", HostileText),
    Column("call_id", HostileText),
    Column("digest", String),
    Column("shape", HostileText),
    Column("rule", HostileText),
    Column("reason", HostileText),
    Column("parts", String),
    Column("asked_at", Float),
    Column("expires_boot", Float),
    Column("boot_id", String),
    Column("state", String),
    Column("scope", String),
    Column("decided_by", HostileText),
    Column("decided_at", Float),
    Column("words", HostileText),
)

APPROVAL_GRANTS = Table(
    "approval_grants",
    METADATA,
    Column("context_id", HostileText, primary_key=True),
    Column("digest", String, primary_key=True),
    Column("approval_id", String),
    Column("granted_by", HostileText),
    Column("at", Float),
)

CALLS = Table(
    "judged_calls",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("at", Float),
    Column("agent_id", HostileText),
    Column("context_id", HostileText),
    Column("tool", HostileText),
    Column("argument", HostileText),
    Column("cwd", HostileText),
    Column("verdict", String),
    Column("rule", HostileText),
)

SEQUENCE_MARKS = Table(
    "sequence_marks",
    METADATA,
    Column("seq", Integer, primary_key=True),
    Column("pattern", HostileText),
    Column("step", HostileText),
    Column("value", HostileText),
    Column("agent_id", HostileText),
    Column("context_id", HostileText),
    Column("root_id", HostileText),
    Column("at", Float),
    Column("text", HostileText),
    Column("tighten", String),
)

DRY_PLANS = Table(
    "dry_plans",
    METADATA,
    Column("plan_id", String, primary_key=True),
    Column("head", HostileText),
    Column("opened_at", Float),
    Column("state", String),
    Column("left_out", Integer),
    Column("sha256", String),
    Column("decided_by", HostileText),
    Column("decided_at", Float),
    Column("expires_boot", Float),
    Column("boot_id", String),
    Column("words", HostileText),
)

DRY_CALLS = Table(
    "dry_calls",
    METADATA,
    Column("plan_id", String, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("agent_id", HostileText),
    Column("context_id", HostileText),
    Column("tool", HostileText),
    Column("argument", HostileText),
    Column("cwd", HostileText),
    Column("detail", HostileText),
    Column("says", HostileText),
    Column("digest", String),
    Column("verdict", String),
    Column("rule", HostileText),
    Column("reason", HostileText),
    Column("outcome", String),
    Column("outcome_words", HostileText),
    Column("parts", String),
    Column("preview", String),
    Column("marks", String),
    Column("at", Float),
    Column("state", String),
    Column("times", Integer),
)

EGRESS = Table(
    "egress",
    METADATA,
    Column("egress_id", Integer, primary_key=True),
    Column("at", Float),
    Column("agent_id", HostileText),
    Column("method", HostileText),
    Column("host", HostileText),
    Column("path", HostileText),
    Column("status", Integer),
    Column("bytes_up", Integer),
    Column("bytes_down", Integer),
    Column("allowed", Integer),
    Column("rule", HostileText),
    Column("entry_id", HostileText),
)

ALLOWLISTS = Table(
    "allowlist_versions",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("entries", String),
    Column("changed_by", HostileText),
    Column("reason", HostileText),
    Column("at", Float),
)

KV = Table("kv", METADATA, Column("key", HostileText, primary_key=True), Column("value", HostileText))
