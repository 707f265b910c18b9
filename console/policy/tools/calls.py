"""What one call of a tool does: its statement decides for databases, the verb of its name for mail, payments and deployments."""

from __future__ import annotations

import re
from dataclasses import replace

from console.domain.calls.permission import rank_of
from console.policy.scopes import Scope
from console.policy.tools.catalogue import Kind, Tool, Tools, as_called, words_of
from console.policy.tools.sql import Statement, unknown
from console.policy.tools.statements import stated, statement_of
from console.policy.tools.words import words

_READ = words(
    "get list search read fetch find describe show view count retrieve lookup check explain status inspect browse query select scan",
    "peek tail stat history info diff ping whoami ls cat top wait watch download monitor verify detect summarize analyze help doc",
    "resolve hget lrange scard hgetall mget keys key exists ttl aggregate sample recommend estimate preview",
)
_NOUNS = words(
    "deploy deployment release rollout rollback refund charge payment pay transfer order email mail message draft query log post",
    "comment review share build run workflow pipeline invoice call test merge reply label project thread invite schedule request",
    "update event report change lock execution transaction index set session checkout plan trigger job backup import export",
)
"""Words that are things behind a verb that reads (``get_deploy``), and deeds elsewhere (``deploy_service``)."""
_AND = frozenset(("and", "or", "then"))
_DOES = words(
    "send create update delete remove drop insert upsert write add set put patch post apply execute exec run deploy install",
    "uninstall upgrade scale restart start stop pause resume restore reset merge push publish promote cancel void capture finalize",
    "pay transfer buy purchase refund charge approve reject confirm submit sign move rename grant revoke invite share reply forward",
    "trash archive modify edit mark label schedule trigger enable disable rotate migrate truncate rebase kill terminate drain",
    "cordon expose attach detach import load save upload cleanup port hset del expire incr decr flush flushdb flushall sadd srem",
    "lpush rpush replace alter call place withdraw deposit open close change draft",
)
_BEGINS_READING = words("get list search read find describe show view query lookup retrieve resolve count inspect")
_ENDS_READING = words("read list get search status info log diff show query")
_ACTS = words("run exec execute invoke eval evaluate click type press tap fill drag hover navigate scroll")
_NEVER_READS = words(
    "url uri website webpage http link crawl scrape",
    "secret credential password passwd token key apikey env environment cookie vault keychain keyring otp mnemonic wallet",
    "1password onepassword bitwarden lastpass dashlane doppler infisical",
)
"""Words of tools that reach any host, or show secrets."""
_DRAFTING = words("draft create update save write compose reply email")
_STATEMENTS = words(
    "sql query execute exec run statement cypher select explain ddl dml",
)
"""A tool with such a word in its name takes a statement."""
_STAGES = re.compile(r'"\$(?:out|merge|function|where)"')
"""Parts of a MongoDB query that write, or run code."""


def called(tool: Tool, argument: str, detail: str, action: str = "") -> Tool:
    """The tool with the action and scopes of this call. ``action`` is what the call says of itself: it never makes it milder."""
    if not tool.kinds:
        return _with_statement(tool, argument, detail) if tool.family == "other" and not tool.is_listed else tool
    verb = _verb(tool)
    scopes: set[Scope] = set()
    done, statement = "", None
    for kind in tool.kinds:
        if kind == "database":
            statement = _statement(tool, verb, argument, detail, action)
            scopes |= _of_data(statement)
            told = "write" if statement.writes else "read"
        else:
            told, more = _of_kind(kind, tool, verb)
            scopes |= more
        done = done or told
    return as_called(tool, done, scopes, statement)


def _with_statement(tool: Tool, argument: str, detail: str) -> Tool:
    """Return a tool of no kind as a database tool when its call carries SQL in a member named for it, whatever the server is called."""
    if (statement := stated(argument, detail)) is None:
        return tool
    action = "write" if statement.writes else "read"
    made = as_called(tool, action, tool.scopes | _of_data(statement), statement)
    return replace(made, kinds=("database",))


def only_reads(tool: Tool) -> bool:
    """Whether a call does nothing but read: by its statement, or by the name of the tool. What holds secrets never counts."""
    if tool.kinds:
        return tool.kinds == ("database",) and tool.statement is not None and not tool.statement.writes
    if tool.is_listed:
        return tool.action == "search"
    server, *own = tool.name.removeprefix("mcp__").split("__")
    if not tool.name.startswith("mcp__") or _NEVER_READS & {*words_of(tool.name), *re.split(r"[^a-z0-9]+", tool.name.lower())}:
        return False
    # A server's name may hold the separator too: each part may be the beginning of the tool's.
    return bool(server and own) and all(_says_reading(words_of("__".join(own[at:]))) for at in range(len(own))) and _verb(tool) == "read"


def _says_reading(told: tuple[str, ...]) -> bool:
    """Whether the words of a tool's name begin, or end, with a verb that reads, and hold none that acts."""
    begins = told[:1] and told[0] in _BEGINS_READING
    ends = len(told) == 2 and told[1] in _ENDS_READING and told[0] not in _DOES
    return bool(begins or ends) and not _ACTS & {*told[1:-1], *(told[-1:] if told[-1:] != ("run",) else ())}


def danger_of(tool: Tool, tools: Tools) -> Kind | None:
    """The worst kind of a call that does more than read or draft; None: it is none of these."""
    if tool.statement is not None and not tool.statement.writes:
        return None
    is_mild = tool.action in ("read", "draft") and tool.statement is None
    found = [] if is_mild else [kind for kind in tools.kinds if kind.name in tool.kinds]
    return min(found, key=lambda kind: rank_of(kind.danger), default=None)


def does(tool: Tool, tools: Tools) -> str:
    """What a call does, for the reason that people read; empty: nothing is known."""
    if tool.statement is not None and not tool.statement.writes:
        return "it reads a database"
    found = danger_of(tool, tools)
    if found is None:
        return ""
    more = f": {tool.statement.writes}" if tool.statement is not None and found.name == "database" else ""
    return f"{found.danger}: {found.why}{more}"


def _verb(tool: Tool) -> str:
    """``read`` or ``draft`` where all words of a name say so; else ``do``."""
    told = words_of(tool.name.rpartition("__")[2])
    reading = next((at for at, word in enumerate(told) if word in _READ), None)
    doing = [at for at, word in enumerate(told) if word in _DOES]
    if "draft" in told and all(told[at] in _DRAFTING for at in doing):
        return "draft" if reading is None else "read"
    if reading is None or _AND & set(told):
        return "do"
    return "do" if any(at < reading or told[at] not in _NOUNS for at in doing) else "read"


def _of_kind(kind: str, tool: Tool, verb: str) -> tuple[str, set[Scope]]:
    """The action and the scopes of a tool of mail, payments or deployments."""
    if tool.action:
        return tool.action, set(tool.scopes) or _scopes_of(kind, tool.action)
    if verb == "read":
        return "read", {Scope.CALL_API}
    action = "draft" if kind == "mail" and verb == "draft" else {"mail": "send", "payment": "pay", "deployment": "deploy"}[kind]
    return action, _scopes_of(kind, action)


def _scopes_of(kind: str, action: str) -> set[Scope]:
    if action == "draft":
        return set()
    if action == "read":
        return {Scope.CALL_API}
    return {{"mail": Scope.SEND_EMAIL, "payment": Scope.SPEND_MONEY, "deployment": Scope.DEPLOY}[kind]}


def _statement(tool: Tool, verb: str, argument: str, detail: str, action: str) -> Statement:
    """What a call of a database tool does, by its statement; without one by its name."""
    takes = bool(_STATEMENTS & set(words_of(tool.name)))
    found = statement_of(argument, detail, takes_statements=takes)
    if _STAGES.search(argument) or _STAGES.search(detail):
        return unknown("it holds a stage that writes, or code")
    named = _by_name(tool, verb, action, has_statement=found is not None)
    if found is None:
        return named
    return found if found.writes or not named.writes else Statement(named.writes, found.read, found.written or None)


def _by_name(tool: Tool, verb: str, action: str, *, has_statement: bool) -> Statement:
    """What the name, and the call itself, say: only that it reads is ever less than a write."""
    if tool.action == "write" or action not in ("", "read", "list", "query"):
        return unknown(f"{tool.name} writes" if tool.action == "write" else f"its action is {action[:40]!r}")
    told = set(words_of(tool.name.rpartition("__")[2]))
    deeds = (told & _DOES) - {"execute", "exec", "run", "call"}
    if tool.action == "read" or verb == "read" or (has_statement and not deeds):
        return Statement("", None)
    return unknown(f"{tool.name[:60]} does not say that it reads")


def _of_data(found: Statement) -> set[Scope]:
    """A write that names what it reads needs both; one that cannot be read needs the right to write."""
    scopes = {Scope.WRITE_DB} if found.writes else {Scope.READ_DB}
    return scopes | ({Scope.READ_DB} if found.read else set())
