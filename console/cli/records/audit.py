"""``watchfloor audit tail | verify | export``: reads the log itself, so it works with the supervisor down.

A member of the roles' groups can read no file of the host's instance: there the supervisor is asked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Annotated

from console.api.client.api_client import ApiClient
from console.audit.anchors import Anchor, anchor_of
from console.audit.reading import PAGE_MAX, AuditReader, not_intact
from console.audit.receipt_seal import read_given
from console.audit.record import Record
from console.audit.verify import Verdict, verify_file
from console.audit.verify_verdict import Judged, beside
from console.cli.options import Json, StateDir, existing_places
from console.cli.syntax import Argument, Option, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import Text
from console.domain.errors import ConsoleError, ExitCode, NotFound, UsageProblem
from console.domain.process.account import named_here
from console.domain.words import counted
from console.settings.places import Places

app = Verbs("The append-only record of who did what, hash-chained.", shows="verify")
_LOOK_S = 0.5
REASON_LENGTH = 500


@app.command("tail")
@example("-n 50 --follow")
def tail(
    count: Annotated[int, Option("--rows", "-n", min=0, max=200, help="Records shown first.")] = 20,
    text: Annotated[str, Option("--filter", metavar="TEXT", help="Only records that hold it.")] = "",
    follow: Annotated[bool, Option("--follow", "-f", help="Go on with new ones until Ctrl-C.")] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """The newest records, oldest of them first. With --follow and --json: one record a line."""
    reader = _reader(existing_places(state_dir))
    records = list(reversed(reader.page(limit=count, query=text))) if count else []
    if as_json and not follow:
        out.emit({"total": reader.total(), "records": [asdict(r) for r in records]})
        return 0
    for record in records:
        _show(record, as_json)
    if text and not records and not follow:
        out.note("No records match the filter.")
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
        Option("--receipt", metavar="FILE", help="Repeatable: a sealed receipt kept elsewhere; the log must still lead to it."),
    ] = None,
    anchors: Annotated[
        list[str] | None,
        Option("--anchor", metavar="N:HASH", help="Repeatable: what this verb printed earlier, kept elsewhere; still in the log?"),
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Is the record whole? Every hash, link and checkpoint, the running supervisor's memory, seals of receipts, anchors, rollback records.

    Exit 0: whole; 1: not, with the first bad record; 5: whole, but something of before it, or beside it, cannot be told.
    """
    places = existing_places(state_dir)
    path = places.audit_db
    given = [anchor_of(text) for text in anchors or ()]
    if not places.by_role and not path.exists():
        raise NotFound(f"There is no audit log at {path}.", "Name the state directory with --state-dir.")
    for file in receipts or ():
        if not file.exists():
            raise NotFound(f"There is no file {file}.", "Sealed receipts are in the state directory: receipts/KILL.sealed.json.")
    seen = judge(places, receipts or [], given)
    if as_json:
        more = {"compared_with": seen.compared, "unknown": seen.unknown, "retired": seen.retired, "anchor": seen.anchor}
        out.emit(asdict(seen.verdict) | more)
    else:
        _print_verdict(seen)
    return int(exit_code(seen))


def _print_verdict(seen: Judged) -> None:
    verdict = seen.verdict
    if verdict.whole:
        words = f"log intact: {counted(verdict.records, 'record')}, head {verdict.head[:16]}…"
        out.show(Text(words, "yellow" if seen.unknown else "green"))
        out.say(f"compared with {', '.join(seen.compared)}")
        out.say(f"kept elsewhere, this line betrays a later rewrite: --anchor {seen.anchor}")
    else:
        out.show(out.words(f"LOG NOT INTACT: {verdict.why}", "bold red", 500))
        out.say(f"{counted(verdict.records, 'record')} read; first bad record: {verdict.first_bad or 'not known'}")
    for words in seen.retired:
        out.show(out.words(words, limit=500))
    for words in seen.unknown:
        out.show(out.words(f"not known: {words}", "yellow", 500))


@app.command("acknowledge")
@example("--reason 'the disk was restored from yesterday'")
def acknowledge(
    reason: Annotated[str, Option("--reason", metavar="WORDS", help="What you found out about the lost records; recorded.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Take note of records that were lost. Until then the log is shown as not intact everywhere. Exit 1 when nothing was lost."""
    if not reason.strip() or len(reason) > REASON_LENGTH:
        raise UsageProblem(f"A reason has 1 to {REASON_LENGTH} characters.", 'For example: --reason "disk failure, ticket 4711"')
    with ApiClient(existing_places(state_dir)) as client:
        verdict = client.acknowledge_loss(reason)
    if as_json:
        out.emit(verdict.as_data())
    else:
        out.say("acknowledged; " + ("the log is intact from here on" if verdict.whole else f"still not intact: {plain(verdict.why, 300)}"))
    return 0


@app.command("export")
@example("audit.jsonl")
def export(
    file: Annotated[Path, Argument(metavar="FILE", help="Where to write it; an existing file is not overwritten.")],
    fmt: Annotated[str, Option("--format", metavar="FORMAT", help="jsonl (exact) or csv (for people).")] = "jsonl",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Write all records, oldest first."""
    places = existing_places(state_dir)
    reader = _reader(places)
    reader.total()  # says what is wrong with the log before a file is made
    verdict = judge(places, [], []).verdict
    try:
        with file.open("x", encoding="utf-8", newline="") as stream:
            count = reader.export(stream, fmt, "" if verdict.whole else verdict.why)
    except FileExistsError as error:
        raise ConsoleError(f"{file} is already there.", "Name a new file.") from error
    except ConsoleError:
        file.unlink(missing_ok=True)
        raise
    if as_json:
        out.emit({"records": count, "file": str(file.absolute())})
    else:
        out.say(f"{counted(count, 'record')} written to {file}")
    return 0


class _HostsLog:
    """The log of the host's instance, as its supervisor gives it: page, total and export are those of the reader of a file."""

    def __init__(self, places: Places) -> None:
        self._client = ApiClient(places)

    def page(self, before: int | None = None, limit: int = PAGE_MAX, query: str = "") -> list[Record]:
        return [Record(**row.as_data()) for row in self._client.audit(before=before, limit=limit, q=query).rows]

    def total(self) -> int:
        return self._client.audit(limit=1).total

    def export(self, target: IO[str], fmt: str, why: str) -> int:
        """Raises Denied without the role. What the supervisor wrote is taken as it is: the same bytes that root's export has."""
        count, piece = 0, self._client.export_audit(fmt, 0)
        while True:
            target.write(piece.text)
            count += piece.records
            if not piece.records:
                break
            piece = self._client.export_audit(fmt, piece.last)
        if why:
            not_intact(target, fmt, why)
        return count


def _reader(places: Places) -> AuditReader | _HostsLog:
    return _HostsLog(places) if places.by_role else AuditReader(places.audit_db)


def _after(reader: AuditReader | _HostsLog, last: int, text: str) -> list[Record]:
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
    actor = plain(named_here(record.actor), 120)
    out.say(f"{record.seq:>6}  {when}  {actor}  {plain(record.kind, 60)}{agent}{verdict}  {plain(record.what, 300)}")


# --- What ``watchfloor audit verify`` finds: the file by itself, then what the running supervisor remembers, then everything else here.


def judge(places: Places, kept: Sequence[Path], anchors: Sequence[Anchor]) -> Judged:
    """Check the log file first, then compare it with what is known elsewhere. Never raises because of the content."""
    if places.by_role:
        return _judged_by_supervisor(places, kept, anchors)
    # The file alone proves little: a writer of the file and its checkpoints can restore old copies of both, or rewrite both.
    verdict = verify_file(places.audit_db)
    compared = [f"its checkpoints (the newest at record {verdict.checkpoint_seq})"]
    if not verdict.whole:
        return Judged(verdict, tuple(compared))
    found = beside(places, verdict, kept, anchors)
    try:
        said = ApiClient(places).verify_audit()
    except ConsoleError as error:
        compared.append(f"no supervisor's memory ({plain(error.what, 200)})")
    else:
        compared.append("what the running supervisor remembers")
        if not said.whole:  # its memory names the first bad record
            worse = replace(found.verdict, whole=False, records=said.records, first_bad=said.first_bad, why=said.why)
            found = replace(found, verdict=worse)
    return replace(found, compared=(*compared, *found.compared))


def _judged_by_supervisor(places: Places, kept: Sequence[Path], anchors: Sequence[Anchor]) -> Judged:
    """The supervisor's own word, with each receipt and all anchors. Raises what the client raises, and UsageProblem for a file."""
    from console.api.records import RECEIPT_MAX, VerifyBody

    sent = [f"{anchor.seq}:{anchor.hash}" for anchor in anchors]
    given = [read_given(file, RECEIPT_MAX) for file in kept]
    with ApiClient(places) as client:
        asked = [VerifyBody(receipt=one.raw.decode(errors="replace"), name=one.name, anchors=sent) for one in given]
        answers = [client.verify_audit(body) for body in asked or [VerifyBody(anchors=sent)]]
    # The first that is not whole counts. What one answer could not tell stays unknown.
    worst = next((one for one in answers if not one.whole), answers[-1])
    verdict = Verdict(worst.whole, worst.records, worst.first_bad, worst.why, worst.head)
    lists = [[words for one in answers for words in getattr(one, name)] for name in ("compared_with", "unknown", "retired")]
    compared, unknown, retired = (tuple(dict.fromkeys(words)) for words in lists)
    return Judged(verdict, ("what the running supervisor remembers", *compared), unknown, retired)


def exit_code(seen: Judged) -> ExitCode:
    """Unknown is never green."""
    if not seen.verdict.whole:
        return ExitCode.FAILURE
    return ExitCode.PENDING if seen.unknown else ExitCode.DONE
