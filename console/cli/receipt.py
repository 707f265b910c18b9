"""``watchfloor receipt list | show | verify``: what was killed, when, what was proven, and by whose key it is sealed."""

from __future__ import annotations

from typing import Annotated

from console.cli import out, receipts
from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.plain import moment
from console.cli.receipt_verify import verify
from console.cli.syntax import Argument, Verbs
from console.cli.tables import new_table
from console.domain.errors import ExitCode

app = Verbs("Receipts of kills: what was stopped, and the proof.")


@app.command("list")
def list_receipts(state_dir: StateDir = None, as_json: Json = False) -> int:
    """Receipts, newest first."""
    with connect(state_dir) as client:
        seen = client.receipts()
    if as_json:
        out.emit({"receipts": [r.model_dump() for r in seen.receipts]})
        return 0
    if not seen.receipts:
        out.say("No receipts: nothing was ever killed here.")
        return 0
    table = new_table("KILL", "WHEN", "SCOPE", "RESULT", "SECONDS", "BY", "REASON")
    for row in seen.receipts:
        style = receipts.STYLES.get(ExitCode(row.exit_code), "yellow")
        table.add_row(
            out.words(row.kill_id, limit=70),
            moment(row.pressed_at, "seconds"),
            out.words(row.scope, limit=60),
            out.words(row.short + ("" if row.complete else ", not complete"), style, 100),
            f"{row.ms_total / 1000:.2f}",
            out.words(row.by, limit=40),
            out.words(row.reason, limit=80),
        )
    out.show(table)
    return 0


@app.command("show")
def show(
    kill_id: Annotated[str, Argument(metavar="KILL", help="Its id, as receipt list shows it.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """One receipt whole: steps, targets, survivors."""
    with connect(state_dir) as client:
        receipts.show_receipt(client.receipt(kill_id), as_json=as_json)
    return 0


app.command("verify")(verify)
