"""What can be done on the network page, as data."""

from __future__ import annotations

from console.gui.actions import ActionSpec

VERBS = (
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
)
SANDBOX_KEYS = (
    ("↑ ↓", "move"),
    ("Enter", "switch stricter…"),
    ("D", "private data…"),
    ("/", "filter"),
    ("A", "allow this…"),
    ("S", "allowlist"),
    ("H", "history"),
)
"""What the status bar shows while the sandboxes are looked at."""
