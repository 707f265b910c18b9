"""The environment an agent starts with: built from nothing, by allowlist. The launcher's own secrets cannot be in it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from console.domain.errors import UsageProblem
from console.domain.process.durable import replace_file
from console.domain.process.environment import PATH, Variable, checked_name, holds_secret, looks_secret

FROM_LAUNCHER = ("LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "TZ")
"""The only names whose value is taken from the launcher's own environment, and only with a plain value."""

_PLAIN = re.compile(r"^[A-Za-z0-9._:/@+-]{1,64}\Z")
_ALWAYS = {"LANG": "C.UTF-8", "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh", "PATH": PATH, "PYTHONUNBUFFERED": "1"}
_OURS_SECRET = frozenset({"AGENT_AUTH_TOKEN"})
GIT_SETTINGS = "gitconfig"
"""Beside the socket of an agent: who its commits are by."""
_HEAD = re.compile(r"\s*\[\s*([^\]]*?)\s*\]")
_AUTHOR = re.compile(r"\s*(name|email)\s*=\s*(\S.{0,199})(?<!\\)", re.IGNORECASE)
_SETTINGS_MAX = 256 * 1024
MAX_VALUE = 32_768
MAX_EXTRA = 100


def scrub(
    source_env: Mapping[str, str],
    extra: Iterable[tuple[str, str]] | Mapping[str, str],
    agent_vars: Mapping[str, str],
    passed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the agent's whole environment. HOME is the workspace.

    It is built from, in this order:

    * ``source_env``: the launcher's own, of which only FROM_LAUNCHER is read.
    * ``passed``: what the agent's type adds (``passed_on``).
    * ``extra``: asked for with the launch. Denied is raised where a name is ours or steers the loader, the shell or the network.
    * ``agent_vars``: the product's (WATCHFLOOR_*, proxies, token). These win.

    Raises UsageProblem on a malformed name or value.
    """
    result = dict(_ALWAYS)
    for name in FROM_LAUNCHER:
        value = source_env.get(name, "")
        if _PLAIN.match(value):
            result[name] = value
    result.update(passed or {})
    pairs = list(extra.items()) if isinstance(extra, Mapping) else list(extra)
    if len(pairs) > MAX_EXTRA:
        raise UsageProblem(f"More than {MAX_EXTRA} variables were asked for.", "Put them into a file in the workspace.")
    for name, value in pairs:
        result[checked_name(name)] = _checked_value(name, value)
    result.update(agent_vars)
    if workspace := agent_vars.get("WATCHFLOOR_WORKSPACE"):
        result["HOME"] = workspace
    return result


def passed_on(source_env: Mapping[str, str], names: Iterable[str], secrets: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return (what an agent's type adds from the launcher's own environment, what of it is left out and why).

    ``names`` never bring a secret along: a variable whose name or value looks like a secret is left out, with the reason. ``secrets`` are
    variables that the setting itself marks as secrets.
    """
    marked = set(secrets)
    found: dict[str, str] = {}
    left: list[str] = []
    for name in dict.fromkeys((*names, *marked)):
        value = source_env.get(name)
        if value is None:
            left.append(f"{name} is not in the supervisor's environment")
        elif name not in marked and looks_secret(name):
            left.append(f"{name} reads as a secret's name and is not marked as one: not passed")
        elif name not in marked and holds_secret(value):
            left.append(f"{name} holds what reads as a secret and is not marked as one: not passed")
        elif len(value) > MAX_VALUE or not _is_text(value):
            left.append(f"{name} is too long or no text: not passed")
        else:
            found[checked_name(name)] = value
    return found, left


def put_author(source_env: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Put git's settings of an agent into its folder, and return the variable that leads git there. Blocks. Raises OSError.

    Its commits are by the person whose environment this is, or by an agent: without a name git refuses to commit. git reads these
    settings before those of the agent's home and of a repository (git-config(1), GIT_CONFIG_SYSTEM), so those still decide.
    """
    home = Path(source_env.get("HOME") or "/")
    usual = (Path(source_env.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config", home / ".gitconfig")
    given = source_env.get("GIT_CONFIG_GLOBAL")
    who = {"name": "agent", "email": "agent@localhost"}
    for file in (Path(given),) if given else usual:
        who |= _author(file)
    text = "[include]\n\tpath = /etc/gitconfig\n[user]\n" + "".join(f"\t{key} = {value}\n" for key, value in who.items())
    replace_file(folder / GIT_SETTINGS, text.encode(), 0o644)
    return {"GIT_CONFIG_SYSTEM": str(folder / GIT_SETTINGS)}


def _author(file: Path) -> dict[str, str]:
    """Name and address of commits, as a person's git settings quote them. git is never asked: it would run what it reads."""
    found, in_section = {}, False
    # Agents without a sandbox may be its owner's: never waited for, and never read beyond what a person writes.
    with (
        contextlib.suppress(OSError, UnicodeDecodeError),
        open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as open_file,
    ):
        for line in open_file.read(_SETTINGS_MAX).decode().splitlines():
            if head := _HEAD.match(line):
                in_section = head[1].lower() == "user"
            elif in_section and (said := _AUTHOR.fullmatch(line)):
                found[said[1].lower()] = said[2]
    return found


def described(
    env: Mapping[str, str], passed: Iterable[str], extra: Iterable[str], agent_vars: Iterable[str], secrets: Iterable[str]
) -> tuple[Variable, ...]:
    """Every name of an environment with where it comes from and whether it is a secret; no value."""
    ours, asked, typed, marked = ({*names} for names in (agent_vars, extra, passed, secrets))
    found = []
    for name in sorted(env):
        origin = "watchfloor" if name in ours else "launch" if name in asked else "type" if name in typed else "default"
        secret = name in _OURS_SECRET or (origin == "type" and name in marked) or looks_secret(name) or holds_secret(env[name])
        found.append(Variable(name, origin, secret))
    return tuple(found)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _checked_value(name: str, value: str) -> str:
    if "\0" in value or len(value) > MAX_VALUE:
        raise UsageProblem(f"The value of {name} holds a NUL or is longer than {MAX_VALUE} characters.", "Put it into a file.")
    return value
