"""Rules carried between programs, other programs' own in our words and back: what could be, and what could not with its reason.

Nothing becomes looser on the way. Claude Code has ``settings.json`` with permissions (code.claude.com/docs/en/permissions). Codex has no
lists of files or hosts, but an approval policy, a sandbox mode, and prefix rules
(``prefix_rule(pattern = ["git", "push"], decision = "prompt")``).
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from console.domain.errors import UsageProblem
from console.policy.rules.loading import Settings, read_json
from console.policy.rules.rule import Family, Rule

_RULE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*\*?)(?:\((.*)\))?\Z", re.DOTALL)
_KINDS = ("deny", "ask", "allow")
_READS, _WRITES = ("Read", "Grep", "Glob", "LS"), ("Edit", "Write", "MultiEdit", "NotebookEdit")
_PERMISSIONS = {"deny", "ask", "allow"}
_DECISIONS = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_WORST = ("forbidden", "prompt", "allow")
_BACK = {"allow": "allow", "ask": "prompt", "deny": "forbidden"}


@dataclass(frozen=True, slots=True)
class Lost:
    """One thing that was not carried over as it was."""

    what: str
    why: str


@dataclass(slots=True)
class Carried:
    """The outcome of an import or export."""

    deny: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)
    allow: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)

    def put(self, kind: str, rule: str) -> None:
        """Adds a rule to ``deny``, ``ask`` or ``allow`` once."""
        rules: list[str] = getattr(self, kind)
        if rule not in rules:
            rules.append(rule)

    def lose(self, what: str, why: str) -> None:
        """Notes what is not carried over."""
        self.lost.append(Lost(what, why))

    def settings(self) -> dict[str, Any]:
        """As ``settings.json``."""
        lists = {"deny": self.deny, "ask": self.ask, "allow": self.allow}
        return {"permissions": {kind: rules for kind, rules in lists.items() if rules}}


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
        "the check of arguments",
        "Claude Code checks neither the files nor the hosts that a command names, and resolves no programs; keep our hook",
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


def from_codex(data: bytes) -> Carried:
    """Its ``config.toml``, or a file of prefix rules. Raises UsageProblem when it is neither."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageProblem("This is no configuration of Codex: it is not UTF-8.", "Name config.toml or a .rules file.") from error
    made = Carried()
    if "prefix_rule" in text:
        _rules(text, made)
    else:
        _config(text, made)
    return made


def _config(text: str, made: Carried) -> None:
    try:
        config = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageProblem(f"This is no config.toml of Codex: {error}.", "Name config.toml or a .rules file.") from error
    mode = config.pop("sandbox_mode", None)
    workspace = config.pop("sandbox_workspace_write", {})
    if mode in ("read-only", "workspace-write", "danger-full-access"):
        made.put("allow", "file(read:/**)")
        if mode != "read-only":
            where = "/**" if mode == "danger-full-access" else "${WORKSPACE}/**"
            made.put("allow", f"file(write:{where})")
            made.put("allow", f"file(delete:{where})")
        if mode == "workspace-write":
            _workspace(workspace, made)
    elif mode is not None:
        made.lose(f"sandbox_mode = {mode!r:.60}", "it is not known")
    approval = config.pop("approval_policy", None)
    if approval is not None:
        made.lose(f"approval_policy = {approval!r:.60}", "there is no such thing here: what no rule names asks a human, always")
    for name in config:
        made.lose(name, "it is no rule")


def _workspace(workspace: Any, made: Carried) -> None:
    if not isinstance(workspace, dict):
        made.lose("sandbox_workspace_write", "it is no table")
        return
    for root in workspace.get("writable_roots", []):
        if isinstance(root, str) and root.startswith("/") and not set(root) & set("*?[{!\\") and ".." not in root.split("/"):
            made.put("allow", f"file(write:{root.rstrip('/')}/**)")
        else:
            made.lose(f"writable_roots: {root!r:.80}", "it is no absolute path")
    if workspace.get("network_access") is True:
        made.put("allow", "network(outbound:*)")
    else:
        made.put("deny", "network(outbound:*)")


def _rules(text: str, made: Carried) -> None:
    try:
        tree = ast.parse(text)  # Starlark's calls are Python's; nothing of it is run
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageProblem(f"This is no rules file of Codex: {error}.", "Name config.toml or a .rules file.") from error
    for node in tree.body:
        shown = ast.unparse(node)[:120]
        call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if call is None or not isinstance(call.func, ast.Name) or call.func.id != "prefix_rule" or call.args:
            made.lose(shown, "it is no prefix_rule")
            continue
        _rule(call, shown, made)


def _rule(call: ast.Call, shown: str, made: Carried) -> None:
    try:
        given = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    except ValueError:
        made.lose(shown, "it computes something")
        return
    kind = _DECISIONS.get(str(given.get("decision", "allow")))
    patterns = _spread(given.get("pattern"))
    if kind is None or not patterns:
        made.lose(shown, "its pattern or decision is not known")
        return
    for words in patterns:
        if any(not word or set(word) & set(" \t\n()*") or not word.isprintable() for word in words):
            made.lose(shown, "a word of it cannot be written in a rule" + ("; CANNOT BE KEPT AS A DENIAL" if kind == "deny" else ""))
        else:
            made.put(kind, f"shell({' '.join(words)}:*)")


def _spread(pattern: Any) -> list[list[str]]:
    """A pattern's words; one that is a list means any of them."""
    if not isinstance(pattern, list) or not pattern or len(pattern) > 16:
        return []
    found: list[list[str]] = [[]]
    for word in pattern:
        ones = word if isinstance(word, list) else [word]
        if not all(isinstance(one, str) for one in ones) or len(found) * len(ones) > 256:
            return []
        found = [[*words, one] for words in found for one in ones]
    return found


def to_codex(settings: Settings) -> tuple[str, Carried]:
    """Our settings as a file of prefix rules; what was lost is in the second."""
    made = Carried()
    lines: dict[str, str] = {}
    for kind in ("deny", "ask", "allow"):
        rules: tuple[Rule, ...] = getattr(settings, kind)
        for rule in rules:
            if rule.family is not Family.SHELL:
                made.lose(
                    f"{kind}: {rule.text}", "Codex has no rules on files, hosts and MCP tools; its sandbox mode and our sandbox hold them"
                )
            elif not rule.words:
                made.lose(f"{kind}: {rule.text}", "Codex has no rule for every program")
            elif kind == "allow" and not rule.open_end:
                made.lose(f"allow: {rule.text}", "Codex knows beginnings only; exactly these words would become more")
            else:
                lines.setdefault(json.dumps(list(rule.words)), _BACK[kind])
                made.put(kind, rule.text)
    made.lose("the check of arguments", "Codex checks neither the files nor the hosts that a command names; keep our hook")
    ordered = sorted(lines.items(), key=lambda one: _WORST.index(one[1]))
    return "".join(f'prefix_rule(pattern = {words}, decision = "{decision}")\n' for words, decision in ordered), made


@dataclass(frozen=True, slots=True)
class Exchange:
    """One other program whose rules can be read and written."""

    read: Callable[[bytes, str, str, str], Carried]
    """(file's bytes, its name, project, home) -> its rules in our words. Raises UsageProblem."""
    written: Callable[[Settings], tuple[str, Carried]]
    """Our settings as text of its file; what was lost is in the second."""


def _as_settings(settings: Settings) -> tuple[str, Carried]:
    document, made = to_claude_code(settings)
    return json.dumps(document, indent=2) + "\n", made


EXCHANGES: Mapping[str, Exchange] = {
    "claude-code": Exchange(lambda data, name, project, home: from_claude_code(read_json(data, name), project, home), _as_settings),
    "codex": Exchange(lambda data, _name, _project, _home: from_codex(data), to_codex),
}
