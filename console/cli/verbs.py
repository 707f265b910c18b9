"""The table of verbs: where the function of each is, its group, and its line in ``--help``. Imports nothing, so that it is read at once."""

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Look": {
        "fleet": ("agents.fleet:fleet", "List agents as trees: cost, limits, network, state."),
        "activity": ("agents.activity:activity", "Show what an agent did, live."),
        "status": ("status:status", "Tell whether this host can be stopped, and how fast."),
        "cost": ("agents.cost:cost", "Add up what agents spent, by their own transcripts."),
        "agent": ("agent", "Show one agent; judge and plan its calls only."),
        "agent-type": ("agent-type", "Show what each agent type has, and is seen by."),
        "sandbox": ("sandbox", "Show what an agent's sandbox is made of."),
        "doctor": ("oneshot:doctor", "Tell what this machine can do and what is missing."),
    },
    "Start and talk": {
        "run": ("start.run:verb", "Launch an agent."),
        "say": ("start.say:say", "Tell a started program something."),
        "interrupt": ("start.say:interrupt", "End what a started program is doing; it stays."),
        "finish": ("start.say:finish", "Tell a started program that no more comes, and wait."),
        "adopt": ("start.adopt:adopt", "Take over an agent that was only seen."),
    },
    "Stop": {
        "panic": ("stop.panic:panic", "Kill everything at once, and print the receipt."),
        "panic-button": ("windows:panic_button", "Raise the panic window."),
        "kill": ("stop.kill:kill", "Kill an agent, a tree, a session or a host."),
        "freeze": ("stop.kill:freeze", "Stop it so that nothing is lost; thaw undoes it."),
        "thaw": ("stop.kill:thaw", "Undo your freeze."),
        "isolate": ("stop.kill:isolate", "Cut off its network; reconnect undoes it."),
        "reconnect": ("stop.kill:reconnect", "Undo your isolation."),
        "receipt": ("stop.receipt:app", "Show and verify receipts of kills."),
        "rearm": ("stop.rearm:rearm", "Release a local kill; nothing is restored."),
    },
    "Limit and allow": {
        "approval": ("limits.approval:app", "See what waits for a person; approve or deny it."),
        "budget": ("limits.budget:app", "Set limits of agents, trees, sessions, projects, days."),
        "network": ("limits.network:app", "See what agents may reach; make it stricter."),
        "allowlist": ("limits.allowlist:app", "Edit the destinations of agents in PROXIED mode."),
        "policy": ("policy.check:app", "Check, explain and edit the rules."),
        "mcp": ("agents.mcp:app", "List MCP servers and tools that agents called."),
        "hook": ("hook:hook", "Check one tool call (run by the program's hook)."),
        "install-hook": ("oneshot:install_hook", "Put a program's tool calls before Watchfloor."),
        "hooks": ("oneshot:hooks_app", "List hooks of Watchfloor, and take your own out."),
    },
    "Records": {
        "audit": ("records.audit:app", "Read, verify and export the log."),
        "rollback": ("records.rollback:app", "List and restore files that agents changed."),
        "session": ("session", "Keep, delete or classify sessions."),
        "secrets": ("secrets", "Replace secrets; manage keys and the passphrase."),
        "logs": ("records.config:logs", "Print the newest lines of Watchfloor's own logs."),
    },
    "Program": {
        "remote": ("remote", "Watch for remote kill orders, and release them."),
        "webhook": ("webhook:app", "Send alerts, signed, to a URL."),
        "config": ("records.config:app", "Show and check the settings, and where each is from."),
        "open": ("windows:open_page", "Open the window on one of its pages."),
        "supervisor": ("windows:supervisor", "Run the daemon in the foreground."),
        "demo": ("console.demo.verb:demo", "Watch, limit and stop a real fleet of its own."),
        "screenshot": ("windows:screenshot", "Render a page of the window to a PNG."),
        "completion": ("completion:completion", "Print what completes verbs and options in a shell."),
    },
}
"""Of each group its verbs; of each verb ``module:name`` below ``console.cli``, or noun of ``NOUNS``, and its line (55 letters at most).

``demo`` is a room of its own above this one: its module is named from ``console`` on."""

WORDS = "See every AI agent live, limit it, and stop it with proof. Without a verb: open the window."
OPTIONS = [
    ("--state-dir DIR", "State directory of the instance (or $WATCHFLOOR_STATE_DIR)."),
    ("--no-pager", "Print long lists at once (or $WATCHFLOOR_PAGER=cat); also behind the verb."),
    ("--version", "Print the version."),
    ("-h, --help", "Show this message and exit."),
]
NOUNS: dict[str, tuple[str, dict[str, str]]] = {
    "agent": (
        "One agent: what it is, what it wrote, and what it would do.",
        {
            "show": "agents.fleet:show_agent",
            "output": "agents.output:output",
            "dry-run": "agents.dry_run:dry_run",
            "plan": "agents.dry_run:plan",
        },
    ),
    "agent-type": ("Agent types: what each has and is seen by.", {"list": "agents.agent_type:sources"}),
    "sandbox": ("Sandboxes of agents.", {"show": "agents.agent_type:hardening"}),
    "session": (
        "Sessions' workspaces: what they hold, how long they stay, what is kept as evidence, and how sensitive they are.",
        {
            "list": "records.session:list_sessions",
            "show": "records.session:show",
            "hold": "records.session:hold",
            "delete": "records.session:delete",
            "classify": "limits.network:classify",
        },
    ),
    "secrets": (
        "Secrets, signing keys and the passphrase that a rearm takes.",
        {
            "rotation": "records.secrets:rotation_app",
            "revoke": "records.secrets:revoke",
            "keys": "oneshot:keys_app",
            "passphrase": "stop.passphrase:app",
        },
    ),
    "remote": ("Remote kill orders.", {"watch": "remote_watch:watch", "release": "oneshot:release"}),
}
"""Nouns whose verbs lie in several modules: what each is about, and of each verb ``module:name``."""
PAGED = frozenset(
    (
        *("fleet", "activity", "cost", "status", "doctor", "logs", "agent show", "receipt list", "receipt show", "mcp list", "hooks list"),
        *("approval list", "approval show", "approval grants", "budget list", "budget history", "network sandboxes", "network history"),
        "network requests",
        *("allowlist list", "allowlist history", "policy rules", "policy sequences", "policy lint", "audit tail", "config show"),
        *("rollback list", "rollback show", "session list", "session show", "agent output", "sandbox show"),
    )
)
"""Verbs that only show something and ask nothing: a person reads what is longer than the screen in a pager."""
VERBS = {name: where for group in GROUPS.values() for name, (where, _) in group.items()}
NOT_YET = {
    "drill": "rehearsals are not built yet; watchfloor demo kills a real fleet of its own",
}
"""Verbs of later versions: not listed in --help; asked by name they say why they are not there."""
