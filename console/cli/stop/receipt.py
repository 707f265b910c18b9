"""``watchfloor receipt list | show | verify``: what was killed, when, what was proven, and by whose key it is sealed."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from console.audit.receipt_seal import SealVerdict, key_beside, verify_file
from console.audit.retirement import HOST, worth
from console.audit.verify_presence import compare, retired_keys
from console.cli.link import connect
from console.cli.options import Json, StateDir
from console.cli.shaping import shaped
from console.cli.stop import receipt_text
from console.cli.syntax import UNSHAPED, Argument, Option, Shape, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import Text, new_table
from console.domain.errors import ExitCode, NotFound
from console.domain.process.account import named_here
from console.wording.limits import with_limits

# --- ``watchfloor receipt verify FILE``: whether a sealed receipt is what the host signed. Needs no supervisor and no network.


@example("20260102-030405-00000001.sealed.json")
def verify(
    path: Annotated[Path, Argument(metavar="FILE", help="A sealed receipt: receipts/KILL.sealed.json of the state directory.")],
    public: Annotated[
        Path | None,
        Option(
            "--public-key", metavar="FILE", help="The host's public key, best a copy kept elsewhere. Without: the key beside the receipt."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Is this receipt, byte for byte, what the host signed? Exit 0: yes, 1: no, with why."""
    if not path.exists():
        raise NotFound(f"There is no file {path}.", "Sealed receipts are in the state directory: receipts/KILL.sealed.json.")
    if public is None and not os.access(key_beside(path), os.R_OK):
        # Nothing was found out about the receipt: that is not "not good".
        words = f"There is no public key beside the receipt that you can read: {plain(key_beside(path), 300)}."
        raise NotFound(words, "Name a copy of the host's with --public-key. Or ask its supervisor: watchfloor audit verify --receipt FILE")
    verdict = _judged(path, public)
    if as_json:
        out.emit({"file": str(path), **asdict(verdict)})
    elif verdict.good:
        when = moment(verdict.signed_at or 0.0, "seconds")
        out.show(Text("good: sealed by the host, and unchanged since", "green"))
        out.show(out.words(f"kill {verdict.kill_id}, signed {when} with key {verdict.key_id}", limit=300))
        if verdict.retired:
            out.show(out.words(f"its key was retired since; this seal was on record before that: {worth(HOST)}", "yellow", 300))
        if verdict.audit_head is not None:
            out.say(
                f"sealed behind record {verdict.audit_head[0]} of the audit log; audit verify --receipt looks whether it is still there"
            )
        if public is None:
            out.say("the public key lay beside the receipt: compare its id with the one that you keep")
    else:
        out.show(out.words(f"NOT GOOD: {verdict.why}", "bold red", 600))
    return int(ExitCode.DONE if verdict.good else ExitCode.FAILURE)


def _judged(path: Path, public: Path | None) -> SealVerdict:
    """By file and key; where the log lies beside, a key that was retired is known, and counts only for what was on record before."""
    log = path.absolute().parent.parent / "audit.db"
    retired = {key: found.raw() for key, found in retired_keys(log).items() if found.role == HOST} if public is None else {}
    verdict = verify_file(path, public, retired)
    if verdict.good and verdict.retired and (why := compare(log, [path]).why):
        return replace(verdict, good=False, why=why)
    return verdict


app = Verbs("Receipts of kills: what was stopped, and the proof.", shows="show")


@app.command("list")
def list_receipts(shape: Shape = UNSHAPED, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Receipts, newest first."""
    with connect(state_dir) as client:
        seen = client.receipts()
    if as_json:
        out.emit({"receipts": [r.as_data() for r in seen.receipts]})
        return 0
    if not seen.receipts:
        out.say("No receipts: nothing was ever killed here.")
        return 0
    table = new_table("KILL", "WHEN", "SCOPE", "RESULT", "SECONDS", "BY", "REASON")
    for row in seen.receipts:
        style = receipt_text.STYLES.get(ExitCode(row.exit_code), "yellow")
        table.add_row(
            out.words(row.kill_id, limit=70),
            moment(row.pressed_at, "seconds"),
            out.words(row.scope, limit=60),
            out.words(row.short + ("" if row.complete else ", not complete"), style, 100),
            "-" if row.proven_ms is None else f"{row.proven_ms / 1000:.2f}",
            out.words(named_here(row.by), limit=120),
            out.words(with_limits(row.reason), limit=80),
        )
    out.show(shaped(table, shape))
    return 0


@app.command("show")
@example("20260102-030405-00000001")
def show(
    kill_id: Annotated[str, Argument(metavar="KILL", help="Its id, as receipt list shows it.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """One receipt whole: steps, targets, survivors."""
    with connect(state_dir) as client:
        receipt_text.show_receipt(client.receipt(kill_id), as_json=as_json)
    return 0


app.command("verify")(verify)
