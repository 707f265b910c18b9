"""What ``watchfloor audit verify`` finds: the file by itself, then what the running supervisor remembers, then everything else here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from console.api.client import ApiClient
from console.audit.anchors import Anchor
from console.audit.judging import Judged, beside
from console.audit.verify import verify_file
from console.cli.plain import plain
from console.domain.errors import ConsoleError, ExitCode
from console.settings.places import Places


def judge(places: Places, kept: Sequence[Path], anchors: Sequence[Anchor]) -> Judged:
    """The file first: whoever can write file and checkpoints can put both back to older ones, or rewrite both. Never raises on content."""
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


def exit_code(seen: Judged) -> ExitCode:
    """Unknown is never green."""
    if not seen.verdict.whole:
        return ExitCode.FAILURE
    return ExitCode.PENDING if seen.unknown else ExitCode.DONE
