"""Prints the command line's verbs, options and help as JSON. Runs in the staged interpreter, where the product can be imported."""

from __future__ import annotations

import json
from typing import Any

import typer.main

from console.cli.main import app


def told(command: Any, context: Any, name: str) -> dict[str, Any]:
    """One verb with its options and the verbs below it."""
    own = context.__class__(command, parent=context, info_name=name)
    parameters = [
        {
            "names": [*p.opts, *p.secondary_opts],
            "metavar": "" if getattr(p, "is_flag", False) else p.metavar or p.name.upper(),
            "help": getattr(p, "help", None) or "",
            "is_argument": p.param_type_name == "argument",
        }
        for p in command.params
        if not getattr(p, "hidden", False)
    ]
    below = [told(command.get_command(own, n), own, n) for n in command.list_commands(own)] if hasattr(command, "list_commands") else []
    return {"name": name, "help": command.help or "", "parameters": parameters, "below": below}


root = typer.main.get_command(app)
print(json.dumps(told(root, root.make_context("watchfloor", ["--version"], resilient_parsing=True), "watchfloor")))
