"""Metrics of workspaces as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from console.ledger.contexts import ContextRow
from console.services.sessions.metrics import exposition
from console.services.sessions.workspaces import Room

LABELS = ("context_id", "agent", "namespace", "agent_id")
HOSTILE = 'a"b\\c\nworkspace_pvc_usage_bytes{agent="x"} 1\u202e\x1b]0;t\x07'
SHOWN = 'a"b\\c\\nworkspace_pvc_usage_bytes{agent="x"} 1\\u202e\\x1b]0;t\\x07'


def row(context_id: str, agent: str, used: int) -> ContextRow:
    return ContextRow(context_id, agent, False, 1.0, 1700000000.5, None, "", None, 0.0, used, 2.0, True)


ROWS = [row("c1", "coder", 10), row("c2", "coder", 5), row("c3", HOSTILE, 7)]


def read(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        f.name: {tuple(s.labels[k] for k in LABELS if k in s.labels): s.value for s in f.samples}
        for f in text_string_to_metric_families(text)
    }


def test_every_metric_is_there_and_a_hostile_name_is_one_label() -> None:
    found = read(exposition(ROWS, Room(22, 100, 200), "team1", {"a1": 5.5}).decode())
    assert found == {
        "context_workspace_bytes": {("c1", "coder", "team1"): 10, ("c2", "coder", "team1"): 5, ("c3", SHOWN, "team1"): 7},
        "context_last_accessed_timestamp": dict.fromkeys(
            [("c1", "coder", "team1"), ("c2", "coder", "team1"), ("c3", SHOWN, "team1")], 1700000000.5
        ),
        "workspace_pvc_usage_bytes": {("coder", "team1"): 15, (SHOWN, "team1"): 7},
        "workspace_pvc_capacity_bytes": {("coder", "team1"): 100, (SHOWN, "team1"): 100},
        "agent_processes_looked_at_timestamp": {("a1",): 5.5},
    }


def test_two_names_that_are_shown_alike_are_one_sample() -> None:
    text = exposition([row("c1", "a\n", 1), row("c2", "a\\n", 2)], Room(22, 100, 200), "team1", {}).decode()
    assert read(text)["workspace_pvc_usage_bytes"] == {("a\\n", "team1"): 3} and text.count("workspace_pvc_usage_bytes{") == 1
