"""What could bring an agent back: the places that differ from the session's baseline, who runs each and when."""

from __future__ import annotations

from dataclasses import dataclass

from console.api.persistence import FindingView, PersistenceReport
from console.gui.pages.kill_switch.lists import marked
from console.gui.theme import fonts
from console.gui.widgets.facts import Fact
from console.gui.widgets.rows import Canvas, Column, by_words
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, plural

COLUMNS = (
    Column("path", "Place", share=5),
    Column("change", "Change", 104),
    Column("runs", "Who runs it, and when", share=5),
    Column("could", "Could have written it", share=3, hide_below=720),
    Column("session", "Session", share=2, hide_below=860),
)
_DOUBTS = 8


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding with its session."""

    finding: FindingView
    session: str

    @property
    def key(self) -> str:
        return f"{self.session}\0{self.finding.root}\0{self.finding.path}\0{self.finding.kind}"

    @property
    def is_doubtful(self) -> bool:
        """Not known to be the agents', and not known not to be."""
        return not self.finding.could_write.startswith("no")


def aged(report: PersistenceReport, pressed_at: float) -> PersistenceReport:
    """A look from before the press says nothing about what the dead left: that is one more doubt."""
    if report.looked_at >= pressed_at:
        return report
    return report.replaced(doubts=[*report.doubts, f"last checked {clock(report.looked_at)}, before this kill"])


def rows_of(reports: list[PersistenceReport]) -> list[FindingRow]:
    """Those that the session's agents could have written come first."""
    rows = [FindingRow(finding, report.context_id) for report in reports for finding in report.findings]
    return sorted(rows, key=lambda row: not row.is_doubtful)


def finding_words(row: FindingRow, key: str) -> str:
    """What a cell says."""
    finding = row.finding
    match key:
        case "path":
            new = f" · {finding.excerpt}" if finding.excerpt else ""
            return f"{finding.root} {finding.path} ({finding.kind}): {finding.what}{new}"
        case "change":
            return finding.change
        case "runs":
            return finding.runs
        case "could":
            return f"{finding.could_write}. {finding.note}".strip(" .")
    return row.session


FOUND_SORTS = by_words(finding_words, "path", "change", "runs", "could", "session")


def paint_finding(canvas: Canvas, row: FindingRow) -> None:
    """One place; amber where the agents could have written it, or where that is not known."""
    finding = row.finding
    role = "warn" if row.is_doubtful else "text2"
    canvas.text("path", finding.path, "text", mono=True, size=13)
    marked(canvas, "change", finding.change, "triangle" if row.is_doubtful else "ring", role)
    canvas.text("runs", finding.runs, "text", weight=fonts.MEDIUM if row.is_doubtful else fonts.REGULAR)
    canvas.text("could", finding.could_write, role)
    canvas.text("session", row.session, "text2", mono=True)


def summary(reports: list[PersistenceReport], *, known: bool) -> list[Fact]:
    """Counts, every doubt in amber, when it was looked at, and what cannot be done about it."""
    if not known:
        return [Fact("Not known: the persistence check did not answer", "", "triangle", "warn", left_role="warn")]
    if not reports:
        return [Fact("Not known: no session of it was checked", "", "triangle", "warn", left_role="warn")]
    found = sum(len(report.findings) + report.left_out for report in reports)
    doubts = [f"{report.context_id}: {doubt}" for report in reports for doubt in report.doubts]
    latest = max(report.looked_at for report in reports)
    looked = clock(latest)
    if doubts:
        first = Fact("Not known: the look was not whole", looked, "triangle", "warn", left_role="warn")
    elif found:
        first = Fact(f"{plural(found, 'place')} differ from the baseline", looked, "triangle", "warn", left_role="warn")
    else:
        first = Fact("Nothing differs from the baseline", looked, "check")
    lines = [first, *(Fact(doubt, "", left_role="warn", indent=True) for doubt in doubts[:_DOUBTS])]
    if doubts and found:
        lines.append(Fact(f"{plural(found, 'place')} listed all the same", "", left_role="warn", indent=True))
    left_out = sum(report.left_out for report in reports)
    if left_out:
        lines.append(Fact(f"{left_out:,} of them beyond the list: see persistence.json of the case", "", left_role="text2", indent=True))
    skipped = list(dict.fromkeys(words for report in reports for words in report.not_looked))
    lines += [Fact(f"not checked: {words}", "", left_role="text2", indent=True) for words in skipped[:_DOUBTS]]
    words = list(dict.fromkeys(report.quarantine for report in reports))
    return [*lines, *(line for text in words if text for line in _cannot(text))]


def _cannot(text: str) -> list[Fact]:
    """``quarantine: not available, because ...`` as two facts."""
    head, _, why = safe_text(text, 300).partition(": ")
    return [Fact(head[:1].upper() + head[1:], "", "ring", left_role="text2"), Fact(why, "", left_role="text2", indent=True)]
