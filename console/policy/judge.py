"""The one entry point: a call and its context in, one verdict out, with every part, rule and step.

Settings, scopes, matrix, sensitivity and what ``sources.json`` declares are joined; the worst decides, and none can loosen another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from console.domain.calls.permission import Verdict
from console.domain.network import Sensitivity
from console.policy.files.paths import ACTIONS, Files, Once
from console.policy.git.calls import Known, NothingKnown
from console.policy.matrix import Matrix, judge_row, params_of
from console.policy.rules.profiles import Standing, settled
from console.policy.rules.verdicts import IN_SANDBOX, NO_RULE, Judgement, Part, denied, joined, no_looser_than, worst
from console.policy.scopes import Scope, missing, needed_by
from console.policy.shell.check import Policy, ShellJudge
from console.policy.tools.calls import called, danger_of, does, only_reads
from console.policy.tools.catalogue import FREE, Tool, Tools, tool_of
from console.policy.tools.patches import files_of
from console.policy.tools.statements import texts_of

ARGUMENT_BYTES = 1024 * 1024
_WEB = re.compile(r"(?i)(?:https?|wss?|ftp|ssh|git)://\S+")
_REQUEST = re.compile(r"(?:([A-Z]{3,10}) +)?(\S+)\Z")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as an agent made it. Everything in it is hostile."""

    tool: str
    argument: str
    """Command, path or URL; ``read:PATH`` for the tool ``file``, ``outbound:HOST`` for ``network``."""
    action: str = ""
    """Of a tool that has several; empty: the tool's own."""
    params: Mapping[str, object] = field(default_factory=dict)
    """What the matrix bounds: ``path size database table method url``."""
    detail: str = ""
    """The whole input of the tool as JSON, where there is more than one argument."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a call is judged by. There are no defaults for what restricts: the caller says what the agent was granted."""

    policy: Policy | None
    """None: no settings could ever be read; everything is denied."""
    files: Files
    tools: Tools
    scopes: frozenset[Scope]
    sensitivity: Sensitivity
    matrix: Matrix | None
    """None: there is none for this agent."""
    cwd: str = ""
    """Where it works; empty: in its workspace."""
    problem: str = ""
    """Why there is no policy."""
    known: Known = field(default_factory=NothingKnown)
    """What is known of the session's beginning; nothing: what runs a program asks."""
    standing: Standing = Standing.OPEN
    """What holds the agent beside the rules, where they are a profile's."""


def judge(call: Call, context: Context) -> Judgement:
    """A verdict; never raises on what a call holds."""
    policy = context.policy
    if policy is None:
        return denied(
            "settings", "no policy", context.problem or "there are no settings; an empty policy denies everything", call.tool[:100]
        )
    if why := _unfit(call):
        return denied("bounds", "bounds", why, call.tool[:100])
    tool, argument = _tool(call, context.tools)
    cwd = context.cwd or policy.settings.workspace
    files = Once(context.files)
    own = _by_settings(tool, argument, call.detail, context, policy, files, cwd)
    if policy.profile is not None:
        own = settled(own, policy.profile, context.standing)
    extra = _matrix(call, tool, argument, context, cwd, files)
    found = own if extra is None else _with_matrix(own, extra, tool)
    return joined(found, *_limits(call, tool, found, context))


def tool_named(call: Call, tools: Tools) -> Tool:
    """The tool that a call means, with what this call of it does."""
    return _tool(call, tools)[0]


def _unfit(call: Call) -> str:
    try:
        if len(call.argument.encode()) > ARGUMENT_BYTES:
            return f"the argument has more than {ARGUMENT_BYTES:,} bytes"
        call.tool.encode()
    except UnicodeEncodeError:
        return "it is not valid UTF-8"
    if "\0" in call.argument or not call.tool or len(call.tool) > 200 or not call.tool.isprintable():
        return "the tool has no name that can be shown, or the argument holds NUL"
    return ""


def _tool(call: Call, tools: Tools) -> tuple[Tool, str]:
    """The tool, and its argument without the action that ``file`` and ``network`` carry in it."""
    head, _, rest = call.argument.partition(":")
    if call.tool == "file":
        names = {"read": "read_file", "write": "write_file", "delete": "delete_file", "list": "list_files"}
        name = names.get(call.action or head)
        if name:
            return tool_of(tools, name), call.argument if call.action else rest
        return Tool("file", "other", connects=True, is_listed=False), call.argument
    if call.tool == "network":
        return tool_of(tools, "http_request"), rest if head == "outbound" else call.argument
    tool = called(tool_of(tools, call.tool), call.argument, call.detail, call.action)
    return tool, _searched(call) if tool.family == "file" and tool.action == "search" else call.argument


def _searched(call: Call) -> str:
    """The folder that a search looks in: it shows what is in the files there. Its argument may be what it looks for."""
    path = params_of("", call.detail).get("path") if call.detail else None
    return str(path or ".") if path is not None or not call.argument.startswith(("/", "~", "..")) else call.argument


def _by_settings(tool: Tool, argument: str, detail: str, context: Context, policy: Policy, files: Files, cwd: str) -> Judgement:
    shell = ShellJudge(policy, files, context.known)
    match tool.family:
        case "shell":
            return shell.text(argument, cwd)
        case "argv":
            return _argv(argument, shell, cwd)
        case "code":
            return shell.argv(("python3", "-c", "code"), cwd)
        case "file":
            return worst((_file("read" if tool.action == "search" else tool.action, argument, policy, cwd, files),))
        case "patch":
            found = [_file(action, path, policy, cwd, files) for action, path in files_of(argument)]
            return worst(tuple(found) or (Part(tool.name, Verdict.ASK, NO_RULE, "tool", "which files the patch changes is not certain"),))
        case "network":
            return _request(argument, policy)
        case "none":
            return worst((Part(tool.name, Verdict.ALLOW, "no effect of its own", "tool", "its target is checked by itself"),))
        case _:
            part = _unruled(tool, argument, context.tools, policy)
            is_free = part.rule == NO_RULE and policy.profile is not None and policy.profile.work and only_reads(tool)
            return worst(_reading(part, argument, detail, policy, files, cwd) if is_free else (part,))


def _file(action: str, path: str, policy: Policy, cwd: str, files: Files) -> Part:
    part = policy.files.judge(action, path, cwd, files)
    if path.startswith(("~", "$")):
        part = no_looser_than(part, Verdict.ASK, NO_RULE, "a tool may put a folder in the place of its beginning")
    return replace(part, action=ACTIONS[action])


def _unruled(tool: Tool, argument: str, tools: Tools, policy: Policy) -> Part:
    """A tool for which only rules on MCP servers have words: what it does is said first, with the class of its danger."""
    why = f"no rule says whether {tool.name} may be used"
    what, kind = does(tool, tools), danger_of(tool, tools)
    text = f"{tool.name} {argument[:200]}"
    said = policy.mcp.judge(tool.name)
    if said is not None:
        verdict, rule = said
        # What spends, sends, deploys or deletes is allowed by its own name alone, never by a pattern.
        if verdict is not Verdict.ALLOW or kind is None or "*" not in rule.text:
            return Part(text, verdict, rule.text, "tool", what or "a rule names this tool", danger=kind.danger if kind is not None else "")
        why = f"{rule.text} allows it by a pattern alone"
    if kind is None:
        return Part(text, Verdict.ASK, NO_RULE, "tool", f"{why}; {what}" if what else why)
    return Part(text, Verdict.ASK, f"danger: {kind.name}", "tool", f"{what}; {why}", danger=kind.danger)


def _reading(part: Part, argument: str, detail: str, policy: Policy, files: Files, cwd: str) -> list[Part]:
    """A tool that only reads: it asks outside of a sandbox, and where its input names a file or a host that may not be reached."""
    made = [replace(part, rule=IN_SANDBOX, reason="by its name, or its statement, it only reads")]
    try:
        texts = dict.fromkeys(text.strip() for _kind, text in texts_of(argument, detail))
    except OverflowError:
        return [part]
    for text in texts:
        path = text.removeprefix("file://")
        for url in _WEB.findall(text):
            reached = policy.hosts.judge(url, is_url=True)
            made.append(replace(reached, action="connect", verdict=reached.verdict if reached.names else Verdict.ASK))
        if _is_path(path, text, files):
            made.append(_file("read", path, policy, cwd, files))
    return made


def _is_path(path: str, text: str, files: Files) -> bool:
    """Whether a text of a tool's input may be a path: what begins at the root of a disk does only where such a folder is there."""
    if not path.isprintable() or len(path) > 1024 or _WEB.match(text) or "/" not in path.replace("~", "/").replace("..", "/"):
        return False
    if path.startswith("/") and path == text:
        return files.look("/" + path.strip("/").partition("/")[0]).kind != "missing"
    return path.startswith(("~", "/", ".")) or " " not in path


def _argv(argument: str, shell: ShellJudge, cwd: str) -> Judgement:
    try:
        words = json.loads(argument)
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return denied("bounds", "argv", "the argument is no JSON list of strings", argument[:200])
    return shell.argv(tuple(words), cwd)


def _request(argument: str, policy: Policy) -> Judgement:
    shape = _REQUEST.match(argument.strip())
    target = shape.group(2) if shape else argument
    part = policy.hosts.judge(target, is_url="://" in target)
    parts = [replace(part, action="connect")]
    if policy.declared is not None and (refused := policy.declared.web(target if "://" in target else f"https://{target}")):
        parts.append(refused)
    return worst(parts)


def _matrix(call: Call, tool: Tool, argument: str, context: Context, cwd: str, files: Files) -> Part | None:
    if context.matrix is None:
        return None
    if tool.name == "file":
        return Part(tool.name, Verdict.DENY, "matrix: file", "matrix", "it does not say whether it reads, writes, deletes or lists")
    params = params_of(call.argument, call.detail) | dict(call.params) if tool.family in FREE else dict(call.params)
    action = tool.action if tool.statement is not None else call.action or tool.action
    if tool.family in FREE and not call.action and (not tool.action or call.tool == "email"):
        action = str(
            params.get("action", tool.action)
        )  # a tool that does several things says which; what a known one does is not its to say
    if tool.family == "file":
        params["path"] = call.argument.partition(":")[2] if call.tool == "file" and not call.action else call.argument
        if tool.action == "write" and "size" in (told := params_of("", call.detail)):
            params.setdefault("size", told["size"])
    if tool.family == "network":
        shape, said = _REQUEST.match(argument.strip()), params_of("", call.detail).get("method")
        params["url"], params["method"] = (shape[2], _method(shape[1], said)) if shape else ("", "not certain")
    found = [judge_row(context.matrix, name, action, params, cwd, files, tool.statement) for name in _rows(call.tool, tool, context)]
    return next((part for part in found if part.verdict is Verdict.DENY), found[0])


def _method(named: str | None, told: object) -> str:
    """Of a request: in its argument, or its input. One that has two different ones has none that is in any list."""
    if named and told is not None and named != str(told).upper():
        return f"{named} and {told}"
    return named or str("GET" if told is None else told)


def _rows(name: str, tool: Tool, context: Context) -> list[str]:
    """Rows that bound a tool: its own, else those of tools that are known to do the same; a row that may only draft bounds drafts.

    ``file`` and ``network`` are several tools: the rows of what is meant bound them besides their own.
    """
    assert context.matrix is not None
    own = [name] if name in context.matrix else []
    if own and tool.name == name:
        return own
    found = []
    for row, bounds in context.matrix.items():
        other = context.tools.named.get(row)
        if other is None or not tool.is_listed or (not tool.kinds and tool.name not in context.tools.named):
            continue
        drafts = bounds.draft_only and tool.action == "draft" and other.action == "send"
        if drafts or _is_alike(tool, other):
            found.append(row)
    return own + found or [name]


def _is_alike(tool: Tool, other: Tool) -> bool:
    """Whether a row of ``other`` bounds ``tool``: they do the same. Of a database, a row of a tool that only reads allows no write."""
    if not tool.kinds:
        return (tool.family, tool.action, tool.scopes, tool.connects) == (other.family, other.action, other.scopes, other.connects)
    if tool.family == "database" == other.family:
        return other.action in ("", tool.action)
    return (tool.family, tool.action) == (other.family, other.action)


def _with_matrix(own: Judgement, extra: Part, tool: Tool) -> Judgement:
    """The grammar of the settings has few words for databases and mail: there the matrix decides, and a rule on the tool's server."""
    is_ruled = own.verdict is Verdict.DENY or own.rule.startswith("mcp(")
    return worst((extra,)) if tool.family in FREE and not is_ruled else joined(own, worst((extra,)))


def _limits(call: Call, tool: Tool, found: Judgement, context: Context) -> list[Judgement]:
    needed = set(tool.scopes)
    for part in found.parts:
        needed.update(needed_by(part.action))
    parts = [] if (lacking := missing(needed, context.scopes, call.tool)) is None else [lacking]
    connects = tool.connects or any(part.action == "connect" for part in found.parts)
    if connects and context.sensitivity.level >= Sensitivity.CONFIDENTIAL.level:
        why = f"it sends data out, and the session holds {context.sensitivity} data"
        parts.append(Part(call.tool, Verdict.DENY, "private data stays", "sensitivity", why))
    return [worst(parts)] if parts else []
