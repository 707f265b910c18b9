"""``watchfloor receipt verify FILE``: whether a sealed receipt is what the host signed. Needs no supervisor and no network."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from console.audit.receipt_seal import verify_file
from console.cli import out
from console.cli.options import Json
from console.cli.plain import moment
from console.domain.errors import ExitCode, NotFound


def verify(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A sealed receipt: receipts/KILL.sealed.json of the state directory.")],
    public: Annotated[
        Path | None,
        typer.Option("--public-key", metavar="FILE", help="The host's public key, best a copy kept elsewhere; else the one beside."),
    ] = None,
    as_json: Json = False,
) -> int:
    """Is this receipt, byte for byte, what the host signed? Exit 0: yes, 1: no, with why."""
    if not path.exists():
        raise NotFound(f"There is no file {path}.", "Sealed receipts are in the state directory: receipts/KILL.sealed.json.")
    verdict = verify_file(path, public)
    if as_json:
        out.emit({"file": str(path), **asdict(verdict)})
    elif verdict.good:
        when = moment(verdict.signed_at or 0.0, "seconds")
        out.show(Text("good: sealed by the host, and unchanged since", "green"))
        out.show(out.words(f"kill {verdict.kill_id}, signed {when} with key {verdict.key_id}", limit=300))
        if public is None:
            out.say("the public key was taken from beside the receipt: compare its id with the one you keep")
    else:
        out.show(out.words(f"NOT GOOD: {verdict.why}", "bold red", 600))
    return int(ExitCode.DONE if verdict.good else ExitCode.FAILURE)
