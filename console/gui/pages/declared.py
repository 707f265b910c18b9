"""What each page is called and what can be done on it, without the page: navigation, palette and keys need no more.

A page is loaded when it is first asked for: see ``registry``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from console.gui.actions import ActionSpec

Reach = Literal["agent", "tree", "session", "host"]
Action = Literal["freeze", "isolate", "kill", "thaw", "reconnect"]
ACTIONS: tuple[Action, ...] = get_args(Action)
VERBS: dict[str, str] = {"freeze": "Freeze", "thaw": "Resume", "isolate": "Isolate", "reconnect": "Reconnect", "kill": "Kill"}
REACHES: dict[Reach, str] = {
    "agent": "this agent alone",
    "tree": "this agent and all below it",
    "session": "its session",
    "host": "everything on this host",
}
FLEET_RUNGS: dict[str, tuple[Action, Reach]] = {f"fleet.{action}-{reach}": (action, reach) for reach in REACHES for action in ACTIONS}
"""Every way to stop over every reach, from the selected agent."""


@dataclass(frozen=True, slots=True)
class PageSpec:
    """How the navigation shows a page, and its actions."""

    name: str
    title: str
    icon: str
    """A file of resources/icons without its ending."""
    group: str
    """Operate, Investigate, Emergency or Set up; empty: reached from elsewhere, not in the navigation."""
    help: str = ""
    """Its document for F1, and a heading in it: ``how-to/operator.md#Watch``."""
    under: str = ""
    """For a page outside the navigation: the page whose item is marked while it is in front."""
    verbs: tuple[ActionSpec, ...] = ()
    """What can be done on it; the key of an action works only while the page is in front."""


FLEET = PageSpec(
    "fleet",
    "Fleet",
    "fleet",
    "Operate",
    help="how-to/operator.md#Watch",
    verbs=(
        ActionSpec("fleet.move", "Move in the list", "", "move", cap="↑ ↓"),
        ActionSpec("fleet.fold", "Fold and unfold a tree", "", "fold", cap="← →"),
        ActionSpec("fleet.detail", "Show or hide the detail pane", "", "detail", cap="Enter"),
        ActionSpec("fleet.activity", "Open what this agent did, live", "A", "activity"),
        ActionSpec("fleet.pause", "Freeze or resume this agent and all below it…", "P", "freeze…"),
        ActionSpec("fleet.stop-tree", "Kill this agent and all below it…", "X", "kill tree…"),
        ActionSpec("fleet.isolate", "Isolate or reconnect this agent and all below it…", "I", "isolate…"),
        ActionSpec("fleet.ladder", "Freeze, isolate, kill: choose the scope…", "M", "stop…"),
        ActionSpec("fleet.run", "New agent…", "N", "new agent…"),
        ActionSpec("fleet.urgent", "Attention first, or as they came", "T", ""),
        ActionSpec("fleet.seen", "Mark what was halted, failed or lost as seen", "S", ""),
        ActionSpec("fleet.arrange", "Arrange the list again", "R", ""),
        ActionSpec("fleet.data", "Register private data in this agent's session…", "D"),
        ActionSpec("fleet.adopt", "Adopt this agent, which was only seen…", "U"),
        ActionSpec("fleet.verdicts", "Go to the decisions on this agent's calls", "V", ""),
        ActionSpec("fleet.hook", "Show what installing the hook would change…", "H", ""),
        ActionSpec("fleet.setup", "Set up Watchfloor again: programs, rules, limit, test…", "", ""),
        ActionSpec("fleet.switch", "Show the kill switch", "K", ""),
        ActionSpec("fleet.filter", "Filter this list", "/", ""),
        *(ActionSpec(rung, f"{VERBS[action]} {REACHES[reach]}…") for rung, (action, reach) in FLEET_RUNGS.items()),
    ),
)
APPROVALS = PageSpec(
    "approvals",
    "Approvals",
    "approvals",
    "Operate",
    help="tutorial/first-approval.md",
    verbs=(
        ActionSpec("approvals.move", "Move in the list", "", "next request", cap="↑ ↓"),
        ActionSpec("approvals.once", "Approve once: exactly what is shown, one time", "A", "once"),
        ActionSpec("approvals.session", "Approve for this session, until it is taken back", "S", "session"),
        ActionSpec("approvals.deny", "Deny; several selected requests together (a standing approval: take back…)", "D", "deny"),
        ActionSpec("approvals.reason", "Deny… with a reason", "N", "deny, reason"),
        ActionSpec("approvals.confirm", "Approve what is dangerous: the second key after A or S", "Y", ""),
        ActionSpec("approvals.undo", "Take back the answer that is held", "Z", ""),
        ActionSpec("approvals.rule", "Make a rule of it…", "R", "rule"),
        ActionSpec("approvals.exact", "Make a rule for exactly this approved call, for 30 days…", "X", ""),
        ActionSpec("approvals.explain", "Explain: every part of the call", "E", "explain"),
        ActionSpec("approvals.group", "Open or close a group of similar requests", "G", "open group"),
        ActionSpec("approvals.tab", "Waiting, decided, given to sessions", "W", ""),
        ActionSpec("approvals.agent", "Show the agent in the fleet", "J", ""),
        ActionSpec("approvals.detail", "Show or hide the detail", "", "", cap="Enter"),
        ActionSpec("approvals.filter", "Filter the requests", "/", ""),
    ),
)
POLICY = PageSpec(
    "policy",
    "Policy",
    "shield",
    "Operate",
    help="reference/policy.md",
    verbs=(
        ActionSpec("policy.move", "Move in the list", "", "move", cap="↑ ↓"),
        ActionSpec("policy.detail", "Show or hide the detail pane", "", "detail", cap="Enter"),
        ActionSpec("policy.rules", "The rules in force", "R", "rules"),
        ActionSpec("policy.profiles", "Compare and choose profiles", "P", "profiles"),
        ActionSpec("policy.lint", "What the lint found", "L", "lint"),
        ActionSpec("policy.explain", "Explain a call: each part, rule and step", "E", "explain"),
        ActionSpec("policy.matrix", "Tools, actions and scopes", "M", "matrix"),
        ActionSpec("policy.sequences", "Forbidden sequences and the steps that stand", "S", "sequences"),
        ActionSpec("policy.backtest", "Change rules: tried on recorded calls first", "B", "backtest"),
        ActionSpec("policy.save", "Put what was tried in force…", "Ctrl+S"),
        ActionSpec("policy.remove", "Remove a rule that was made of an approval…", "X", ""),
        ActionSpec("policy.agent", "Show the agent in the fleet", "J", ""),
        ActionSpec("policy.filter", "Filter this list", "/", ""),
    ),
)
NETWORK = PageSpec(
    "network",
    "Network",
    "network",
    "Operate",
    help="how-to/operator.md#Allow a host",
    verbs=(
        ActionSpec("network.move", "Move in the list", "", "move", cap="↑ ↓"),
        ActionSpec("network.edit", "Edit the selected entry", "", "edit", cap="Enter"),
        ActionSpec("network.new", "New allowlist entry…", "N", "new entry"),
        ActionSpec("network.allow", "Allow the selected blocked request…", "A", "allow this…"),
        ActionSpec("network.save", "Save the draft, validated by Envoy", "Ctrl+S", "save"),
        ActionSpec("network.remove", "Remove the selected entry…", "Del"),
        ActionSpec("network.discard", "Discard the draft, close the drawer", "", "", cap="Esc"),
        ActionSpec("network.test", "Test a URL", "T", "test a URL"),
        ActionSpec("network.filter", "Filter this list", "/", ""),
        ActionSpec("network.sandboxes", "Show the sandboxes or the allowlist", "S", "sandboxes"),
        ActionSpec("network.stricter", "Switch the selected sandbox to a stricter mode…", "R"),
        ActionSpec("network.data", "Register private data in the selected sandbox's session…", "D"),
        ActionSpec("network.history", "Show the versions of the allowlist", "H", "history"),
        ActionSpec("network.back", "Go back to the selected version…"),
        ActionSpec("network.config", "Show Envoy's configuration or the allowlist", "V", ""),
        ActionSpec("network.follow", "Follow the newest request", "L", ""),
    ),
)
BUDGETS = PageSpec(
    "budgets",
    "Budgets",
    "budgets",
    "Operate",
    help="how-to/budgets.md",
    verbs=(
        ActionSpec("budgets.move", "Move in the list", "", "move", cap="↑ ↓"),
        ActionSpec("budgets.fold", "Fold and unfold a tree", "", "fold", cap="← →"),
        ActionSpec("budgets.limits", "Change limits…", "L", "change limits"),
        ActionSpec("budgets.forecast", "Forecast: what ends when", "F", "forecast"),
        ActionSpec("budgets.pause", "Freeze or resume this agent and all below it…", "P", "freeze…"),
        ActionSpec("budgets.stop-tree", "Kill this agent and all below it…", "X", "kill tree"),
        ActionSpec("budgets.detail", "Show or hide the detail pane", "", "", cap="Enter"),
        ActionSpec("budgets.pictures", "Show the pictures alone, or the list again", "C", "pictures"),
        ActionSpec("budgets.order", "Next order of the list", "O", ""),
        ActionSpec("budgets.arrange", "Arrange the list again", "R", ""),
        ActionSpec("budgets.fleet", "Open this agent in the fleet", "G", ""),
        ActionSpec("budgets.filter", "Filter this list", "/", ""),
    ),
)
ROLLBACK = PageSpec(
    "rollback",
    "Rollback",
    "rollback",
    "Investigate",
    help="how-to/auditor.md#Files that agents changed",
    verbs=(
        ActionSpec("rollback.move", "Move in the list", "", "record", cap="↑ ↓"),
        ActionSpec("rollback.fold", "Fold and unfold an agent", "", "", cap="← →"),
        ActionSpec("rollback.select", "Select this record for a restore", "", "select", cap="Space"),
        ActionSpec("rollback.restore", "Restore… what is selected", "R", "restore…"),
        ActionSpec("rollback.audit", "Open its record in the audit", "O", "open record in audit"),
        ActionSpec("rollback.detail", "Show or hide the detail", "", "", cap="Enter"),
        ActionSpec("rollback.filter", "Filter the records", "/", ""),
    ),
)
AUDIT = PageSpec(
    "audit",
    "Audit",
    "audit",
    "Investigate",
    help="how-to/auditor.md",
    verbs=(
        ActionSpec("audit.move", "Move in the list", "", "record", cap="↑ ↓"),
        ActionSpec("audit.newest", "Go to the newest record", "Home", "newest"),
        ActionSpec("audit.filter", "Filter the records", "/", "filter"),
        ActionSpec("audit.copy", "Copy the record as JSON", "C", "copy JSON"),
        ActionSpec("audit.agent", "Jump to the record's agent", "J", "jump to agent"),
        ActionSpec("audit.verify", "Verify the whole chain", "V", "verify"),
        ActionSpec("audit.rollback", "Open the record's rollback", "O", ""),
        ActionSpec("audit.acknowledge", "Acknowledge the loss of records", "A", ""),
        ActionSpec("audit.bad", "Go to the first bad record", "B", ""),
        ActionSpec("audit.detail", "Show or hide the detail pane", "", "", cap="Enter"),
    ),
)
KILL_SWITCH = PageSpec(
    "kill-switch",
    "Kill switch",
    "kill",
    "Emergency",
    help="explanation/armed-light.md",
    verbs=(
        ActionSpec("switch.freeze", "Freeze over the chosen scope…", "F", "freeze…"),
        ActionSpec("switch.thaw", "Resume what an operator froze in the chosen scope…", "W", "resume…"),
        ActionSpec("switch.isolate", "Isolate over the chosen scope…", "I", "isolate…"),
        ActionSpec("switch.reconnect", "Reconnect what is isolated in the chosen scope…", "C"),
        ActionSpec("switch.kill", "Kill the chosen scope; new agents can still start…", "K", "kill…"),
        ActionSpec("switch.receipt", "Open the selected receipt", "", "receipt", cap="Enter"),
        ActionSpec("switch.rearm", "Rearm…", "R", "rearm…"),
        ActionSpec("switch.passphrase", "Set the passphrase for rearm…", "O", "passphrase…"),
        ActionSpec("switch.rotation", "Secrets and their rotation…", "S", "secrets…"),
        ActionSpec("switch.panic", "Unlock Panic", "", "panic", cap="Ctrl Shift ⌫"),
    ),
)
SETTINGS = PageSpec(
    "settings",
    "Settings",
    "settings",
    "Set up",
    help="how-to/settings.md",
    verbs=(
        ActionSpec("settings.move", "Move in the list", "", "setting", cap="↑ ↓"),
        ActionSpec("settings.change", "Change the setting…", "E", "change…"),
        ActionSpec("settings.reset", "Reset the setting…", "R", "reset…"),
        ActionSpec("settings.filter", "Filter the settings", "/", "filter"),
        ActionSpec("settings.detail", "Show or hide the detail pane", "", "", cap="Enter"),
    ),
)
RECEIPT = PageSpec(
    "receipt",
    "Receipt",
    "kill",
    "",
    under="kill-switch",
    help="how-to/responder.md#Read the receipt",
    verbs=(
        ActionSpec("receipt.move", "Move in the targets", "", "move", cap="↑ ↓"),
        ActionSpec("receipt.side", "Show or hide the side pane", "", "details", cap="Enter"),
        ActionSpec("receipt.back-list", "What could bring an agent back", "B", "could come back"),
        ActionSpec("receipt.suspects", "Kill suspects of this kill…", "S", "suspects…"),
        ActionSpec("receipt.copy", "Copy the receipt as JSON", "C", "copy JSON"),
        ActionSpec("receipt.rearm", "Rearm…", "R", "rearm…"),
        ActionSpec("receipt.back", "Back to the kill switch", "Backspace", "kill switch"),
    ),
)
ACTIVITY = PageSpec(
    "activity",
    "Activity",
    "list",
    "",
    under="fleet",
    help="how-to/programs.md#In the console",
    verbs=(
        ActionSpec("activity.move", "Move in the feed", "", "entry", cap="↑ ↓"),
        ActionSpec("activity.newest", "Go to the newest entry and follow", "End", "follow"),
        ActionSpec("activity.filter", "Search this agent's activity", "/", "search"),
        ActionSpec("activity.back", "Show the agent in the fleet", "Backspace", "fleet"),
        ActionSpec("activity.agent", "Jump to the agent that was started", "J", "jump to agent"),
        ActionSpec("activity.open", "Open the activity of the agent that was started", "A", ""),
        ActionSpec("activity.audit", "Open the audit record", "O", "audit record"),
        ActionSpec("activity.rollback", "Open the rollback record of the file", "U", "undo"),
        ActionSpec("activity.output", "Show what its program wrote", "W", "output"),
        ActionSpec("activity.say", "Write to this agent", "S", "write to it"),
        ActionSpec("activity.interrupt", "Interrupt this agent's present turn", "I"),
        ActionSpec("activity.copy", "Copy the entry as it is shown", "C", "copy"),
        ActionSpec("activity.detail", "Show or hide the detail pane", "", "", cap="Enter"),
    ),
)
