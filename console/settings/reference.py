"""The options as a page of documentation: ``python -m console.settings.reference > docs/reference/settings.md``."""

from __future__ import annotations

import json

from console.settings.options import EnvironmentOptions
from console.settings.table import KEYS, Key, rows_of

_HEAD = """# Settings

Settings come in layers, and a later one wins:

1. the built-in default
2. `/etc/watchfloor/watchfloor.toml`
3. `/etc/watchfloor/conf.d/*.toml`, in the order of their names
4. `settings.json` in the state directory, the account's own file
5. `DOCKER_HOST`, where no file sets `engine_socket`

What `watchfloor supervisor --help` names can be given on the command line instead, and is then written into the account's file.
Files of the administrator can lock settings: then nothing after them counts. [Settings for administrators](../how-to/settings.md) says how.

`watchfloor config show --origin` shows each setting with its value, the file and line it comes from, and what locks it.
`watchfloor config check` names every mistake. Settings take effect when the supervisor starts. A mistake is named with its field.
In the account's file a mistake starts nothing. In a file of the administrator the last good settings count, and no agent starts.

A name with a dot stands in a section. `workspaces.ttl_days` is `{"workspaces": {"ttl_days": 3}}` in the account's file, and in TOML:

```toml
[workspaces]
ttl_days = 3
```

Two things have files of their own: the plan of the rotation ([secrets](../how-to/secrets.md)), and what an agent type may use
([sandboxes](sandboxes.md)).

A program makes this page from the options: `python -m console.settings.reference > docs/reference/settings.md`.

| option | default | takes | what it is |
|---|---|---|---|
"""


def page() -> str:
    """All of it, as Markdown."""
    rows = [_row(key.name, _default(key), key.takes, key.words) for key in KEYS.values()]
    rows += [_row(f"environment.TYPE.{key.name}", "-", key.takes, key.words) for key in rows_of(EnvironmentOptions)]
    return _HEAD + "".join(rows)


def _row(name: str, default: str, takes: str, words: str) -> str:
    return f"| `{name}` | {default} | {takes} | {words.replace('|', '&#124;')} |\n"


def _default(key: Key) -> str:
    return f"`{json.dumps(key.default)}`" if key.default not in ("", [], {}) else "-"


if __name__ == "__main__":
    print(page(), end="")
