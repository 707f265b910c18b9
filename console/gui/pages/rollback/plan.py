"""What a restore of the chosen records would do, counted from their dry runs: the number that has to be typed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.api.records import RollbackDetailView


@dataclass(frozen=True, slots=True)
class Plan:
    """The details that were read and shown, in the order they are carried out (newest first)."""

    details: tuple[RollbackDetailView, ...] = ()
    reading: int = 0
    """How many chosen records have not been read yet."""

    @property
    def todo(self) -> tuple[RollbackDetailView, ...]:
        """Those a restore would write: no conflict, and not already as before."""
        return tuple(d for d in self.details if not d.conflict and d.before_sha256 != d.now_sha256)

    @property
    def skipped(self) -> tuple[RollbackDetailView, ...]:
        """Conflicts: counted, never written."""
        return tuple(d for d in self.details if d.conflict)

    @property
    def typed(self) -> str:
        """The words that have to be typed."""
        return f"restore {len(self.todo)}"

    @property
    def identity(self) -> tuple[tuple[str, str | None, str], ...]:
        """When this is another one, what was typed no longer counts."""
        return tuple((d.row.record_id, d.now_sha256, d.conflict) for d in self.details)

    def why_not(self) -> str:
        """Empty when there is something to restore."""
        if self.reading:
            return "The dry run is not complete yet."
        if not self.details:
            return "No record is selected."
        if not self.todo:
            return "Conflict: nothing can be put back without losing a change." if self.skipped else "Nothing would be written."
        return ""


def numbers(plan: Plan) -> list[tuple[str, int, str]]:
    """(words, number, role) of the counts under the dry run; only what there is."""
    back = sum(1 for d in plan.todo if d.before_sha256 is not None)
    gone = len(plan.todo) - back
    same = len(plan.details) - len(plan.todo) - len(plan.skipped)
    found = (
        ("put back", back, ""),
        ("removed", gone, ""),
        ("already restored", same, ""),
        ("conflict, skipped", len(plan.skipped), "warn"),
    )
    return [(words, number, role) for words, number, role in found if number]


def sentences(details: Sequence[RollbackDetailView]) -> list[tuple[str, str]]:
    """(sentence, role): the dry run of each, with the path in front when there are several."""
    out: list[tuple[str, str]] = []
    for detail in details:
        lead = f"{detail.row.path}: " if len(details) > 1 else ""
        out.extend((lead + said, "warn" if detail.conflict and number == 0 else "") for number, said in enumerate(detail.dry_run))
    return out
