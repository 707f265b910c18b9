"""The words of a rung of the ladder: its question, what a preview says line by line, and how the outcome is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from console.api.agents.adopt import CandidatesView
from console.api.ladder import LadderAgent, LadderPreview, ScopeBody
from console.api.messages import ActView
from console.domain.ladder import count_age
from console.gui.models.fleet import Fleet, Row
from console.gui.pages.declared import ACTIONS, VERBS, Reach
from console.gui.widgets.facts import Fact
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import plural

DAEMONS = 5
"""Daemons, and sessions of each, that the question names."""

DONE = {"freeze": "frozen", "thaw": "resumed", "isolate": "cut off the network", "reconnect": "reconnected", "kill": "killed"}
MEANS = {
    "freeze": "Nothing of it runs and nothing is lost, until it is resumed.",
    "thaw": "What an operator froze runs on. What a budget or a rule froze stays frozen.",
    "isolate": "It reaches nothing any more and open connections are cut, until it is reconnected. Files and computation go on.",
    "reconnect": "Back to what its session allows, no more.",
    "kill": "Stops now. Cannot be undone. Unsaved work is lost; files and logs are kept.",
}
_ORDER = ("contained", "managed", "adopted", "observed")
_NAMED = 5
"""Agents of a session or host that the question names."""
_WHYS = 4
"""Reasons shown of each kind; the counts are whole."""


def scope_words(scope: ScopeBody, fleet: Fleet) -> str:
    """``refund-drafter and 3 agents below it``, ``session ctx-1``, ``3 agents and all below them``, ``everything on this host``."""
    if scope.reach in ("host", "all"):
        return "everything on this host"
    if scope.others:
        number = plural(len(targets_of(scope)), "session" if scope.reach == "session" else "agent")
        return f"{number} and all below them" if scope.reach == "tree" else number
    if scope.reach == "session":
        return f"session {scope.target}"
    row = fleet.rows.get(scope.target)
    name = row.name if row is not None else safe_text(scope.target, 80)
    below = sum(1 for one in fleet.tree(scope.target) if one.is_live and one.id != scope.target) if scope.reach == "tree" else 0
    return f"{name} and {plural(below, 'agent')} below it" if below > 0 else name


def target_words(scope: ScopeBody, fleet: Fleet, host: str) -> str:
    """The target in full, so that two agents of one name are told apart: ids, session, process, folder, host."""
    at = f"host {host}" if host else "this host"
    if scope.reach in ("agent", "tree"):
        row = fleet.rows.get(scope.target)
        view = row.view if row is not None else None
        parts = [f"Agent {scope.target}"]
        if view is not None:
            parts += [f"session {view.session}"] if view.session else []
            parts += [f"process {view.pid}"] if view.pid else []
            parts += [f"folder {view.cwd}"] if view.cwd else []
        return " · ".join([*parts, at])
    live = [row.name for row in scope_rows(scope, fleet) if row.is_live]
    named = ", ".join(live[:_NAMED]) + (f" and {len(live) - _NAMED:,} more" if len(live) > _NAMED else "")
    return " · ".join(part for part in (plural(len(live), "agent") + (f": {named}" if named else ""), at) if part)


def targets_of(scope: ScopeBody) -> list[str]:
    """Every id that a scope names."""
    return [scope.target, *scope.others]


def scope_of(fleet: Fleet, reach: Reach, targets: Iterable[str]) -> ScopeBody:
    """What is meant, each once. An agent in the tree of another that is meant is in that one's tree already."""
    first, *others = dict.fromkeys(target[:63] for target in (_tops(fleet, list(targets)) if reach == "tree" else targets))
    return ScopeBody(reach=reach, target=first, others=others)


def _tops(fleet: Fleet, ids: list[str]) -> list[str]:
    """Those that are in the tree of no other one. Of parents in a circle, which are below each other, one is kept."""
    kept: set[str] = set()
    covered: set[str] = set()
    depths = {one: fleet.rows[one].view.depth if one in fleet.rows else 0 for one in ids}
    for top in sorted(ids, key=depths.__getitem__):  # from above, so that a tree in a tree is not walked again
        if top not in covered:
            tree = {row.id for row in fleet.tree(top)} | {top}
            kept = kept - tree | {top}
            covered |= tree
    return [one for one in ids if one in kept]


def named_targets(scope: ScopeBody, fleet: Fleet, host: str) -> list[tuple[str, str]]:
    """(what it is called, all that tells it from others) of each target."""
    each = [ScopeBody(reach=scope.reach, target=target) for target in targets_of(scope)]
    return [(scope_words(one, fleet), target_words(one, fleet, host)) for one in each]


def scope_rows(scope: ScopeBody, fleet: Fleet) -> list[Row]:
    """The rows this console knows of a scope; the supervisor decides who is meant. The fleet is passed through once."""
    targets = dict.fromkeys(targets_of(scope))
    if scope.reach == "agent":
        return [fleet.rows[target] for target in targets if target in fleet.rows]
    if scope.reach == "tree":
        return [row for target in targets for row in fleet.tree(target)]
    if scope.reach == "session":
        return [row for row in fleet.rows.values() if row.view.session in targets]
    return list(fleet.rows.values())


def refusals(rows: list[Row], *, killed: bool) -> dict[str, str]:
    """Action -> what is plain without asking; empty: the preview says."""
    live = [row for row in rows if row.is_live]
    if not live:
        return dict.fromkeys(ACTIONS, "No agent of it is live.")
    if killed:
        return {action: "" if action == "kill" else "Killed: nothing changes until you rearm." for action in ACTIONS}
    cut = any(row.view.isolated for row in live)
    frozen = any("operator" in row.view.causes for row in live)
    return {
        "freeze": "",
        "isolate": "",
        "kill": "",
        "thaw": "" if frozen else "No operator froze any of it.",
        "reconnect": "" if cut else "None of it is isolated.",
    }


def touched(preview: LadderPreview) -> int:
    """Agents it will act on, whole."""
    return count_of(preview, "certain") + count_of(preview, "best_effort")


def count_of(preview: LadderPreview, treatment: str) -> int:
    """Agents of all control levels with a treatment, whole."""
    return sum(counts.get(treatment, 0) for counts in preview.counts.values())


def button_words(action: str, preview: LadderPreview) -> str:
    """The confirm button repeats the count."""
    return f"{VERBS[action]} {plural(touched(preview), 'agent')}"


def count_lines(preview: LadderPreview) -> list[Fact]:
    """One line for each control level and treatment; what is certain first."""
    promise = "will be confirmed dead" if preview.action == "kill" else "certain"
    levels = [*_ORDER, *sorted(set(preview.counts) - set(_ORDER))]
    lines = []
    for kind, words, mark, role in (
        ("certain", promise, "check", "text2"),
        ("best_effort", "best effort, not confirmed", "triangle", "warn"),
        ("excluded", "left alone", "ring", "text2"),
    ):
        for level in levels:
            if number := preview.counts.get(level, {}).get(kind, 0):
                left = "text2" if kind == "excluded" else "text"
                lines.append(Fact(f"{plural(number, 'agent')}, {level}", words, mark, role, left_role=left, right_role=role))
    return lines


def why_lines(agents: list[LadderAgent], mark: str, role: str) -> list[Fact]:
    """Reasons with how many agents each holds for, the commonest first, and who."""
    names: dict[str, list[str]] = {}
    for agent in agents:
        names.setdefault(agent.why or "no reason was given", []).append(agent.name or agent.id)
    common = sorted(names.items(), key=lambda found: -len(found[1]))
    lines = []
    for why, who in common[:_WHYS]:
        colour = role if role == "warn" else "text"
        lines.append(Fact(why, "", mark, role, left_role=colour))
        more = f" and {len(who) - 1} more" if len(who) > 1 else ""
        lines.append(Fact(safe_text(who[0], 40) + more, "", left_role="text2", indent=True))
    if len(common) > _WHYS:
        lines.append(Fact(f"and {plural(len(common) - _WHYS, 'more reason')}", "", left_role="text2", indent=True))
    return lines


def reach_line(preview: LadderPreview) -> str:
    """Processes, containers, and who can reach anything now."""
    parts = [plural(preview.processes, "process", "processes") + (f" ({age})" if (age := count_age(preview.counted_s)) else "")]
    if preview.containers:
        parts.append(plural(preview.containers, "container"))
    parts.append(f"{plural(preview.egress, 'agent')} with network access" if preview.egress else "none has network access")
    if preview.unnamed:
        parts.append(f"{preview.unnamed:,} counted, not named here")
    return " · ".join(parts)


def way_back(preview: LadderPreview) -> str:
    """What the supervisor's sentence does not say."""
    return "New agents can still start. To block that, use Panic." if preview.action == "kill" and not preview.latches else ""


def outcome(action: str, done: ActView) -> tuple[Literal["amber", "info"], str]:
    """(level, words) of what came of it."""
    left = f" {plural(len(done.excluded), 'agent')} left alone." if done.excluded else ""
    fine = f"{plural(len(done.agents), 'agent')} {DONE[action]}."
    if not done.failed:
        return "info" if done.agents else "amber", f"{fine}{left}"
    first, why = next(iter(done.failed.items()))
    return "amber", f"{plural(len(done.failed), 'agent')} NOT {DONE[action]}: {first}: {why}. {fine}{left}"


def daemon_lines(preview: LadderPreview | CandidatesView) -> list[Fact]:
    """Each of ``daemon_words`` as a fact."""
    return [Fact(words, "", "alert", "warn", left_role="text") for words in daemon_words(preview)]


def daemon_words(preview: LadderPreview | CandidatesView) -> list[str]:
    """The programs outside that host the sessions of a kill or an adoption, and what it does about each."""
    found = []
    for one in preview.daemons[:DAEMONS]:
        others = f"; other sessions in it: {', '.join(one.other_sessions[:DAEMONS])}" if one.other_sessions else ""
        found.append(f"{one.name}, process {one.pid}: {one.plan}{others}" if one.pid else f"{one.name}: {one.plan}{others}")
    return found
