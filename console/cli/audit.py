"""``watchfloor audit tail | verify | export``: reads the log itself, so it works with the supervisor down."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from console.api.client import ApiClient
from console.audit.on_record import compare
from console.audit.reading import AuditReader
from console.audit.receipt_seal import SUFFIX
from console.audit.record import Record
from console.audit.verify import Verdict, verify_file
from console.cli import out
from console.cli.options import Json, StateDir, existing_places, new_app
from console.cli.plain import moment, plain
from console.domain.errors import ConsoleError, ExitCode, NotFound
from console.settings.places import Places

app = new_app("The append-only record of who did what, hash-chained.", no_args_is_help=True)
_LOOK_S = 0.5


@app.command("tail")
def tail(
    count: Annotated[int, typer.Option("--count", "-n", min=0, max=200, help="Records shown first.")] = 20,
    text: Annotated[str, typer.Option("--filter", metavar="TEXT", help="Only records that hold it.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones until Ctrl-C.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """The newest records, oldest of them first. With --follow and --json: one record a line."""
    reader = AuditReader(existing_places(state_dir).audit_db)
    records = list(reversed(reader.page(limit=count, query=text))) if count else []
    if as_json and not follow:
        out.emit({"total": reader.total(), "records": [asdict(r) for r in records]})
        return 0
    for record in records:
        _show(record, as_json)
    last = records[-1].seq if records else reader.total()
    while follow and not out.gone():
        time.sleep(_LOOK_S)
        for record in _after(reader, last, text):
            _show(record, as_json)
            last = record.seq
    return 0


@app.command("verify")
def verify(
    receipts: Annotated[
        list[Path] | None,
        typer.Option("--receipt", metavar="FILE", help="Repeatable: a sealed receipt kept elsewhere; its seal must be on record here."),
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Is the record whole? Every hash, link and checkpoint, what the running supervisor remembers, and the seals of receipts.

    Exit 0: whole, 1: not, with the first bad record.
    """
    places = existing_places(state_dir)
    path = places.audit_db
    if not path.exists():
        raise NotFound(f"There is no audit log at {path}.", "Name the state directory with --state-dir.")
    for file in receipts or ():
        if not file.exists():
            raise NotFound(f"There is no file {file}.", "Sealed receipts are in the state directory: receipts/KILL.sealed.json.")
    verdict, compared = _judged(places, receipts or [])
    if as_json:
        out.emit(asdict(verdict) | {"compared_with": compared})
    elif verdict.whole:
        out.show(Text(f"whole: {verdict.records} records, head {verdict.head[:16]}…", "green"))
        out.say(f"compared with {', '.join(compared)}")
    else:
        out.show(out.words(f"NOT WHOLE: {verdict.why}", "bold red", 500))
        out.say(f"{verdict.records} records were read; first bad record: {verdict.first_bad or 'not known'}")
    return int(ExitCode.DONE if verdict.whole else ExitCode.FAILURE)


def _judged(places: Places, kept: list[Path]) -> tuple[Verdict, list[str]]:
    """The file by itself first; then what else remembers it: whoever can write file and checkpoints can put both back to older ones."""
    verdict = verify_file(places.audit_db)
    compared = [f"its checkpoints (the newest at record {verdict.checkpoint_seq})"]
    if not verdict.whole:
        return verdict, compared
    try:
        said = ApiClient(places).verify_audit()
    except ConsoleError as error:
        compared.append(f"no supervisor's memory ({plain(error.what, 200)})")
    else:
        compared.append("what the running supervisor remembers")
        if not said.whole:
            return replace(verdict, whole=False, records=said.records, first_bad=said.first_bad, why=said.why), compared
    own = sorted(path for path in places.receipts_dir.glob(f"*{SUFFIX}") if path.is_file())
    found = compare(places.audit_db, [*own, *kept], places.keys_dir / "host-key.pub")
    compared.append(f"{found.receipts} sealed receipts")
    return (replace(verdict, whole=False, why=found.why) if found.why else verdict), compared


@app.command("export")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; an existing file is not overwritten.")],
    fmt: Annotated[str, typer.Option("--format", metavar="FORMAT", help="jsonl (exact) or csv (for people).")] = "jsonl",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Write all records, oldest first."""
    reader = AuditReader(existing_places(state_dir).audit_db)
    reader.total()  # says what is wrong with the log before a file is made
    try:
        with file.open("x", encoding="utf-8", newline="") as stream:
            count = reader.export(stream, fmt)
    except FileExistsError as error:
        raise ConsoleError(f"{file} is already there.", "Name a new file.") from error
    except ConsoleError:
        file.unlink(missing_ok=True)
        raise
    if as_json:
        out.emit({"records": count, "file": str(file.absolute())})
    else:
        out.say(f"{count} records written to {file}")
    return 0


def _after(reader: AuditReader, last: int, text: str) -> list[Record]:
    """Records newer than ``last``, oldest first, however many came."""
    found: list[Record] = []
    before: int | None = None
    while page := reader.page(before=before, query=text):
        new = [r for r in page if r.seq > last]
        found += new
        if len(new) < len(page):
            break
        before = page[-1].seq
    return found[::-1]


def _show(record: Record, as_json: bool) -> None:
    if as_json:
        out.emit_line(asdict(record))
        return
    when = moment(record.at, "seconds")
    verdict = f" [{plain(record.verdict, 20)}]" if record.verdict else ""
    agent = f" {plain(record.agent_id, 70)}" if record.agent_id else ""
    out.say(f"{record.seq:>6}  {when}  {plain(record.actor, 60)}  {plain(record.kind, 60)}{agent}{verdict}  {plain(record.what, 300)}")
