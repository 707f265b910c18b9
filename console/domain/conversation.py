"""Programs that are started and talked to, and what is said: bounds, the command line by which one is recognised, refusals in words. Pure.

A started program is an agent like any other. What makes it one to talk to is its command line alone, so that a restart of the supervisor
and ``run --again`` recognise it without a record beside it.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from console.domain.agent import Agent, AgentState
from console.domain.errors import UsageProblem

MOST_MESSAGE = 60_000
"""Characters of one message; a prompt too."""
MODEL = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}\Z")
WAITS = "waits for a message"
"""What a program does whose turn is over, in words for the fleet."""
CHANNEL = "talk"
"""Name of the FIFO beside the agent's own socket."""
ENDING = "ending"
"""Name of the one beside it in which a line says that no more comes."""
MOST_WITHIN_S = 600.0
"""Seconds that a program may be given to end by itself."""
HOOKED = "hooked"
"""Name of the file beside the agent's own socket that tells the program to ask us before each tool call: one line, in its own words."""
SERVERS = "servers"
"""Name of the file beside that one that names the MCP servers of the program: one line, in its own words."""
PLUGIN = "watchfloor-plugin.js"
"""Name of the file beside that one that a program loads into itself, where that is how it asks."""
GATE = "watchfloor-gate.py"
"""Name of the file beside that one that runs a program and answers its questions, where that is how it asks."""
POLICY = "watchfloor-policy.toml"
"""Name of the file beside that one that makes the program ask."""
PROGRAMS_IN_BOX = "/opt/watchfloor-programs"
"""Where a sandbox that does not show this machine's files holds the program."""
_SHELL = "/bin/sh"
_QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
"""Variables with which Claude Code contacts only its model: no telemetry, no updates. A launch may set others."""
_OPENCODE_WITHOUT = ("PROJECT_CONFIG", "MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "SHARE")
"""What OpenCode does only unless a variable says otherwise."""
_BEGIN = (
    'w="$HOME/.watchfloor"; export CLAUDE_CONFIG_DIR="$w/claude" CODEX_HOME="$w/codex" TMPDIR="$w/tmp" CLAUDE_CODE_TMPDIR="$w/tmp"; '
    + "".join(f'export {name}="${{{name}:-1}}"; ' for name in _QUIET)
    # git and searches pass over its home, which holds what was said and its own keys: git add -A would commit them.
    + 'hide() { [ -e "$1/.gitignore" ] || echo "*" > "$1/.gitignore"; }; mkdir -p "$CODEX_HOME" "$TMPDIR"; hide "$w"; '
    + f'p=$2; [ -x "$p" ] || p="{PROGRAMS_IN_BOX}/${{p##*/}}"; q=$1; shift 2; '
    # What judges its calls stands beside its socket, where it cannot write. Without that it does not start.
    + f'd="${{WATCHFLOOR_AGENT_SOCKET%/*}}"; IFS= read -r h < "$d/{HOOKED}" && IFS= read -r m < "$d/{SERVERS}" || exit 1; '
    + f'case $0 in claude-code) set -- "$@" --settings "$d/{HOOKED}" --strict-mcp-config --mcp-config "$d/{SERVERS}";; '
    # What a program of this session may have left there would configure the next one, hooks included.
    + 'codex) rm -f "$CODEX_HOME/config.toml" "$CODEX_HOME/hooks.json"; set -- "$@" -c "$h" -c "$m";; '
    # Its first word configures it, and nothing else does: its folder of settings is new and closed, and it looks for no other home.
    + f'opencode) export OPENCODE_CONFIG_CONTENT="$1" OPENCODE_CONFIG="$d/{HOOKED}" OPENCODE_TEST_HOME="$d"; '
    + "shift; unset OPENCODE_CONFIG_DIR OPENCODE_PERMISSION OPENCODE_PURE; "
    # Its cache is new too: models.json in it names code that it loads, and a program of this session could have written one.
    + 'XDG_CONFIG_HOME="$(mktemp -d)" || exit 1; export XDG_CONFIG_HOME XDG_CACHE_HOME="$XDG_CONFIG_HOME/cache"; '
    + 'export OPENCODE_AUTH_CONTENT="{}"; '
    # It talks to itself over a port of loopback: never through a proxy, and with a password that nobody else on this host has.
    + "IFS= read -r x < /proc/sys/kernel/random/uuid || exit 1; "
    + 'export OPENCODE_SERVER_PASSWORD="$x" NO_PROXY=127.0.0.1 no_proxy=127.0.0.1; '
    + 'mkdir -m 555 "$XDG_CONFIG_HOME/opencode" || exit 1; for x in DATA STATE; do export "XDG_${x}_HOME=$w/opencode/$x"; done; '
    + "".join(f"export OPENCODE_DISABLE_{name}=1; " for name in _OPENCODE_WITHOUT)
    # Its home is new: settings, extensions and policies that a program of this session left would configure the next one. A workspace that
    # it does not trust configures nothing.
    + ';; gemini) y=/usr/bin/python3; [ -x "$y" ] || y="$(command -v python3)" || exit 1; x=$1; shift; '
    + f'set -- -I -S "$d/{GATE}" "$x" "$p" "$@" --admin-policy "$d/{POLICY}"; p=$y; x="$HOME/.gemini/tmp"; '
    + 'GEMINI_CLI_HOME="$(mktemp -d)" && mkdir -p "$x" "$GEMINI_CLI_HOME/.gemini" && ln -s "$x" "$GEMINI_CLI_HOME/.gemini/tmp" '
    + f'&& cp "$d/{HOOKED}" "$GEMINI_CLI_HOME/.gemini/settings.json" || exit 1; hide "$x"; '
    + "export GEMINI_CLI_HOME GEMINI_CLI_TRUST_WORKSPACE=false GEMINI_CLI_NO_RELAUNCH=true; "
    + "unset GEMINI_SYSTEM_MD GEMINI_CLI_INTEGRATION_TEST GEMINI_CLI_TRUSTED_FOLDERS_PATH"
    + ";; *) exit 1;; esac; "
)
# A second shell holds the channel open too, until a line in the other FIFO says that no more comes: whoever writes there may come and go (a
# supervisor that restarts), and the program reads end-of-file when it is told so and not before. The program itself only reads; its end is
# opened while the other is held, so that it waits for nobody.
TALKING = (
    _BEGIN
    + f'd="${{WATCHFLOOR_AGENT_SOCKET%/*}}"; exec 4<>"$d/{CHANNEL}" 5<"$d/{CHANNEL}"; '
    + f'(IFS= read -r x) 0<>"$d/{ENDING}" 5<&- >/dev/null 2>&1 & h=$!; exec 4<&-; '
    + '"$p" "$@" 0<&5 5<&-; c=$?; kill "$h" 2>/dev/null; exit "$c"'
)
ONCE = _BEGIN + 'printf %s "$q" | "$p" "$@"'
SHELLS = {
    "5466351eac2f0bf45c08ff8d43bde996a8dfdec0859f8e8dc4f0d36f3c170dda": True,
    "0ce88061129868005747c51cb217c7d7743abd8ee87c3e79b97c020c963e2cc5": False,
    "613a4fab74f352bcaa0e692f503242929e7715d424255fee6da5a75997efbc73": True,
    "fb06a3a6dacd4fba63b10914facd9fb7878700f431124726bef447bc869f8987": False,
}
"""SHA-256 of each text that any version started programs with -> it takes messages. Agents outlive an upgrade: add, never remove."""


ProgramName = Literal["claude-code", "codex", "opencode", "gemini"]
"""The values of ``Program``, for messages."""


class Program(StrEnum):
    """What ``run --agent`` takes."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    OPENCODE = "opencode"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True)
class Started:
    """What a command line says about a started program."""

    program: Program
    prompt: str
    path: str
    talks: bool
    """It takes messages; else it answers its prompt and ends."""
    words: tuple[str, ...]
    """Its own arguments."""


def command_line(program: Program, prompt: str, path: str, words: tuple[str, ...], *, talks: bool) -> tuple[str, ...]:
    """The agent's command line: a shell that becomes the program, with its own home in the workspace and its input from us."""
    return (_SHELL, "-c", TALKING if talks else ONCE, program.value, prompt, path, *words)


def started_as(argv: tuple[str, ...]) -> Started | None:
    """What ``command_line`` made, of this version or an earlier one; None: something else."""
    if len(argv) < 6 or argv[:2] != (_SHELL, "-c") or argv[3] not in tuple(Program) or (talks := _talks(argv[2])) is None:
        return None
    return Started(Program(argv[3]), argv[4], argv[5], talks, argv[6:])


@functools.lru_cache(maxsize=64)
def _talks(text: str) -> bool | None:
    return SHELLS.get(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def checked_text(text: str) -> str:
    """A message as it may be sent; UsageProblem on an empty, oversized or undecodable one."""
    if not text.strip():
        raise UsageProblem("The message is empty.", "Say something.")
    if len(text) > MOST_MESSAGE:
        raise UsageProblem(f"The message has {len(text):,} characters; at most {MOST_MESSAGE:,} are taken.", "Put it into a file.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageProblem("The message is not valid text.", "Remove the lone surrogate.") from error
    if "\0" in text:
        raise UsageProblem("The message contains a NUL character.", "Remove it.")
    return text


def checked_model(name: str) -> str:
    """A model's name as a program takes it (empty: its own choice); UsageProblem otherwise."""
    if name and not MODEL.match(name):
        raise UsageProblem(
            f"Model {name[:60]!r} is not a model's name.", "Letters, digits and ._:/@-, at most 100, a letter or digit first."
        )
    return name


def why_silent(agent: Agent, *, stopping: bool, over_budget: str) -> str:
    """Return why this agent takes no messages now; empty: it does. ``stopping``: it is being killed. ``over_budget``: the limit it
    reached."""
    started = started_as(agent.argv)
    if started is None:
        return "it was not started as a program that takes messages (watchfloor run --agent ...)"
    if agent.state is AgentState.ALIVE_AFTER_KILL:
        return "it was killed, and its end is not confirmed"
    if not agent.state.is_live:
        reason = f" ({agent.state_reason[:200]})" if agent.state_reason else ""
        return f"it is {agent.state.value.replace('_', ' ')}{reason}"
    if stopping:
        return "it is being killed"
    if over_budget or agent.state is AgentState.OVER_BUDGET:
        return f"it is over its budget ({over_budget[:200] or agent.state_reason[:200] or 'a limit is used up'})"
    if agent.state is AgentState.FROZEN or agent.causes:
        return f"it is frozen ({', '.join(agent.causes)[:200] or 'thaw it first'})"
    if agent.isolated:
        return f"it is isolated ({agent.isolated[:200]}): it has no network, so it cannot reach its model"
    if not started.talks:
        return "it was started with --once: it takes no messages"
    return "it has not started yet" if agent.state is AgentState.STARTING else ""


def what_helps(agent: Agent, *, over_budget: bool) -> str:
    """What an operator may do about ``why_silent``."""
    named = agent.agent_id
    if started_as(agent.argv) is None:
        return f"watchfloor run --agent NAME starts one that listens ({', '.join(Program)})."
    if not agent.state.is_live:
        return "watchfloor run starts another; what was killed: watchfloor run --again, after a rearm if everything was."
    if over_budget or agent.state is AgentState.OVER_BUDGET:
        return f"watchfloor budget list says which limit; watchfloor budget set NAME=VALUE --agent {named} --reason R raises its own."
    if "operator" in agent.causes:
        return f"Let it run first: watchfloor thaw {named}."
    if agent.isolated:
        return f"Give its network back first: watchfloor reconnect {named}."
    started = started_as(agent.argv)
    if started is not None and not started.talks:
        return "Start one without --once."
    return f"watchfloor agent show {named} shows its state."
