"""Words that people type for a verb of another name: those of other programs, and of other commands that they know."""

MEANT = {
    "abort": "kill", "end": "kill", "halt": "kill", "killall": "panic", "stop": "kill", "terminate": "kill", "emergency": "panic",
    "pause": "freeze", "suspend": "freeze", "continue": "thaw", "resume": "thaw", "unfreeze": "thaw", "unpause": "thaw",
    "block": "isolate", "disconnect": "isolate", "quarantine": "isolate", "release": "rearm", "unlatch": "rearm", "unlock": "rearm",
    "agents": "fleet", "list": "fleet", "ls": "fleet", "ps": "fleet", "top": "fleet", "tree": "fleet", "watch": "activity",
    "tail": "activity", "transcript": "activity", "describe": "agent show", "get": "agent show", "info": "agent show",
    "inspect": "agent show", "show": "agent show", "burn": "cost", "costs": "cost", "price": "cost", "spend": "cost", "usage": "cost",
    "check": "doctor", "health": "status", "ready": "status", "exec": "run", "launch": "run", "spawn": "run", "start": "run",
    "output": "agent output", "stdout": "agent output", "restart": "run --again", "retry": "run --again",
    "attach": "adopt", "claim": "adopt", "ask": "say", "message": "say", "prompt": "say", "send": "say", "tell": "say",
    "cancel": "interrupt", "close": "finish", "allow": "approval approve", "approvals": "approval", "approve": "approval approve",
    "deny": "approval deny", "inbox": "approval", "pending": "approval list", "cap": "budget set", "limit": "budget set",
    "limits": "budget", "permissions": "policy", "rule": "policy rules", "rules": "policy rules", "profile": "policy profile",
    "profiles": "policy profile", "data": "session classify", "classify": "session classify", "context": "session",
    "contexts": "session", "workspace": "session", "keys": "secrets keys", "passphrase": "secrets passphrase",
    "revoke": "secrets revoke", "rotate": "secrets rotation", "rotation": "secrets rotation", "hardening": "sandbox show",
    "sources": "agent-type list", "types": "agent-type list", "events": "audit tail", "history": "audit tail", "journal": "audit tail",
    "log": "audit tail", "verify": "audit verify", "export": "audit export", "receipts": "receipt list", "proof": "receipt verify",
    "backup": "rollback list", "restore": "rollback", "revert": "rollback", "snapshot": "rollback list", "undo": "rollback",
    "alerts": "webhook", "notify": "webhook", "option": "config set", "options": "config show", "set": "config set",
    "setting": "config set", "settings": "config show", "console": "open", "dashboard": "open", "gui": "open", "ui": "open",
    "window": "open", "daemon": "supervisor", "serve": "supervisor", "server": "supervisor", "help": "--help", "version": "--version",
    "uninstall-hook": "hooks remove", "hook-remove": "hooks remove", "servers": "mcp list", "destinations": "allowlist",
    "domains": "allowlist", "hosts": "allowlist", "whitelist": "allowlist", "firewall": "network sandboxes", "example": "demo",
    "budget clear": "budget remove", "budget delete": "budget remove", "budget unset": "budget remove",
}  # fmt: skip
"""Word -> the verb that does it. Only suggested, never run: a guess must kill nothing."""
