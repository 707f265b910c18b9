"""The table of verbs: where the function of each is, its group, and its line in ``--help``. Imports nothing, so that it is read at once."""

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "fleet": ("fleet:fleet", "List agents as trees: cost, limits, network, state."),
        "activity": ("activity:activity", "Show what an agent did, live."),
        "status": ("switch:status", "Tell whether this host can be stopped, and how fast."),
        "cost": ("cost:cost", "Add up what agents spent, by their own transcripts."),
        "sources": ("sources:sources", "Show what each agent type has, and is seen by."),
        "hardening": ("sources:hardening", "Show what an agent's sandbox is made of."),
        "doctor": ("machinery:doctor", "Tell what this machine can do and what is missing."),
    },
    "Start and talk": {
        "run": ("launch:verb", "Launch an agent."),
        "say": ("talk:say", "Tell a started program something."),
        "interrupt": ("talk:interrupt", "End what a started program is doing; it stays."),
        "end": ("talk:end", "Tell a started program that no more comes, and wait."),
        "adopt": ("adopt:adopt", "Take over an agent that was only seen."),
        "tools": ("tools:app", "Sign and check the tools of a session's workspace."),
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
        "revoke": ("secrets:revoke", "Revoke one agent's tokens for good."),
        "rearm": ("rearm:rearm", "Release a local kill; nothing is restored."),
        "passphrase": ("passphrase:app", "Set or reset the passphrase that a rearm takes."),
    },
    "Limit and allow": {
        "approvals": ("approvals:app", "See what waits for a person; approve or deny it."),
        "budget": ("budget:app", "Set limits of agents, trees, sessions, projects, days."),
        "network": ("network:app", "See what agents may reach; make it stricter."),
        "allowlist": ("allowlist:app", "Edit the destinations of agents in PROXIED mode."),
        "policy": ("policy:app", "Check, explain and edit the rules."),
        "dry-run": ("dry_run:dry_run", "Judge and plan an agent's calls; execute none."),
        "plan": ("dry_run:plan", "Show what an agent in dry-run would have done."),
        "mcp": ("mcp:app", "List MCP servers and tools that agents called."),
        "hook": ("hook:hook", "Judge one tool call (run by the program's hook)."),
        "install-hook": ("machinery:install_hook", "Put a program's tool calls before Watchfloor."),
    },
    "Records": {
        "audit": ("audit:app", "Read, verify and export the log."),
        "rollback": ("rollback:app", "List and restore files that agents changed."),
        "contexts": ("contexts:app", "Keep or delete the workspaces of sessions."),
        "rotation": ("secrets:rotation_app", "Replace secrets after a kill, and prove it."),
    },
    "Remote kill": {
        "watch": ("watch:watch", "Poll the remote kill file without a supervisor."),
        "release": ("machinery:release", "Sign the end of the remote kill order."),
        "keys": ("machinery:keys_app", "Make, show, rotate and retire the signing keys."),
    },
    "Program": {
        "open": ("windows:open_page", "Open the window on one of its pages."),
        "supervisor": ("windows:supervisor", "Run the daemon in the foreground."),
        "demo": ("try_out:demo", "Watch, cap and stop a real fleet of its own."),
        "screenshot": ("windows:screenshot", "Render a page of the window to a PNG."),
        "completion": ("completion:completion", "Print what completes verbs and options in a shell."),
    },
}
"""Of each group its verbs; of each verb ``module:name`` below ``console.cli``, and its line of at most 55 letters."""

WORDS = "See every AI agent live, cap it, and stop all of it with proof. Without a verb: open the console."
OPTIONS = [
    ("--state-dir DIR", "State directory of the instance (or $WATCHFLOOR_STATE_DIR)."),
    ("--version", "Print the version."),
    ("-h, --help", "Show this message and exit."),
]
VERBS = {name: where for group in GROUPS.values() for name, (where, _) in group.items()}
