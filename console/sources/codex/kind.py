"""Codex as an agent kind."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from console.sources.codex import program, stream
from console.sources.codex.activity import ACTIVITY
from console.sources.codex.daemons import CodexDaemons
from console.sources.codex.quota import windows
from console.sources.codex.source import CodexSource
from console.sources.codex.telemetry import TELEMETRY
from console.sources.codex.transcripts import TRANSCRIPTS
from console.sources.codex.trust import KNOWN, trusted_hash, why_skipped
from console.sources.hook_settings import EVENT, HookCommand, JsonHook, group_of
from console.sources.interface import Source
from console.sources.kind import Kind, Outlook, Servers, Start, Wanted, address
from console.wording.agent_kinds import GOES_ON

OWN_KEY = "/<session-flags>/config.toml:pre_tool_use:0:0"
"""Codex's own name of the first hook on its command line."""


def _look(given: Outlook) -> Source:
    return CodexSource(given.root, spend=given.spend, programs=given.programs, outside=given.outside)


def _words(wanted: Wanted) -> tuple[str, ...]:
    judged = stream.JUDGED if wanted.judged else ()
    elsewhere = stream.provider(wanted.base_url) if wanted.base_url else ()
    options = (*judged, *stream.HELD_BY_SANDBOX, *stream.QUIET, *elsewhere)
    options += ("-c", f"model={wanted.model}") if wanted.model else ()
    if wanted.once:
        return (*stream.WORDS_ONCE, *(stream.TRUSTED if judged else ()), *options, "-")
    return (*stream.WORDS, *options)


def _told(command: HookCommand | None, _servers: Servers) -> str:
    if command is None:
        return stream.QUIET[1]
    group = group_of(command)
    (hook,) = group["hooks"]
    fields = f"type={json.dumps(hook['type'])},command={_toml(hook['command'])},timeout={hook['timeout']}"
    trust = f"enabled=true,trusted_hash={json.dumps(trusted_hash(group, hook))}"
    return f'hooks={{{EVENT}=[{{matcher="*",hooks=[{{{fields}}}]}}],state={{{_toml(OWN_KEY)}={{{trust}}}}}}}'


def _server(words: Sequence[str]) -> str:
    url = address(words)
    return f"{{url={_toml(url)}}}" if url else f"{{command={_toml(words[0])},args=[{','.join(map(_toml, words[1:]))}]}}"


def _servers(servers: Servers) -> str:
    return f"mcp_servers={{{','.join(f'{_toml(name)}={_server(words)}' for name, words in servers.items())}}}"


def _toml(text: str) -> str:
    """A basic string of TOML: what JSON writes for text without surrogates is one."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _doubt(version: str, talks: bool) -> str:
    """Return why this version may not run our hook: its app-server trusts a hook by a hash, which is known for one version only."""
    if not talks or re.search(rf"\b{re.escape(KNOWN)}", version):
        return ""
    return (
        f"this version may skip the hook in silence when it takes messages (known to run it: {KNOWN}x). Its detail shows enforced after a "
        "first checked call. With --once it runs the hook"
    )


CODEX = Kind(
    name="codex",
    program=program.CODEX,
    look=_look,
    transcripts=TRANSCRIPTS,
    activity=ACTIVITY,
    sub_agents="threads of the same process, by Codex's own links",
    hook=JsonHook(
        ".codex/hooks.json",
        gaps=(
            "A process that may write ~/.codex/config.toml can switch it off (features.hooks). Check with: install-hook codex --check.",
            f"{GOES_ON[0].upper()}{GOES_ON[1:]}.",
        ),
        advice="Codex runs a new hook only once you have trusted it: start codex, and approve the hook it shows.",
        skipped=why_skipped,
    ),
    start=Start(
        "codex",
        stream.CodexStream,
        _words,
        stream.JUDGED,
        _told,
        program.USUAL,
        program.IN_HOME,
        addresses=("OPENAI_BASE_URL",),
        models=dict.fromkeys(("OPENAI_API_KEY", "CODEX_API_KEY"), "api.openai.com"),
        servers=_servers,
        doubt=_doubt,
        native=program.native,
    ),
    daemons=CodexDaemons(),
    quota=windows,
    windows=("5 h", "week"),
    telemetry=TELEMETRY,
)
