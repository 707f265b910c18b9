"""Figures of states that a short session does not reach: kills not confirmed, hostile rules, records that wait."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from console.api.armed import ArmedView, PathView
from console.domain.calls.permission import Verdict
from console.domain.kill import Outcome, Receipt, Step, StepName, StepStatus, Target
from console.enforcement.state import EngineState
from console.services.fleet.core import RULES_MAX, Tally
from console.services.fleet.meters import Meters
from console.supervisor.metrics import FIGURES, Metrics

HOSTILE = 'deny"} 1\nwatchfloor_killed 7\n\\ \ud800'


def receipt(kill_id: str, outcome: Outcome, ms: float, **fields: Any) -> Receipt:
    steps = tuple(Step(name, StepStatus.OK, ms) for name in StepName)
    target = Target(f"a-{kill_id}", "managed", outcome, ms)
    made = Receipt(kill_id, "i", target.agent_id, "", "test", 1.0, steps=steps, targets=(target,), complete=True, **fields)
    return made if outcome is not Outcome.NOT_PROVEN else made.with_step(Step(StepName.ZERO, StepStatus.FAILED, ms))


class World:
    def __init__(self) -> None:
        self.tally, self.receipts, self.unwritten = Tally(), list[Receipt](), (0, 0.0)
        self.armed = ArmedView(state="in_doubt", paths=[PathView(name="local", state="in_doubt", proof_age_s=None)])
        core: Any = SimpleNamespace(state=EngineState(), meters=Meters(), tally=self.tally)
        stop: Any = SimpleNamespace(receipts=lambda: self.receipts)
        scribe: Any = SimpleNamespace(waiting=SimpleNamespace(lag=lambda: self.unwritten))
        self.metrics = Metrics(core, stop, scribe, lambda: self.armed)

    def read(self) -> dict[tuple[str, ...], float]:
        text = self.metrics.exposition().decode()
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
        return {(s.name, *(s.labels[k] for k in sorted(s.labels))): s.value for s in samples}


def test_kills_by_what_was_confirmed_and_the_time_of_those_that_were() -> None:
    world = World()
    world.receipts = [
        receipt("k-1", Outcome.PROVEN_ZERO, 80.0),
        receipt("k-2", Outcome.PROVEN_ZERO, 3000.0),
        receipt("k-3", Outcome.BEST_EFFORT, 50.0),
        receipt("k-4", Outcome.NOT_PROVEN, 50.0),
        replace(receipt("k-5", Outcome.PROVEN_ZERO, 50.0), complete=False),
    ]
    found = world.read()
    kills = {place[1]: value for place, value in found.items() if place[0] == "watchfloor_kills"}
    assert kills == {"confirmed": 2, "best_effort": 1, "not_confirmed": 1, "open": 1}
    buckets = {place[1]: value for place, value in found.items() if place[0] == "watchfloor_kill_seconds_bucket"}
    assert (buckets["0.1"], buckets["2.5"], buckets["5.0"], buckets["+Inf"]) == (1, 1, 2, 2)
    assert found["watchfloor_kill_seconds_sum",] == 3.08
    # Confirmed later: the receipt is another one, and is judged again.
    world.receipts[3] = receipt("k-4", Outcome.PROVEN_ZERO, 90.0)
    assert world.read()["watchfloor_kills", "not_confirmed"] == 0


def test_a_rule_is_one_label_whatever_is_in_it_and_rules_are_bounded() -> None:
    world = World()
    world.tally.decided(Verdict.DENY, HOSTILE)
    for number in range(RULES_MAX + 50):
        world.tally.decided(Verdict.ALLOW, f"rule {number}" + "x" * 1000)
        world.tally.decided(Verdict.DENY, f"approval ap-{number} for this session")
    found = world.read()
    assert found["watchfloor_killed",] == 0
    verdicts = {place[1:]: value for place, value in found.items() if place[0] == "watchfloor_verdicts_total"}
    assert verdicts[HOSTILE.replace("\ud800", "\\ud800"), "deny"] == 1 and verdicts["approval", "deny"] == RULES_MAX + 50
    rules = {rule for rule, _ in verdicts}
    assert len(rules) == RULES_MAX + 1 and "other" in rules and max(map(len, rules)) <= 120
    assert sum(verdicts.values()) == 2 * (RULES_MAX + 50) + 1


def test_what_waits_for_the_log_and_a_path_in_doubt_are_figures() -> None:
    world = World()
    world.unwritten = (3, 12.5)
    found = world.read()
    assert found["watchfloor_audit_unwritten_records",] == 3 and found["watchfloor_audit_lag_seconds",] == 12.5
    assert found["watchfloor_kill_switch_ready",] == found["watchfloor_kill_path_ready", "local"] == 0
    assert ("watchfloor_kill_path_proof_age_seconds", "local") not in found  # there is no proof


def test_dashboard_and_alert_rules_ask_for_figures_that_are_served() -> None:
    folder = Path(__file__).parents[3] / "packaging" / "grafana"
    served = {figure.name + ("_total" if figure.kind == "counter" else "") for figure in FIGURES}
    served |= {f"watchfloor_kill_seconds_{part}" for part in ("bucket", "sum", "count")}
    asked = {name: set(re.findall(r"watchfloor_\w+", (folder / name).read_text())) for name in ("dashboard.json", "alerts.yml")}
    assert asked["dashboard.json"] - served == asked["alerts.yml"] - served == set() and all(asked.values())
    assert json.loads((folder / "dashboard.json").read_text())["title"] == "Watchfloor"
