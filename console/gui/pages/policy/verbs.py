"""What can be done on the policy page, as data."""

from __future__ import annotations

from console.gui.actions import ActionSpec

VERBS = (
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
)
