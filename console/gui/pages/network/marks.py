"""What a reviewer should see of an entry: a short word for the table, the whole words for tooltip and drawer. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from console.api.messages import AllowlistEntryView, MarkView
from console.gui.widgets.facts import ChipSpec

SHORT = {
    "kill_file": "Kill file",
    "multi_tenant": "Multi-tenant host",
    "publishing": "Publishing host",
    "wide": "Too wide",
    "open_methods": "Any method",
    "overlap": "Superfluous",
    "unused": "Unused",
    "review_due": "Review",
    "private": "Private address",
    "secret": "May get SECRET",
}


def chip_of(mark: MarkView) -> ChipSpec:
    """Red for a danger, amber for the rest; a kind this console does not know keeps its own name."""
    words = SHORT.get(mark.kind, mark.kind.replace("_", " "))
    return ChipSpec(words, "alert" if mark.danger else "warning", "danger" if mark.danger else "warn")


def first_chip(view: AllowlistEntryView) -> ChipSpec | None:
    """What the table shows: the worst mark, and how many more there are."""
    if not view.marks:
        return None
    worst = chip_of(sorted(view.marks, key=lambda mark: not mark.danger)[0])
    more = len(view.marks) - 1
    return ChipSpec(f"{worst.text} +{more}" if more else worst.text, worst.icon, worst.kind)


def mark_words(marks: Iterable[MarkView]) -> str:
    """All marks in words, for a tooltip and a screen reader."""
    return "; ".join(f"{'DANGER: ' if mark.danger else ''}{mark.words}" for mark in marks)
