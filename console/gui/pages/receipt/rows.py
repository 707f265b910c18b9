"""The targets of a kill: outcome, when it was decided, and the proof."""

from __future__ import annotations

from dataclasses import dataclass

from console.domain.kill import Outcome, Target
from console.gui.kit.table import Cell, Shape
from console.gui.pages.receipt.amended import first_words, is_late, said_words
from console.gui.theme import fonts
from console.gui.widgets.words import took

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
    def words(self) -> Shape:
        """(word, shape, colour); one that was proven only later has both answers."""
        return ("Confirmed later", "check", "text") if self.is_late else OUTCOMES[self.target.outcome]


def proof_words(target: Target) -> str:
    """The evidence in one line: ``populated 0 · inode 88213``, or pid, state and where it waits."""
    evidence = dict(target.evidence)
    said = [f"said then: {said_words(one)}" for one in first_words(target)[-1:]]
    first = [f"{key} {evidence.pop(key)}" for key in ("populated", "inode", "pid", "state", "wchan", "container", "why") if key in evidence]
    rest = [f"{key} {value}" for key, value in evidence.items() if isinstance(value, str | int | float | bool) and value != ""]
    return " · ".join([*said, *first, *rest]) or "no evidence was recorded"


def _proof_role(row: TargetRow) -> str:
    return "text3" if row.is_quiet else "text" if row.words[2] in ("text", "text2") else "warn"


COLUMNS: tuple[Cell[TargetRow], ...] = (
    Cell(
        "agent",
        "Agent",
        share=3,
        words=lambda row: f"{row.name} ({row.target.agent_id})",
        text=lambda row: row.name,
        role=lambda row: "text2" if row.is_quiet else "text",
        weight=lambda row: fonts.REGULAR if row.is_quiet else fonts.SEMIBOLD,
        sort="words",
    ),
    Cell("level", "Control level", 100, hide_below=560, words=lambda row: row.target.control_level, role="text2", sort="words"),
    Cell("outcome", "Outcome", 140, words=lambda row: row.words[0], shape=lambda row: row.words, quiet="text", sort="words"),
    Cell(
        "at",
        "At",
        84,
        right=True,
        words=lambda row: took(row.target.ms),
        text=lambda row: f"+{took(row.target.ms)}" if row.target.ms is not None else "?",
        sort=lambda row: row.target.ms,
    ),
    Cell("proof", "Proof", share=4, words=lambda row: proof_words(row.target), role=_proof_role, mono=True, sort="words"),
)
"""Proven ones are quiet; survivors are not."""
