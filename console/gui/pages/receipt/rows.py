"""The targets of a kill: outcome, when it was decided, and the proof."""

from __future__ import annotations

from dataclasses import dataclass

from console.domain.kill import Outcome, Target
from console.gui.pages.kill_switch.lists import marked
from console.gui.pages.receipt.amended import first_words, is_late, said_words
from console.gui.theme import fonts
from console.gui.widgets.rows import Canvas, Column, Sorts, by_words
from console.gui.widgets.words import took

COLUMNS = (
    Column("agent", "Agent", share=3),
    Column("level", "Control level", 100, hide_below=560),
    Column("outcome", "Outcome", 140),
    Column("at", "At", 84, right=True),
    Column("proof", "Proof", share=4),
)
OUTCOMES = {
    Outcome.NOT_PROVEN: ("NOT PROVEN", "triangle", "warn"),
    Outcome.DYING: ("DYING", "pause", "warn"),
    Outcome.BEST_EFFORT: ("Best effort", "alert", "warn"),
    Outcome.PROVEN_ZERO: ("Confirmed dead", "check", "text2"),
}


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target with the agent's name."""

    target: Target
    name: str

    @property
    def key(self) -> str:
        return self.target.agent_id

    @property
    def is_quiet(self) -> bool:
        return self.target.outcome is Outcome.PROVEN_ZERO and not self.is_late

    @property
    def is_late(self) -> bool:
        return is_late(self.target)

    @property
    def words(self) -> tuple[str, str, str]:
        """(word, shape, colour); one that was proven only later has both answers."""
        return ("Confirmed later", "check", "text") if self.is_late else OUTCOMES[self.target.outcome]


def proof_words(target: Target) -> str:
    """The evidence in one line: ``populated 0 · inode 88213``, or pid, state and where it waits."""
    evidence = dict(target.evidence)
    said = [f"said then: {said_words(one)}" for one in first_words(target)[-1:]]
    first = [f"{key} {evidence.pop(key)}" for key in ("populated", "inode", "pid", "state", "wchan", "container", "why") if key in evidence]
    rest = [f"{key} {value}" for key, value in evidence.items() if isinstance(value, str | int | float | bool) and value != ""]
    return " · ".join([*said, *first, *rest]) or "no evidence was recorded"


def target_words(row: TargetRow, key: str) -> str:
    """What a cell says."""
    match key:
        case "agent":
            return f"{row.name} ({row.target.agent_id})"
        case "level":
            return row.target.control_level
        case "outcome":
            return row.words[0]
        case "at":
            return took(row.target.ms)
    return proof_words(row.target)


SORTS: Sorts = {**by_words(target_words, "agent", "level", "outcome", "proof"), "at": lambda row: row.target.ms}


def paint_target(canvas: Canvas, row: TargetRow) -> None:
    """Proven ones are quiet; survivors are not."""
    words, shape, role = row.words
    canvas.text("agent", row.name, "text2" if row.is_quiet else "text", weight=fonts.REGULAR if row.is_quiet else fonts.SEMIBOLD)
    canvas.text("level", row.target.control_level, "text2")
    marked(canvas, "outcome", words, shape, role)
    canvas.text("at", f"+{took(row.target.ms)}" if row.target.ms is not None else "?", right=True)
    canvas.text("proof", proof_words(row.target), "text3" if row.is_quiet else "text" if role in ("text", "text2") else "warn", mono=True)
