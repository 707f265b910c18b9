"""``watchfloor rollback list | show | restore``: what agents changed, and putting it back."""

from __future__ import annotations

from typing import Annotated

from console.api.records import DiffLine, RestoreBody, RollbackDetailView
from console.cli.link import build, connect
from console.cli.options import Json, Reason, StateDir
from console.cli.shaping import shaped
from console.cli.syntax import UNSHAPED, Argument, Option, Shape, Verbs, example
from console.cli.terminal import out
from console.cli.terminal.plain import moment, plain
from console.cli.terminal.tables import Text, new_table
from console.domain.errors import Conflict

app = Verbs("Files that agents changed or deleted, and putting them back.")
Record = Annotated[str, Argument(metavar="RECORD", help="Its id, as rollback list shows it.")]


def state_words(state: str) -> str:
    """As the window calls it; the stored value keeps its name."""
    return "superseded" if state == "newer_exists" else state.replace("_", " ")


@app.command("list")
def list_records(shape: Shape = UNSHAPED, state_dir: StateDir = None, as_json: Json = False) -> int:
    """Records, newest first."""
    with connect(state_dir) as client:
        seen = client.rollback()
    if as_json:
        out.emit({"records": [r.as_data() for r in seen.records]})
        return 0
    if not seen.records:
        out.say("No rollback records: no agent asked to write or delete a file.")
        return 0
    table = new_table("RECORD", "WHEN", "KIND", "STATE", "SIZE BEFORE", "AGENT", "PATH")
    for row in seen.records:
        table.add_row(
            out.words(row.record_id, limit=70),
            moment(row.created_at, "seconds"),
            out.words(row.kind.replace("_", " "), limit=30),
            out.words(f"{state_words(row.state)}{' (!)' if row.doubt else ''}", "red" if row.doubt else "", 30),
            str(row.before_size),
            out.words(row.agent_id, limit=70),
            out.words(row.path, limit=200),
        )
    out.show(shaped(table, shape))
    for row in seen.records:
        if row.doubt:
            out.show(out.words(f"(!) {row.record_id}: {row.doubt}", "red", 300))
    return 0


@app.command("show")
@example("r-1b2c3d4e")
def show(record: Record, state_dir: StateDir = None, as_json: Json = False) -> int:
    """One record with its diff: what is on disk now, what a restore puts back."""
    with connect(state_dir) as client:
        detail = client.rollback_detail(record)
    if as_json:
        out.emit_view(detail)
        return 0
    _print_detail(detail)
    return 0


@app.command("restore")
@example("r-1b2c3d4e --reason 'it deleted my notes'")
def restore(
    record: Record,
    reason: Reason,
    expect: Annotated[str | None, Option("--expect-now", metavar="SHA256", help="Refuse unless the file on disk has this content.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Put a file back. Refused when it changed since the recorded action, or while this looks."""
    with connect(state_dir) as client:
        detail = client.rollback_detail(record)
        if detail.conflict:
            raise Conflict(f"Not restored: {detail.conflict}", f"Look at it with: watchfloor rollback show {record}")
        if expect is not None and expect != detail.now_sha256:
            raise Conflict(f"Not restored: the file on disk is {detail.now_sha256 or 'absent'}.", "Look at it again.")
        row = client.restore(record, build(RestoreBody, reason=reason, expect_now_sha256=detail.now_sha256))
    if as_json:
        out.emit(row.as_data())
    else:
        out.say(f"restored {plain(row.path)} as it was before {plain(row.record_id)}")
    return 0


def _print_detail(detail: RollbackDetailView) -> None:
    row = detail.row
    out.say(f"{plain(row.record_id)}: {plain(row.kind.replace('_', ' '))} {plain(row.path, 500)} by {plain(row.agent_id)}")
    out.say(f"state {plain(state_words(row.state))}; now {detail.now_sha256 or 'absent'}; before {detail.before_sha256 or 'absent'}")
    if row.doubt:
        out.show(out.words(f"(!) {row.doubt}", "red", 300))
    if detail.conflict:
        out.show(out.words(f"a restore would be refused: {detail.conflict}", "yellow", 500))
    for words in detail.dry_run:
        out.say(f"would: {plain(words, 500)}")
    if detail.binary:
        out.say("binary content: no diff")
    out.show(*(_diff_text(line) for line in detail.diff))
    if detail.truncated:
        out.say("(the diff is longer)")


def _diff_text(line: DiffLine) -> Text:
    """``-``: on disk now, goes; ``+``: comes back."""
    match line.sign:
        case "-":
            return out.words(f"- {line.left}", "red", 500)
        case "+":
            return out.words(f"+ {line.right}", "green", 500)
        case "~":
            return Text("\n").join((out.words(f"- {line.left}", "red", 500), out.words(f"+ {line.right}", "green", 500)))
        case _:
            return out.words(f"  {line.left or line.right}", "dim", 500)
