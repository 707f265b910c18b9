"""What the demo claims, each judged from what was seen: held, not held, or not shown here and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from console.api import messages as m
from console.api.records import AuditVerdict
from console.cli.agents.fleet import network_words
from console.demo import fleet as demo_fleet
from console.demo import web as demo_web
from console.domain.errors import ExitCode
from console.domain.kill import Outcome, Receipt, Target, decided
from console.domain.verdict import verdict


class Verdict(Enum):
    """Unknown is never green: what could not be shown is said and changes the exit code."""

    HELD = "held"
    NOT_HELD = "NOT HELD"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True)
class Promise:
    """One claim and what came of it."""

    claim: str
    verdict: Verdict
    words: str


@dataclass(frozen=True, slots=True)
class BeforePress:
    """What was seen of the fleet before the press."""

    fleet: m.FleetView
    egress: list[m.EgressView]
    arrived: list[tuple[str, str]] | None
    """(host, path) of what truly reached a stand-in host; None: there were none."""
    no_network: str
    """Why PROXIED reach could not be shown, or empty."""
    boxes: dict[str, str]
    """Box -> agent id, or why there is none (with a blank in it)."""
    rollback: int
    refused_depth: bool


@dataclass(frozen=True, slots=True)
class AfterPress:
    """What was seen after it. Witness numbers are the demo's own look at the kernel and the engine."""

    receipt: Receipt | None
    escaper: Target | None
    """The proof for the agent that forks twice, leaves its session and clears its environment."""
    watched: int
    """Processes of agents that the demo itself found just before the press."""
    left_running: list[str]
    """Those of them that still run, and whatever else is in the instance's agent cgroups or containers."""
    other: Receipt | None
    other_left: list[str]
    remote: str
    """Why there is no other host, or empty."""
    restart_refused: str
    """What a launch after the press answered; empty: it was started."""
    audit: AuditVerdict | None


def _judge(claim: str, held: bool, good: str, bad: str) -> Promise:
    return Promise(claim, Verdict.HELD if held else Verdict.NOT_HELD, good if held else bad)


def before_press(seen: BeforePress) -> list[Promise]:
    """Trees, budget, depth, network, sandboxes, rollback."""
    by_name = {a.name: a for a in seen.fleet.agents}
    ids = {a.id for a in seen.fleet.agents if a.name in demo_fleet.ROOTS}
    deepest = max((a.depth for a in seen.fleet.agents), default=0)
    spender = by_name.get(demo_fleet.SPENDER)
    halted = spender is not None and spender.state in ("halted", "over_budget")
    spent = f"{spender.cost_usd or 0.0:.2f} USD, {spender.state_reason or spender.state}" if spender else "it never ran"
    return [
        _judge("Three trees of agents run, three deep", len(ids) == 3 and deepest == 3, f"{len(seen.fleet.agents)} agents", _roots(seen)),
        _judge("A fourth level is refused", seen.refused_depth and deepest <= 3, "spawn refused, recorded", f"deepest is {deepest}"),
        _judge(f"A budget of {demo_fleet.SPENDER_CAP_USD:.2f} USD halts its agent", halted, spent, spent),
        _reach(seen),
        *_boxes(seen),
        _judge("Every change of a file left a rollback record", seen.rollback > 0, f"{seen.rollback} records", "there is none"),
    ]


def _roots(seen: BeforePress) -> str:
    there = [a.name for a in seen.fleet.agents if a.parent_id is None]
    return f"roots: {', '.join(there) or 'none'}"


def _reach(seen: BeforePress) -> Promise:
    """Envoy's log says refused, and nothing arrived at the forbidden host, which has its own log."""
    claim = f"PROXIED reaches {demo_web.ALLOWED} and never {demo_web.FORBIDDEN}"
    if seen.no_network or seen.arrived is None:
        return Promise(claim, Verdict.NOT_SHOWN, seen.no_network or "there are no stand-in hosts")
    let = sum(1 for r in seen.egress if r.host.partition(":")[0] == demo_web.ALLOWED and r.allowed and r.status == 200)
    refused = sum(1 for r in seen.egress if r.host.partition(":")[0] == demo_web.FORBIDDEN and not r.allowed)
    leaked = [host for host, _ in seen.arrived if host == demo_web.FORBIDDEN]
    got = sum(1 for host, _ in seen.arrived if host == demo_web.ALLOWED)
    words = f"{let} let through, {refused} refused; {got} arrived at the one, {len(leaked)} at the other"
    wrongly = [r.host for r in seen.egress if r.host.partition(":")[0] == demo_web.FORBIDDEN and r.allowed]
    return _judge(claim, bool(let and refused and got) and not leaked and not wrongly, words, words)


def _boxes(seen: BeforePress) -> list[Promise]:
    by_id = {a.id: a for a in seen.fleet.agents}
    found = []
    for name, answer in seen.boxes.items():
        claim = f"A sandboxed agent runs with network {name.removeprefix('box-').upper()}"
        agent = by_id.get(answer)
        if agent is None:
            found.append(Promise(claim, Verdict.NOT_SHOWN, answer))
            continue
        mode = name.removeprefix("box-").upper()
        right = agent.network_mode == mode and agent.control_level == "contained" and agent.state in ("running", "waiting")
        right = right and (agent.network_enforced or mode == "FULL")  # FULL holds nobody back: there is nothing to enforce
        words = f"{agent.sandbox}, {agent.control_level}, {network_words(agent)}, {agent.state} {agent.state_reason}".strip()
        found.append(_judge(claim, right, words, words))
    return found


def after_press(seen: AfterPress) -> list[Promise]:
    """Zero, the demo's own witness, the other host, refusal of what comes after, the record."""
    receipt = seen.receipt
    zero = receipt is not None and verdict(receipt).verified_zero and bool(receipt.targets)
    told = "no receipt"
    if receipt is not None:
        ms = receipt.ms_total if receipt.zero.ms is None else receipt.zero.ms
        told = f"{len(receipt.targets)} targets, {len(receipt.survivors)} survivors, zero after {ms:.0f} ms"
    found = [
        _judge("One panic stops everything, and all are confirmed dead", zero, told, told),
        _escaper(seen.escaper),
        _judge(
            "Nothing runs, by the kernel's and the engine's own lists",
            not seen.left_running and seen.watched > 0,
            f"none of the {seen.watched} processes seen before, no container",
            ", ".join(seen.left_running[:5]) or "no process was seen before the panic, so nothing is known",
        ),
        _judge("Nothing starts any more", bool(seen.restart_refused), seen.restart_refused, "an agent was started after the panic"),
        _other(seen),
    ]
    audit = seen.audit
    whole = audit is not None and audit.whole and audit.records > 0
    words = "it could not be read" if audit is None else f"{audit.records} records{'' if audit.whole else f': {audit.why}'}"
    return [*found, _judge("The audit log is intact", whole, words, words)]


def _escaper(target: Target | None) -> Promise:
    claim = "What forks twice, calls setsid and clears its environment dies with its agent"
    before = target.evidence.get("pids_before") if target is not None else None
    count = len(before) if isinstance(before, list) else 0
    words = f"{count} processes before, {target.outcome.words}" if target is not None else "it was not among the targets"
    # Its init, itself, and at least two that ran away.
    return _judge(claim, target is not None and target.outcome is Outcome.PROVEN_ZERO and count >= 4, words, words)


def _other(seen: AfterPress) -> Promise:
    claim = "The other host obeyed the order in the bucket"
    if seen.remote:
        return Promise(claim, Verdict.NOT_SHOWN, seen.remote)
    other = seen.other
    if other is None:
        return Promise(claim, Verdict.NOT_HELD, "it wrote no receipt in time")
    held = bool(other.order) and verdict(other).verified_zero and bool(other.targets) and not seen.other_left
    words = f"order {other.order[:24] or 'none'}, {len(other.targets)} targets, {len(other.survivors)} survivors"
    return _judge(claim, held, words, words + ("; still running: " + ", ".join(seen.other_left[:3]) if seen.other_left else ""))


def exit_code(promises: list[Promise], receipt: Receipt | None) -> ExitCode:
    """9 without proof of zero, 1 when another promise did not hold, the kill's own code, 7 when something could not be shown, else 0.

    Connections that the receipt names, or says were not recorded, break no promise: its agents did talk to the demo's web hosts.
    """
    if receipt is not None and not receipt.complete:
        receipt = decided(receipt, "not finished in time")
    killed = ExitCode.NOT_PROVEN if receipt is None else verdict(replace(receipt, connections=(), connections_state="recorded")).exit_code
    if killed is ExitCode.NOT_PROVEN:
        return killed
    if any(p.verdict is Verdict.NOT_HELD for p in promises):
        return ExitCode.FAILURE
    if killed is ExitCode.DONE and any(p.verdict is Verdict.NOT_SHOWN for p in promises):
        return ExitCode.LATER_STEP
    return killed
