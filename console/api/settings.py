"""Messages of the settings: every key with its value, origin and lock, and a change of one."""

from __future__ import annotations

from typing import Any

from console.api.message import SCHEMA_VERSION, Name, Reason, Request, View


class SettingRow(View, kw_only=True):
    """One setting."""

    key: str
    group: str = ""
    group_words: str = ""
    words: str = ""
    kind: str = "text"
    """bool, int, float, text, choice, list or table."""
    choices: list[str] = []
    takes: str = ""
    """What values it takes, in words."""
    unit: str = ""
    value: Any = None
    """In force now."""
    default: Any = None
    origin: str = ""
    """Where the value of the files comes from: ``FILE:LINE``, or ``built-in default``."""
    layer: str = "default"
    """default, administrator, account, environment or last."""
    locked_by: str = ""
    """The file and line that lock it; empty: it can be changed."""
    is_waiting: bool = False
    """The files say another value, which takes effect at the next start."""
    next_value: Any = None


class SettingsView(View, kw_only=True):
    """GET /api/settings."""

    schema_version: int = SCHEMA_VERSION
    file: str = ""
    """The account's own file."""
    trouble: str = ""
    """What is wrong with the files, or waits for the next start; empty: nothing."""
    rows: list[SettingRow] = []


class SettingBody(Request, kw_only=True):
    """POST /api/settings: a value for one key, or with ``reset`` none in the account's file."""

    key: Name
    value: Any = None
    reset: bool = False
    reason: Reason
