"""The endpoints as a page of documentation: ``python -m console.api.reference > docs/reference/endpoints.md``."""

from __future__ import annotations

from typing import Any

from console.api.agent_endpoints import AGENT_ENDPOINTS
from console.api.endpoints import ENDPOINTS, ByWord, Endpoint
from console.domain.roles.rights import GIVEN_BY, Right

_HEAD = """# Endpoints

What `operator.sock` of a supervisor answers, over HTTP. [JSON](json.md) describes the answers.

*Needs* names the smallest role that may ask on the host's instance; `root` is root alone, or who polkit allows.
Everywhere else the owner of the instance may ask for everything.
*While killed* says whether it is served between a panic and the rearm. What is not served then answers 503.

A program makes this page from the two tables of endpoints: `python -m console.api.reference > docs/reference/endpoints.md`.

| endpoint | needs | while killed | takes | what it is |
|---|---|---|---|---|
"""

_AGENTS = """
## What an agent can ask

Each started agent has a socket of its own, in its variable `WATCHFLOOR_AGENT_SOCKET`.
`console/integrations/client.py` speaks to it in Python.
None of these endpoints grants, approves, releases or stops anything. While killed, and once the agent has ended, each one answers 503.

| endpoint | takes | what it is |
|---|---|---|
"""


def page() -> str:
    """All of it, as Markdown."""
    agents = "".join(f"| `{row.name}` | {_takes(row.body)} | {row.what} |\n" for row in AGENT_ENDPOINTS)
    return _HEAD + "".join(_row(row) for row in ENDPOINTS) + _AGENTS + agents


def _row(row: Endpoint[Any, Any]) -> str:
    return f"| `{row.name}` | {_needs(row.right)} | {'served' if row.is_open else '-'} | {_takes(row.body)} | {row.what} |\n"


def _takes(body: type[Any]) -> str:
    return "-" if body is type(None) else ", ".join(f"`{name}`" for name in body.field_names()) or "`{}`"


def _needs(right: Right | ByWord) -> str:
    if isinstance(right, Right):
        return GIVEN_BY[right].value if right in GIVEN_BY else "root"
    return ", ".join(f"{word}: {_needs(one)}" for word, one in right.rights.items())


if __name__ == "__main__":
    print(page(), end="")
