"""The options as a page of documentation: ``python -m console.settings.reference > docs/reference/settings.md``."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from console.settings.options import EnvironmentOptions, Options

_HEAD = """# Settings

Watchfloor reads `settings.json` in the state directory when the supervisor starts. A mistake in it is named with its field, and
nothing is started. A name with a dot stands in a section: `{"workspaces": {"ttl_days": 3}}` is `workspaces.ttl_days`.

What `watchfloor supervisor --help` names can be given on the command line instead, and is then written into the file.
Two things have files of their own: the plan of the rotation ([secrets](../how-to/secrets.md)), and what an agent type may use
([sandboxes](sandboxes.md)).

A program makes this page from the options: `python -m console.settings.reference > docs/reference/settings.md`.

| option | default | what it is |
|---|---|---|
"""


def page() -> str:
    """All of it, as Markdown."""
    rows = [*_rows(Options, ""), *_rows(EnvironmentOptions, "environment.TYPE.")]
    return _HEAD + "".join(f"| `{name}` | {default} | {words} |\n" for name, default, words in rows)


def _rows(section: type[BaseModel], lead: str) -> list[tuple[str, str, str]]:
    rows = []
    for name, field in section.model_fields.items():
        default: Any = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            rows += _rows(type(default), f"{lead}{name}.")
        else:
            shown = f"`{json.dumps(default)}`" if default not in ("", [], {}) else "-"
            rows.append((lead + name, shown, (field.description or "").replace("|", "\\|")))
    return rows


if __name__ == "__main__":
    print(page(), end="")
