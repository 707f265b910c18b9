"""Names of environment variables: which are never passed to an agent, and which look like a secret by name or value. Pure.

The list of words holds what we know: a secret under a harmless name counts as harmless. The allowlist is what protects: a variable that it
does not name is not passed at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.domain.errors import Denied, UsageProblem

PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where an agent finds programs by their names alone: never in a folder that an account may write."""
AGENT_TYPE = re.compile(r"^[a-z0-9][a-z0-9._-]{0,62}\Z")
_NAME = re.compile(r"^[A-Z][A-Z0-9_]{0,63}\Z")
_SET_BY_US = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "AGENT_AUTH_TOKEN", "IFS", "ENV", "BASH_ENV"})
_LOADER = ("LD_", "GLIBC_", "MALLOC_", "GCONV_", "LOCPATH", "NLSPATH")
"""The C library reads these before a program's first instruction, ours that looks around in the sandbox included."""
_RESERVED_PREFIXES = (*_LOADER, "WATCHFLOOR_", "BASH_FUNC", "DBUS_", "SSH_", "DOCKER_", "XDG_", "SUDO_")
_RESERVED_SUFFIXES = ("_PROXY",)
_SECRET_PARTS = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|APIKEY|PRIVATE|COOKIE|BEARER|SIGNATURE|WEBHOOK|CONNECTION_?STRING")
_SECRET_WORDS = frozenset(
    {"KEY", "KEYS", "PASS", "PWD", "AUTH", "PAT", "PIN", "OTP", "SALT", "SEED", "MNEMONIC", "DSN", "CERT", "PEM", "JWT", "SAS", "LICENSE"}
)
_SECRET_VALUE = re.compile(
    r"://[^\s/@:]*:[^\s/@]+@|://[^\s/@:]{12,}@|-----BEGIN [A-Z ]*PRIVATE KEY|\beyJ[\w-]{8,}\.[\w-]+\.|\bAKIA[0-9A-Z]{12}|\bgh[pousr]_\w{16}"
    r"|\bgithub_pat_\w{16}|\bglpat-[\w-]{16}|\bsk-[\w-]{16}|\bxox[a-z]-[\w-]{8}|\bAIza[\w-]{20}|\bnpm_\w{16}|\bhf_\w{16}"
    r"|(?i:\b(?:password|passwd|pwd|secret|token|accountkey|sharedaccesskey|api_?key)\s*=\s*\S)"
)


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of an agent's environment, without its value."""

    name: str
    origin: str
    """``default`` (every agent's), ``type`` (from the supervisor's own, by the agent's type), ``launch``, or ``watchfloor``."""
    secret: bool = False
    """It is a secret, or looks like one: marked wherever it is shown."""


def checked_name(name: str) -> str:
    """``name`` when a launch, or an agent type, may set it; UsageProblem or Denied otherwise."""
    if not _NAME.match(name):
        raise UsageProblem(f"Variable name {name[:60]!r} is not valid.", "Use A-Z, 0-9 and _, 1 to 64 characters.")
    if name in _SET_BY_US or name.startswith(_RESERVED_PREFIXES) or name.endswith(_RESERVED_SUFFIXES):
        raise Denied(f"Variable {name} is not for a launch to set.", "It is set by the supervisor, or steers the loader or the shell.")
    return name


def looks_secret(name: str) -> bool:
    """Whether a name reads as a secret's; errs on that side."""
    upper = name.upper()
    return _SECRET_PARTS.search(upper) is not None or not _SECRET_WORDS.isdisjoint(re.split(r"[^A-Z]+", upper))


def holds_secret(value: str) -> bool:
    """Whether a value reads as a secret, or holds one: credentials in an address, a private key, a token of a known shape."""
    return _SECRET_VALUE.search(value[:65_536]) is not None


def check_agent_type(name: str) -> str:
    """``name`` when it is one; UsageProblem otherwise. Empty: no type."""
    if name and not AGENT_TYPE.match(name):
        raise UsageProblem(f"Agent type {name[:80]!r} is not valid.", "Use a-z, 0-9, '.', '_' and -, 1 to 63 characters.")
    return name
