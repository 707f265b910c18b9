"""The table of verbs: where the function of each is, its group, and its line in ``--help``. Imports nothing, so that it is read at once."""

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "fleet": ("fleet:fleet", "List agents as trees: cost, limits, network, state."),
        "activity": ("activity:activity", "Show what an agent did, live."),
        "status": ("switch:status", "Tell whether this host can be stopped, and how fast."),
        "cost": ("cost:cost", "Add up what agents spent, by their own transcripts."),
        "agent": ("agent", "Show one agent; judge and plan its calls only."),
        "agent-type": ("agent-type", "Show what each agent type has, and is seen by."),
        "sandbox": ("sandbox", "Show what an agent's sandbox is made of."),
        "doctor": ("machinery:doctor", "Tell what this machine can do and what is missing."),
    },
    "Start and talk": {
        "run": ("launch:verb", "Launch an agent."),
        "say": ("talk:say", "Tell a started program something."),
        "interrupt": ("talk:interrupt", "End what a started program is doing; it stays."),
        "finish": ("talk:finish", "Tell a started program that no more comes, and wait."),
        "adopt": ("adopt:adopt", "Take over an agent that was only seen."),
    },
    "Stop": {
        "panic": ("panic:panic", "Kill everything at once, and print the receipt."),
        "panic-button": ("windows:panic_button", "Raise the panic window."),
        "kill": ("act:kill", "Kill an agent, a tree, a session or a host."),
        "freeze": ("act:freeze", "Stop it so that nothing is lost; thaw undoes it."),
        "thaw": ("act:thaw", "Undo your freeze."),
        "isolate": ("act:isolate", "Cut off its network; reconnect undoes it."),
        "reconnect": ("act:reconnect", "Undo your isolation."),
        "receipt": ("receipt:app", "Show and verify receipts of kills."),
        "rearm": ("rearm:rearm", "Release a local kill; nothing is restored."),
    },
    "Limit and allow": {
        "approval": ("approvals:app", "See what waits for a person; approve or deny it."),
        "budget": ("budget:app", "Set limits of agents, trees, sessions, projects, days."),
        "network": ("network:app", "See what agents may reach; make it stricter."),
        "allowlist": ("allowlist:app", "Edit the destinations of agents in PROXIED mode."),
        "policy": ("policy:app", "Check, explain and edit the rules."),
        "mcp": ("mcp:app", "List MCP servers and tools that agents called."),
        "hook": ("hook:hook", "Check one tool call (run by the program's hook)."),
        "install-hook": ("machinery:install_hook", "Put a program's tool calls before Watchfloor."),
    },
    "Records": {
        "audit": ("audit:app", "Read, verify and export the log."),
        "rollback": ("rollback:app", "List and restore files that agents changed."),
        "session": ("session", "Keep, delete or classify sessions."),
        "secrets": ("secrets", "Replace secrets; manage keys and the passphrase."),
        "logs": ("config:logs", "Print the newest lines of Watchfloor's own logs."),
    },
    "Program": {
        "remote": ("remote", "Watch for remote kill orders, and release them."),
        "config": ("config:config", "Show each setting, its value and its default."),
        "open": ("windows:open_page", "Open the window on one of its pages."),
        "supervisor": ("windows:supervisor", "Run the daemon in the foreground."),
        "demo": ("demo_verb:demo", "Watch, limit and stop a real fleet of its own."),
        "screenshot": ("windows:screenshot", "Render a page of the window to a PNG."),
        "completion": ("completion:completion", "Print what completes verbs and options in a shell."),
    },
}
"""Of each group its verbs; of each verb ``module:name`` below ``console.cli``, or noun of ``NOUNS``, and its line (55 letters at most)."""

WORDS = "See every AI agent live, limit it, and stop it with proof. Without a verb: open the window."
OPTIONS = [
    ("--state-dir DIR", "State directory of the instance (or $WATCHFLOOR_STATE_DIR)."),
    ("--version", "Print the version."),
    ("-h, --help", "Show this message and exit."),
]
NOUNS: dict[str, tuple[str, dict[str, str]]] = {
    "agent": (
        "One agent: what it is, and what it would do.",
        {"show": "fleet:show_agent", "dry-run": "dry_run:dry_run", "plan": "dry_run:plan"},
    ),
    "agent-type": ("Agent types: what each has and is seen by.", {"list": "sources:sources"}),
    "sandbox": ("Sandboxes of agents.", {"show": "sources:hardening"}),
    "session": (
        "Sessions' workspaces: what they hold, how long they stay, what is kept as evidence, and how sensitive they are.",
        {
            "list": "session:list_sessions",
            "show": "session:show",
            "hold": "session:hold",
            "delete": "session:delete",
            "classify": "network:classify",
        },
    ),
    "secrets": (
        "Secrets, signing keys and the passphrase that a rearm takes.",
        {
            "rotation": "secrets:rotation_app",
            "revoke": "secrets:revoke",
            "keys": "machinery:keys_app",
            "passphrase": "passphrase:app",
        },
    ),
    "remote": ("Remote kill orders.", {"watch": "watch:watch", "release": "machinery:release"}),
}
"""Nouns whose verbs lie in several modules: what each is about, and of each verb ``module:name``."""
VERBS = {name: where for group in GROUPS.values() for name, (where, _) in group.items()}
