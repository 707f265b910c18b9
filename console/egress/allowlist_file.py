"""The allowlist as a file that people review and keep in version control: strict YAML, read by hand and written by us.

::

    watchfloor_allowlist: 1
    entries:
      - host: api.example.com        # port 443 when not given
        reason: model API
        owner: platform team
        review_by: "2031-01-31"
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import yaml

from console.domain.errors import UsageProblem
from console.domain.network import AllowlistEntry, Sensitivity
from console.policy.sequences.strict_yaml import read_yaml

VERSION = 1
TEXT_MAX = 1 << 20
# Measured: Envoy takes over a second to read 10,000 entries at each edit.
ENTRIES_MAX = 5_000
_KEY = "watchfloor_allowlist"
_FIELDS = {f.name for f in fields(AllowlistEntry)} - {"entry_id"}
_LISTS = ("methods", "paths", "private_networks")


@dataclass(frozen=True, slots=True)
class AllowlistFile:
    """The content of a file. The caller gives the entries their ids."""

    entries: tuple[AllowlistEntry, ...]


def read_file(text: str) -> AllowlistFile:
    """Every entry checked as one that is typed in. Raises UsageProblem with line or entry and field."""
    if len(text) > TEXT_MAX:
        raise UsageProblem(f"The file has more than {TEXT_MAX // 1024} KiB.", "Split it.")
    raw = read_yaml(text, "Fix it, or export the live list.")
    # True equals 1 in Python, so "watchfloor_allowlist: yes" would pass as version 1.
    if not isinstance(raw, dict) or raw.get(_KEY) != VERSION or isinstance(raw.get(_KEY), bool):
        raise UsageProblem(f"Not an allowlist: it must begin with '{_KEY}: {VERSION}'.", "Export the live list to see the form.")
    _only(raw, {_KEY, "entries"}, "The file")
    entries = raw.get("entries")
    if not isinstance(entries, list) or len(entries) > ENTRIES_MAX:
        raise UsageProblem(f"'entries' must be a list of at most {ENTRIES_MAX}.", "An empty list is written as: entries: []")
    return AllowlistFile(tuple(_entry(number, item) for number, item in enumerate(entries, 1)))


def _entry(number: int, item: object) -> AllowlistEntry:
    name = f"Entry {number}"
    if not isinstance(item, dict):
        raise UsageProblem(f"{name} is not a mapping.", "Write it as - host: ...")
    name = f"{name} ({str(item.get('host', 'no host'))[:80]})"
    _only(item, _FIELDS, name)
    values: dict[str, Any] = {"entry_id": "draft"}
    for key, value in item.items():
        values[key] = _value(name, key, value)
    if "host" not in values:
        raise UsageProblem(f"{name}: host is missing.", "Give the DNS name.")
    entry = AllowlistEntry(**values)
    try:
        entry.check()
    except UsageProblem as error:
        raise UsageProblem(f"{name}: {error}", error.remedy) from error
    return entry


def _value(name: str, key: str, value: object) -> Any:
    if key in _LISTS:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise UsageProblem(f"{name}: {key} must be a list of text.", f"Write {key}: [...]")
        return tuple(value)
    if key == "port":
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageProblem(f"{name}: port must be a number.", "Write port: 443")
        return value
    if not isinstance(value, str):
        raise UsageProblem(f"{name}: {key} must be text.", f'Write {key}: "..." in quotes.')
    if key == "may_receive":
        # Not read_sensitivity: an unknown value would read as SECRET, which is the loosest thing a destination may receive.
        try:
            return Sensitivity(value)
        except ValueError as error:
            raise UsageProblem(f"{name}: may_receive {value[:40]!r} is not a data class.", f"Use {', '.join(Sensitivity)}.") from error
    return value


def _only(raw: dict[Any, Any], known: set[str], name: str) -> None:
    for key in raw:
        if not isinstance(key, str) or key not in known:
            raise UsageProblem(f"{name}: {str(key)[:60]!r} is not a field.", f"Known are {', '.join(sorted(known))}.")


def write_file(entries: tuple[AllowlistEntry, ...]) -> str:
    """The same form; fields at their defaults are left out."""
    items = []
    for entry in entries:
        item: dict[str, Any] = {}
        for f in fields(AllowlistEntry):
            value = getattr(entry, f.name)
            if f.name == "entry_id" or (value == f.default and f.name not in ("host", "reason", "owner")):
                continue
            item[f.name] = list(value) if isinstance(value, tuple) else value.value if isinstance(value, Sensitivity) else value
        items.append(item)
    return str(yaml.safe_dump({_KEY: VERSION, "entries": items}, sort_keys=False, allow_unicode=False, width=120))
