"""Verbs of later versions: not listed in --help, and asked by name they say why they are not there."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.options import new_app
from console.domain.errors import Unavailable

Rest = Annotated[list[str] | None, typer.Argument(hidden=True)]
_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

VERBS = {
    "drill": "rehearsals are not built yet; watchfloor demo kills a real fleet of its own",
}


def later_app(name: str) -> typer.Typer:
    """An app that answers what is missing, whatever it is asked."""
    app = new_app()
    add_later(app, name, VERBS[name])
    return app


def add_later(app: typer.Typer, name: str, why: str) -> None:
    """A hidden verb of ``app`` that says why it is not there."""

    def refuse(rest: Rest = None) -> int:
        raise Unavailable(f"{name} is not available in this version, because {why}.", "watchfloor --help lists what is.")

    app.command(name, hidden=True, context_settings=_ANYTHING)(refuse)
