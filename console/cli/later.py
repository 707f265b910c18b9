"""Verbs of later versions: not listed in --help, and asked by name they say why they are not there."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.options import new_app
from console.domain.errors import ExitCode, Unavailable

Rest = Annotated[list[str] | None, typer.Argument(hidden=True)]
_ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

VERBS = {
    "drill": "rehearsals are not built yet; watchfloor demo kills a real fleet of its own",
    "hook": "decisions for Claude Code and Codex are not built yet",
}


def later_app(name: str) -> typer.Typer:
    """An app that answers what is missing, whatever it is asked."""
    app = new_app()
    add_later(app, name, VERBS[name])
    return app


def add_later(app: typer.Typer, name: str, why: str) -> None:
    """A hidden verb of ``app`` that says why it is not there."""

    def refuse(rest: Rest = None) -> int:
        error = Unavailable(f"{name} is not available in this version, because {why}.", "watchfloor --help lists what is.")
        if name == "hook":
            # The one verb whose caller goes on after any failure but 2 (Claude Code: other codes do not block); deny is the default.
            error.exit_code = ExitCode.USAGE
        raise error

    app.command(name, hidden=True, context_settings=_ANYTHING)(refuse)
