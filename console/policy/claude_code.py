"""Claude Code's ``settings.json`` permissions in our words, and ours in its. Its grammar: code.claude.com/docs/en/permissions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from console.domain.errors import UsageProblem
from console.policy.carried import Carried
from console.policy.loading import Settings
from console.policy.rules import Family, Rule

_RULE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*\*?)(?:\((.*)\))?\Z", re.DOTALL)
_KINDS = ("deny", "ask", "allow")
_READS, _WRITES = ("Read", "Grep", "Glob", "LS"), ("Edit", "Write", "MultiEdit", "NotebookEdit")
_PERMISSIONS = {"deny", "ask", "allow"}


def from_claude_code(document: object, project: str = "${WORKSPACE}", home: str = "") -> Carried:
    """Its parsed ``settings.json``. Paths that begin with one ``/`` are below ``project``. Raises UsageProblem when it is none."""
    if not isinstance(document, Mapping):
        raise UsageProblem("This is not a settings.json of Claude Code: it holds no object.", "Name ~/.claude/settings.json.")
    made = Carried()
    for name in document:
        if name not in ("permissions", "$schema"):
            made.lose(str(name), "only its permissions are rules; a hook or variable of it stays its own")
    permissions = document.get("permissions", {})
    if not isinstance(permissions, Mapping):
        raise UsageProblem("This is not a settings.json of Claude Code: permissions is no object.", "Name ~/.claude/settings.json.")
    for name, value in permissions.items():
        if name not in _PERMISSIONS:
            made.lose(f"permissions.{name} = {value!r:.80}", "there is no such thing here: what no rule names asks a human, always")
    for kind in _KINDS:
        rules = permissions.get(kind, [])
        if not isinstance(rules, list):
            raise UsageProblem(f"permissions.{kind} is not a list.", "Name ~/.claude/settings.json.")
        for rule in rules:
            _import(kind, rule, made, project, home)
    return made


def _import(kind: str, rule: Any, made: Carried, project: str, home: str) -> None:
    shape = _RULE.match(rule) if isinstance(rule, str) else None
    if shape is None:
        made.lose(f"{kind}: {rule!r:.100}", "it is no rule of Claude Code's either")
        return
    tool, inside = shape.group(1), shape.group(2)
    if tool == "Bash":
        _import_bash(kind, rule, inside, made)
    elif tool in _READS + _WRITES:
        _import_file(kind, rule, tool, inside, made, project, home)
    elif tool in ("WebFetch", "WebSearch"):
        _import_web(kind, rule, tool, inside, made)
    elif tool.startswith("mcp__"):
        _import_mcp(kind, rule, tool, inside, made)
    else:
        made.lose(f"{kind}: {rule}", f"{tool} is no shell, file or network; put it into the permission matrix")


def _import_bash(kind: str, rule: str, inside: str | None, made: Carried) -> None:
    if inside in (None, "*", ":*"):
        made.put(kind, "shell(*)")
        if kind == "allow":
            made.lose(f"allow: {rule}", "carried over as shell(*), which is not in force until it is marked unconfined")
        return
    assert inside is not None
    words, open_end = inside, False
    for end in (":*", " *"):
        if words.endswith(end):
            words, open_end = words.removesuffix(end), True
            break
    if "*" in words:
        if kind == "allow":
            made.lose(f"allow: {rule}", "a * inside of a command has no counterpart: such a command asks")
            return
        before = words.split("*", 1)[0].rsplit(" ", 1)[0].strip() or words.split("*", 1)[0].strip()
        if not before or "*" in before:
            made.lose(
                f"{kind}: {rule}",
                "it names no program: CANNOT BE KEPT AS A DENIAL; name the programs" if kind == "deny" else "it names no program",
            )
            return
        words, open_end = before, True
        made.lose(f"{kind}: {rule}", f"carried over wider, as shell({words}:*)")
    made.put(kind, f"shell({words}:*)" if open_end else f"shell({words})")


def _import_file(kind: str, rule: str, tool: str, inside: str | None, made: Carried, project: str, home: str) -> None:
    if inside is not None and tool in ("Write", "Glob"):
        made.lose(f"{kind}: {rule}", f"Claude Code never matches {tool}(path): it is carried over as what it says")
    actions = ("read",) if tool in _READS else ("write", "delete")
    globs = ["/**"] if inside is None else _globs(inside, project, home)
    if not globs:
        made.lose(f"{kind}: {rule}", "its path depends on a home directory that is not known, or excludes something")
        return
    for action in actions:
        for glob in globs:
            made.put(kind, f"file({action}:{glob})")


def _globs(inside: str, project: str, home: str) -> list[str]:
    """Gitignore's words (``//abs``, ``~/home``, ``/`` from the project, bare names anywhere below it) as globs."""
    if inside.startswith("!") or ".." in inside.split("/"):
        return []
    if inside.startswith("//"):
        base = inside[1:]
    elif inside.startswith("~/"):
        if not home:
            return []
        base = f"{home}/{inside[2:]}"
    elif inside.startswith("/"):
        base = project + inside
    else:
        bare = inside.removeprefix("./")
        anchored = "/" in bare.rstrip("/") or inside.startswith("./")
        base = f"{project}/{bare}" if anchored else f"{project}/**/{bare}"
    base = base.rstrip("/")
    return [base] if base.endswith("**") else [base, f"{base}/**"]  # gitignore(5): a name matches a folder with all in it


def _import_web(kind: str, rule: str, tool: str, inside: str | None, made: Carried) -> None:
    if tool == "WebSearch":
        made.lose(f"{kind}: {rule}", "a search names no host; put it into the permission matrix")
    elif inside is None:
        made.put(kind, "network(outbound:*)")
    elif inside.startswith("domain:") and re.fullmatch(r"(\*\.)?[a-z0-9.-]+", host := inside.removeprefix("domain:").lower()):
        made.put(kind, f"network(outbound:{host})")
    else:
        made.lose(f"{kind}: {rule}", "it names no domain")


def _import_mcp(kind: str, rule: str, tool: str, inside: str | None, made: Carried) -> None:
    """``mcp__SERVER``, ``mcp__SERVER__*`` and ``mcp__SERVER__TOOL``."""
    bare = tool.removeprefix("mcp__")
    server, _, name = bare.partition("__")
    if inside is not None or not server or "*" in server or "__" in name:
        made.lose(f"{kind}: {rule}", "which server and which tool it names is not certain")
        return
    made.put(kind, f"mcp({server}:{name or '*'})")


def to_claude_code(settings: Settings) -> tuple[dict[str, Any], Carried]:
    """Our settings as its permissions; what was lost is in the second."""
    made = Carried()
    for kind in _KINDS:
        rules: tuple[Rule, ...] = getattr(settings, kind)
        for rule in rules:
            _export(kind, rule, made)
    made.lose(
        "the judgement of arguments",
        "Claude Code judges neither the files nor the hosts that a command names, nor resolves programs; keep our hook",
    )
    made.lose("what no rule names", "asks there only in the default mode; forbid bypassPermissions in managed settings")
    permissions = {kind: rules for kind, rules in (("deny", made.deny), ("ask", made.ask), ("allow", made.allow)) if rules}
    return {"permissions": permissions}, made


def _export(kind: str, rule: Rule, made: Carried) -> None:
    match rule.family:
        case Family.SHELL:
            if kind == "allow" and not rule.unconfined and not rule.words:
                made.lose(f"allow: {rule.text}", "it is not in force here (not marked unconfined)")
            elif any("*" in word for word in rule.words):
                made.put(kind, f"Bash({' '.join(rule.words)})")
                made.lose(f"{kind}: {rule.text}", "a * is a pattern there, and text here")
            else:
                made.put(kind, f"Bash({' '.join(rule.words)}{':*' if rule.open_end else ''})" if rule.words else "Bash")
        case Family.FILE:
            _export_file(kind, rule, made)
        case Family.NETWORK:
            if rule.port is not None:
                made.lose(f"{kind}: {rule.text}", "a domain has no port there" + ("; carried over wider" if kind != "allow" else ""))
                if kind == "allow":
                    return
            made.put(kind, "WebFetch" if rule.pattern == "*" else f"WebFetch(domain:{rule.pattern})")
        case Family.MCP:
            _export_mcp(kind, rule, made)


def _export_mcp(kind: str, rule: Rule, made: Carried) -> None:
    server, name = rule.words
    if "*" in server or "*" in name.removesuffix("*") or (name != "*" and name.endswith("*")):
        made.lose(f"{kind}: {rule.text}", "its rules name one server, and one tool of it or all")
        return
    made.put(kind, f"mcp__{server}" if name == "*" else f"mcp__{server}__{name}")


def _export_file(kind: str, rule: Rule, made: Carried) -> None:
    pattern = rule.pattern if rule.pattern.startswith("/") else f"/{rule.pattern}"
    if rule.action == "delete":
        made.lose(f"{kind}: {rule.text}", "there is no tool that deletes; a Bash rule must say it")
        return
    if "{" in pattern or "\\" in pattern:
        made.lose(f"{kind}: {rule.text}", "gitignore's patterns have no {a,b} and other escapes")
        return
    made.put(kind, f"{'Read' if rule.action == 'read' else 'Edit'}(/{pattern})")
