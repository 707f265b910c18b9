"""The endpoints as a page of documentation: ``python -m console.api.reference > docs/reference/endpoints.md``."""

from __future__ import annotations

from typing import Any

from console.api.endpoints import ENDPOINTS, ByWord, Endpoint
from console.domain.roles.rights import GIVEN_BY, Right

_HEAD = """# Endpoints

What `operator.sock` of a supervisor answers, over HTTP. [JSON](json.md) describes the answers.

*Needs* names the smallest role that may ask on the host's instance; `root` is root alone, or who polkit allows.
Everywhere else the owner of the instance may ask for everything.
*While killed* says whether it is served between a panic and the rearm. What is not served then answers 503.

A program makes this page from the table of endpoints: `python -m console.api.reference > docs/reference/endpoints.md`.

| endpoint | needs | while killed | takes | what it is |
|---|---|---|---|---|
"""


def page() -> str:
    """All of it, as Markdown."""
    return _HEAD + "".join(_row(row) for row in ENDPOINTS)


def _row(row: Endpoint[Any, Any]) -> str:
    takes = "-" if row.body is type(None) else ", ".join(f"`{name}`" for name in row.body.field_names()) or "`{}`"
    return f"| `{row.name}` | {_needs(row.right)} | {'served' if row.is_open else '-'} | {takes} | {row.what} |\n"


def _needs(right: Right | ByWord) -> str:
    if isinstance(right, Right):
        return GIVEN_BY[right].value if right in GIVEN_BY else "root"
    return ", ".join(f"{word}: {_needs(one)}" for word, one in right.rights.items())


if __name__ == "__main__":
    print(page(), end="")
