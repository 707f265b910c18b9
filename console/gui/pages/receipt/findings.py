"""What could bring an agent back: the places that differ from the session's baseline, who runs each and when."""

from __future__ import annotations

from dataclasses import dataclass

from console.api.persistence import FindingView, PersistenceReport
from console.gui.kit.table import Cell, Shape
from console.gui.theme import fonts
from console.gui.widgets.facts import Fact
from console.gui.widgets.safe_text import safe_text
from console.gui.widgets.words import clock, plural

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

    @property
    def shape(self) -> Shape:
        """Amber where the agents could have written it, or where that is not known."""
        return self.finding.change, *(("triangle", "warn") if self.is_doubtful else ("ring", "text2"))


def aged(report: PersistenceReport, pressed_at: float) -> PersistenceReport:
    """A look from before the press says nothing about what the dead left: that is one more doubt."""
    if report.looked_at >= pressed_at:
        return report
    return report.replaced(doubts=[*report.doubts, f"last checked {clock(report.looked_at)}, before this kill"])


def rows_of(reports: list[PersistenceReport]) -> list[FindingRow]:
    """Those that the session's agents could have written come first."""
    rows = [FindingRow(finding, report.context_id) for report in reports for finding in report.findings]
    return sorted(rows, key=lambda row: not row.is_doubtful)


def _path_words(row: FindingRow) -> str:
    finding = row.finding
    new = f" · {finding.excerpt}" if finding.excerpt else ""
    return f"{finding.root} {finding.path} ({finding.kind}): {finding.what}{new}"


COLUMNS: tuple[Cell[FindingRow], ...] = (
    Cell("path", "Place", share=5, words=_path_words, text=lambda row: row.finding.path, mono=True, size=13, sort="words"),
    Cell("change", "Change", 104, words=lambda row: row.finding.change, shape=lambda row: row.shape, quiet="text", sort="words"),
    Cell(
        "runs",
        "Who runs it, and when",
        share=5,
        words=lambda row: row.finding.runs,
        weight=lambda row: fonts.MEDIUM if row.is_doubtful else fonts.REGULAR,
        sort="words",
    ),
    Cell(
        "could",
        "Could have written it",
        share=3,
        hide_below=720,
        words=lambda row: f"{row.finding.could_write}. {row.finding.note}".strip(" ."),
        text=lambda row: row.finding.could_write,
        role=lambda row: row.shape[2],
        sort="words",
    ),
    Cell("session", "Session", share=2, hide_below=860, words=lambda row: row.session, role="text2", mono=True, sort="words"),
)


def summary(reports: list[PersistenceReport], *, known: bool) -> list[Fact]:
    """Counts, every doubt in amber, when it was looked at, and what cannot be done about it."""
    if not known:
        return [Fact("Not known: the persistence check did not answer", "", "triangle", "warn", left_role="warn")]
    if not reports:
        return [Fact("Not known: none of its sessions was checked", "", "triangle", "warn", left_role="warn")]
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
