"""GET /metrics: what the supervisor holds anyway, as figures in the Prometheus text format. What is not known has no sample.

No label holds an agent's id, name or folder. Labels are closed sets, but for the names of rules, of which a bounded number is counted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from console.api import endpoints as ep
from console.api.armed import ArmedView
from console.domain.agent import Agent
from console.domain.budget import GAUGES, LIMIT_NAMES, UNCAPPED, last_midnight
from console.domain.calls.approval import ApprovalState
from console.domain.errors import ExitCode
from console.domain.kill import Receipt
from console.domain.verdict import verdict
from console.enforcement import charging
from console.enforcement.identity import LEAST, cost_unknown
from console.enforcement.state import EngineState
from console.services.fleet.core import Core
from console.services.records.record_writer import Scribe
from console.services.routes.responses import Handlers
from console.services.stop.service import StopDesk
from console.sources.kinds import KINDS, TRANSCRIPTS

_KINDS = frozenset(one.source for one in TRANSCRIPTS) | {one.name for one in KINDS}
_PLACES = ("watchfloor", *LEAST)
_BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_RESULTS = ("confirmed", "best_effort", "not_confirmed", "open")
Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Moment:
    """What is read once for all figures."""

    at: float
    """Seconds since the epoch."""
    core: Core
    armed: ArmedView
    kills: list[Kill]
    unwritten: tuple[int, float]
    """Records that wait for the audit log, and seconds since the oldest of them was handed over."""

    @property
    def state(self) -> EngineState:
        """The engine's."""
        return self.core.state

    @property
    def approvals(self) -> list[float]:
        """Since when each waits, in seconds since the epoch."""
        return [one.asked_at for one in self.state.approvals.by_id.values() if one.state is ApprovalState.WAITING]

    def is_unknown(self, agent: Agent) -> bool:
        """Whether it is not known what it spent."""
        return bool(cost_unknown(agent, self.state.seen.get(agent.agent_id), self.state.budget.metered))

    def unknown_cost(self) -> list[Agent]:
        """Agents of today of which it is not known what they spent."""
        midnight = last_midnight(self.at)
        today = (one for one in self.state.agents.values() if one.ended_at is None or one.ended_at >= midnight)
        return [one for one in today if self.is_unknown(one)]


class Kill(NamedTuple):
    """One receipt as a figure."""

    receipt: Receipt
    result: str
    seconds: float | None
    """From the press to the last proof; None: not confirmed."""


class Figure(NamedTuple):
    """One line of the table: what is served under which name."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[Moment], Iterable[Sample]]


def _one(value: float) -> list[Sample]:
    return [((), value)]


def _kind(agent: Agent, state: EngineState) -> str:
    """The kind that a source saw, else where the agent is from; never a text of its own."""
    seen = state.seen.get(agent.agent_id)
    told = (agent.source, *(seen.sources if seen is not None else ()))
    return next((one for one in told if one in _KINDS), agent.source if agent.source in _PLACES else "other")


def _agents(now: Moment) -> Iterable[Sample]:
    live = (now.state.agents[i] for i in now.state.live)
    return Counter((one.state.value, _kind(one, now.state)) for one in live).items()


def _spent(now: Moment) -> Iterable[Sample]:
    """A sum of zero beside agents that nothing measures is not known."""
    spent = now.core.meters.spent_today(now.at)
    return _one(spent) if spent > 0 or not now.unknown_cost() else []


def _burn(now: Moment) -> Iterable[Sample]:
    rate = now.core.meters.rate(now.at, now.state.spending)
    return _one(rate) if rate > 0 or not any(one.state.is_live for one in now.unknown_cost()) else []


def _limits(now: Moment) -> Iterable[Sample]:
    """Of each scope and limit the largest share that is used of any; without those whose use is not known."""
    state, most = now.state, dict[tuple[str, ...], float]()
    for agent in (state.agents[i] for i in state.live):
        is_unknown = now.is_unknown(agent)
        for node in charging.nodes_of(state, agent):
            if (limits := charging.limits_at(state, node)) == UNCAPPED:
                continue
            usage = charging.usage_at(state, node)
            for name in LIMIT_NAMES:
                cap, used = getattr(limits, name), getattr(agent.usage if name in GAUGES else usage, name)
                if cap is not None and (used or not (is_unknown and name in ("cost_usd", "tokens"))):
                    place = (node[0], name)
                    most[place] = max(most.get(place, 0.0), used / cap if cap > 0 else 1.0)
    return most.items()


def _oldest(now: Moment) -> Iterable[Sample]:
    return _one(max(0.0, now.at - min(waiting))) if (waiting := now.approvals) else []


def _kills(now: Moment) -> Iterable[Sample]:
    found = Counter(one.result for one in now.kills)
    return [((result,), found[result]) for result in _RESULTS]


def _ready(now: Moment) -> Iterable[Sample]:
    """While killed nothing is tested, so nothing is known."""
    return _one(now.armed.state == "armed") if now.armed.state != "killed" else []


def _paths(now: Moment) -> Iterable[Sample]:
    return [((one.name,), one.state == "proven") for one in now.armed.paths if one.state in ("proven", "in_doubt")]


def _ages(now: Moment) -> Iterable[Sample]:
    return [((one.name,), one.proof_age_s) for one in now.armed.paths if one.proof_age_s is not None]


FIGURES = (
    Figure("watchfloor_agents", "gauge", "Agents that may still run.", ("state", "kind"), _agents),
    Figure("watchfloor_agents_live", "gauge", "Agents that may still run, all of them.", (), lambda x: _one(len(x.state.live))),
    Figure("watchfloor_spend_today_usd", "gauge", "Known spend since local midnight; a lower bound while any is unknown.", (), _spent),
    Figure("watchfloor_spend_unknown_agents", "gauge", "Agents of today with unknown spend.", (), lambda x: _one(len(x.unknown_cost()))),
    Figure("watchfloor_burn_usd_per_hour", "gauge", "Known spend per hour, over the last 5 minutes.", (), _burn),
    Figure("watchfloor_limit_used_ratio", "gauge", "Largest used share of any such limit; 1 is reached.", ("scope", "limit"), _limits),
    Figure(
        "watchfloor_halted_agents",
        "counter",
        "Agents that a limit halted since the supervisor started.",
        ("scope", "limit"),
        lambda x: x.core.tally.halted.items(),
    ),
    Figure("watchfloor_approvals_waiting", "gauge", "Requests that wait for a person.", (), lambda x: _one(len(x.approvals))),
    Figure("watchfloor_approval_oldest_seconds", "gauge", "How long the oldest of them has waited.", (), _oldest),
    Figure(
        "watchfloor_verdicts",
        "counter",
        "Tool calls that were allowed, denied, or put before a person, by rule, since the supervisor started.",
        ("verdict", "rule"),
        lambda x: x.core.tally.verdicts.items(),
    ),
    Figure("watchfloor_kills", "gauge", "Kills with a receipt on this host, by what was confirmed.", ("result",), _kills),
    Figure("watchfloor_killed", "gauge", "1: new agents are blocked until a rearm.", (), lambda x: _one(x.state.killed)),
    Figure("watchfloor_kill_switch_ready", "gauge", "1: this host can be stopped now, by proof. None while killed.", (), _ready),
    Figure("watchfloor_kill_path_ready", "gauge", "1: this way to stop it is proven.", ("path",), _paths),
    Figure("watchfloor_kill_path_proof_age_seconds", "gauge", "Seconds since that proof.", ("path",), _ages),
    Figure("watchfloor_audit_unwritten_records", "gauge", "Records that wait for the audit log.", (), lambda x: _one(x.unwritten[0])),
    Figure("watchfloor_audit_lag_seconds", "gauge", "How long the oldest of them has waited.", (), lambda x: _one(x.unwritten[1])),
)
"""All of them but for the time to zero, which is a histogram."""


class Metrics(Collector):
    """The current figures, as text. On the loop's thread; nothing here asks a disk, the guard or an engine."""

    def __init__(self, core: Core, stop: StopDesk, scribe: Scribe, armed: Callable[[], ArmedView]) -> None:
        self._core, self._stop, self._scribe, self._armed = core, stop, scribe, armed
        self._kills: dict[str, Kill] = {}
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def exposition(self) -> bytes:
        """The text that Prometheus reads. Label values are escaped by the library."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """One look, as metrics."""
        now = Moment(time.time(), self._core, self._armed(), self._judged(), self._scribe.waiting.lag())
        for figure in FIGURES:
            made = Metric(figure.name, figure.help, figure.kind)
            suffix = "_total" if figure.kind == "counter" else ""
            for values, value in figure.read(now):
                made.add_sample(figure.name + suffix, dict(zip(figure.labels, values, strict=True)), float(value))
            yield made
        yield _to_zero([one.seconds for one in now.kills if one.seconds is not None])

    def _judged(self) -> list[Kill]:
        """Every receipt, judged once for as long as it stays the same."""
        had, self._kills = self._kills, {}
        for receipt in self._stop.receipts():
            kept = had.get(receipt.kill_id)
            self._kills[receipt.kill_id] = kept if kept is not None and kept.receipt is receipt else _as_kill(receipt)
        return list(self._kills.values())


def _as_kill(receipt: Receipt) -> Kill:
    if not receipt.complete:
        return Kill(receipt, "open", None)
    found = verdict(receipt)
    if found.is_confirmed:
        ms = receipt.proven_ms
        return Kill(receipt, "confirmed", None if ms is None else ms / 1000)
    return Kill(receipt, "best_effort" if found.exit_code is ExitCode.BEST_EFFORT else "not_confirmed", None)


def _to_zero(seconds: list[float]) -> Metric:
    words = "Time from the start of a kill to its last confirmation, for kills that were confirmed dead."
    made = HistogramMetricFamily("watchfloor_kill_seconds", words)
    buckets = [(str(most), float(sum(one <= most for one in seconds))) for most in _BUCKETS_S]
    made.add_metric([], [*buckets, ("+Inf", float(len(seconds)))], sum(seconds))
    return made


def metrics_routes(metrics: Metrics) -> Handlers:
    """GET /metrics, for operators."""

    async def served(_request: Request) -> Response:
        return Response(metrics.exposition(), headers={"content-type": CONTENT_TYPE_LATEST})

    return {ep.METRICS: served}
