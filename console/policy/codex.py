"""Codex's ``config.toml`` and its rules files in our words, and ours in its.

It has no lists of files or hosts: an approval policy, a sandbox mode, and prefix rules
(``prefix_rule(pattern = ["git", "push"], decision = "prompt")``).
"""

from __future__ import annotations

import ast
import json
import tomllib
from typing import Any

from console.domain.errors import UsageProblem
from console.policy.carried import Carried
from console.policy.loading import Settings
from console.policy.rules import Family, Rule

_DECISIONS = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_WORST = ("forbidden", "prompt", "allow")
_BACK = {"allow": "allow", "ask": "prompt", "deny": "forbidden"}


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
    made.lose("the judgement of arguments", "Codex judges neither the files nor the hosts that a command names; keep our hook")
    ordered = sorted(lines.items(), key=lambda one: _WORST.index(one[1]))
    return "".join(f'prefix_rule(pattern = {words}, decision = "{decision}")\n' for words, decision in ordered), made
