"""What is decided on: one request or a group of similar ones, with the exact text that is shown of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from console.api.policy.approvals import ApprovalDetailView, ApprovalPart, ApprovalRow, BlastLine, Decided, GrantRow
from console.gui.pages.approvals.book import alike
from console.gui.pages.approvals.hostile import Shown
from console.gui.pages.approvals.words import is_bound, title_of, whole_input
from console.gui.widgets.words import plural

SHOWN_MAX = 400_000
"""Characters shown, more than any request has that is not made of hostile ones: what is beyond can only be denied, a group one by one."""
BLAST_MAX = 8
_WORST = {"danger": 0, "warn": 1, "plain": 2}


@dataclass(frozen=True, slots=True)
class Case:
    """``details`` in the order of the list; ``rows`` those that are asked for, of which some may still be read."""

    rows: tuple[ApprovalRow, ...]
    details: tuple[ApprovalDetailView, ...] = ()
    shown: Shown = field(default_factory=Shown)
    is_whole: bool = False
    """Every character of every request stands in ``shown``."""
    words: str = ""
    """What several requests are called that were selected to be denied together: of these no detail is read."""

    @property
    def is_read(self) -> bool:
        """Whether every request that is asked for was read."""
        return bool(self.rows) and len(self.details) == len(self.rows)

    @property
    def is_group(self) -> bool:
        return len(self.rows) > 1

    @property
    def title(self) -> str:
        """Made from the judged call."""
        if not self.details:
            return self.words or "Reading…"
        one = title_of(self.details[0])
        return f"{plural(len(self.rows), f'{alike(self.rows)} request')}: {one}" if self.is_group else one

    @property
    def decided(self) -> list[Decided]:
        """What a decision names: the digests that were shown."""
        rows = self.rows if self.words else [one.row for one in self.details]
        return [Decided(id=row.id, digest=row.digest) for row in rows]

    @property
    def unbound(self) -> bool:
        """Whether a digest is not that of what is shown."""
        return not all(is_bound(one) for one in self.details)

    def why_not_approve(self) -> str:
        """Empty when what is shown is the whole truth."""
        if not self.is_read:
            return "It is still being read."
        if self.unbound:
            return "The digest is not that of what is shown: it can only be denied."
        if not self.is_whole:
            return "It is too long to be shown whole: it can only be denied, a group (G) also one by one."
        return ""


def case_of(rows: Sequence[ApprovalRow], details: Sequence[ApprovalDetailView]) -> Case:
    """Builds the exact text; what is beyond SHOWN_MAX is said, and cannot be approved."""
    shown, left = Shown(), SHOWN_MAX
    for number, one in enumerate(details, 1):
        if len(rows) > 1:
            shown.heading(f"{number} of {len(rows)} · {one.row.id} · {one.row.tool} · {one.row.agent_name or one.row.agent_id}")
        for words, text in _texts(one, len(rows) > 1):
            if words:
                shown.heading(words)
            before = shown.length
            shown.add(text[: max(0, left)])
            if len(text) > left:
                shown.heading(f"… {len(text) - max(0, left):,} more characters of this are not shown")
            left -= max(len(text), shown.length - before)
    return Case(tuple(rows), tuple(details), shown, left >= 0)


def case_of_several(rows: Sequence[ApprovalRow]) -> Case:
    """Requests that are denied together, whatever each asks for."""
    return Case(tuple(rows), words=f"{plural(len(rows), 'request')} of {plural(len({row.agent_id for row in rows}), 'agent')}")


def named_requests(rows: Sequence[ApprovalRow]) -> list[tuple[str, str]]:
    """(agent, request) of each in full, for a question about several."""
    named = []
    for row in rows:
        more = f" … and {row.argument_more:,} more characters" if row.argument_more else ""
        folder = f" · folder {row.cwd}" if row.cwd else ""
        session = f" · session {row.session}" if row.session else ""
        called = f"{row.agent_name} ({row.agent_id})" if row.agent_name not in ("", row.agent_id) else row.agent_id
        named.append((called, f"{row.tool}: {row.argument}{more} · request {row.id}{session}{folder}"))
    return named


def _texts(detail: ApprovalDetailView, is_group: bool) -> list[tuple[str, str]]:
    """(heading, text) of everything that the digest names beside agent and session."""
    row = detail.row
    head = "" if row.tool == "shell" or is_group else f"tool {row.tool}"
    texts = [(head, row.argument)]
    if row.cwd:
        texts.append(("in the folder", row.cwd))
    whole = whole_input(detail)
    if whole:
        texts.append(("the tool's whole input (JSON)", whole))
    return texts


def parts_of(case: Case) -> list[tuple[ApprovalPart, int]]:
    """Each part with how many requests of the group have it judged so."""
    if not case.is_group:
        return [(part, 1) for one in case.details for part in one.parts]
    counted: Counter[tuple[str, str, str]] = Counter()
    sample: dict[tuple[str, str, str], ApprovalPart] = {}
    for one in case.details:
        for key, part in {(part.verdict, part.rule, part.reason): part for part in one.parts}.items():
            counted[key] += 1
            sample.setdefault(key, part)
    return [(sample[key], number) for key, number in counted.most_common()]


def blast_of(case: Case) -> list[BlastLine]:
    """The worst first; equal ones once."""
    if not case.is_group:
        return list(case.details[0].blast) if case.details else []
    seen = {(line.kind, line.words): line for one in case.details for line in one.blast}
    lines = sorted(seen.values(), key=lambda line: _WORST[line.level])
    out = lines[:BLAST_MAX]
    if len(lines) > BLAST_MAX:
        out.append(BlastLine(kind="files", words=f"and {len(lines) - BLAST_MAX} more; open the group (G) to see each", level="warn"))
    return out


def row_of(grant: GrantRow) -> ApprovalRow:
    """What is known of a grant before its approval was read."""
    return ApprovalRow(
        id=grant.approval_id,
        agent_id="",
        session=grant.session,
        tool=grant.tool,
        argument=grant.argument,
        rule="",
        reason="",
        digest="",
        group="",
        asked_at=grant.at,
        state="approved",
        scope="session",
        decided_by=grant.by,
    )
