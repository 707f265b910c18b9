"""The environment an agent starts with: built from nothing, by allowlist (S3). The launcher's own secrets cannot be in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from console.domain.errors import Denied, UsageProblem

PATH = "/usr/local/bin:/usr/bin:/bin"
FROM_LAUNCHER = ("LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "TZ")
"""The only names whose value is taken from the launcher's own environment, and only with a plain value."""

_PLAIN = re.compile(r"^[A-Za-z0-9._:/@+-]{1,64}\Z")
_NAME = re.compile(r"^[A-Z][A-Z0-9_]{0,63}\Z")
_SET_BY_US = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "AGENT_AUTH_TOKEN", "IFS", "ENV", "BASH_ENV"})
_RESERVED_PREFIXES = ("WATCHFLOOR_", "LD_", "GLIBC_", "MALLOC_", "BASH_FUNC", "DBUS_", "SSH_", "DOCKER_", "XDG_", "SUDO_")
_RESERVED_SUFFIXES = ("_PROXY",)
MAX_VALUE = 32_768
MAX_EXTRA = 100


def scrub(
    source_env: Mapping[str, str], extra: Iterable[tuple[str, str]] | Mapping[str, str], agent_vars: Mapping[str, str]
) -> dict[str, str]:
    """The agent's whole environment.

    ``source_env`` is the launcher's own, of which FROM_LAUNCHER alone is read; ``extra`` was asked for with the launch and is
    refused (Denied) where a name is ours or steers the loader, the shell or the network; ``agent_vars`` are the product's
    (WATCHFLOOR_*, proxies, token) and win. HOME is the workspace. Raises UsageProblem on a malformed name or value.
    """
    result = {"LANG": "C.UTF-8", "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh", "PATH": PATH, "PYTHONUNBUFFERED": "1"}
    for name in FROM_LAUNCHER:
        value = source_env.get(name, "")
        if _PLAIN.match(value):
            result[name] = value
    pairs = list(extra.items()) if isinstance(extra, Mapping) else list(extra)
    if len(pairs) > MAX_EXTRA:
        raise UsageProblem(f"More than {MAX_EXTRA} variables were asked for.", "Put them into a file in the workspace.")
    for name, value in pairs:
        result[checked_name(name)] = _checked_value(name, value)
    result.update(agent_vars)
    if workspace := agent_vars.get("WATCHFLOOR_WORKSPACE"):
        result["HOME"] = workspace
    return result


def checked_name(name: str) -> str:
    """``name`` when a launch may set it; UsageProblem or Denied otherwise."""
    if not _NAME.match(name):
        raise UsageProblem(f"Variable name {name[:60]!r} is not valid.", "Use A-Z, 0-9 and _, 1 to 64 characters.")
    if name in _SET_BY_US or name.startswith(_RESERVED_PREFIXES) or name.endswith(_RESERVED_SUFFIXES):
        raise Denied(f"Variable {name} is not for a launch to set.", "It is set by the supervisor, or steers the loader or the shell.")
    return name


def _checked_value(name: str, value: str) -> str:
    if "\0" in value or len(value) > MAX_VALUE:
        raise UsageProblem(f"The value of {name} holds a NUL or is longer than {MAX_VALUE} characters.", "Put it into a file.")
    return value
