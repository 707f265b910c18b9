"""Keep what an executed call is known to write or delete, before it runs: the files that its operands and redirects name.

A program may also write files that it does not name: these cannot be known beforehand. The agent and the log are told that, and what could
not be kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from console.audit.rollback_rows import FACTS_FIELD
from console.domain.agent import Agent
from console.domain.errors import ConsoleError, NotRecorded
from console.domain.rollback import RollbackKind, RollbackRecord
from console.policy.rules.verdicts import Part

MOST = 50
"""Records of one call; each costs a copy and a sync of the disk."""
UNKNOWN = "what a program writes without naming it is not known before it runs"
CODE = "what the code writes is not known before it runs"
_KINDS = {"write": RollbackKind.FILE_WRITE, "delete": RollbackKind.FILE_DELETE}
_WORDS = 160


class Store(Protocol):
    """Of rollback/store.py what is used here."""

    def snapshot(self, agent_id: str, context_id: str, kind: RollbackKind, rel_path: str) -> RollbackRecord: ...

    def note_after(self, record_id: str) -> RollbackRecord: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """What can be put back, and what cannot, in words."""

    records: tuple[str, ...] = ()
    not_kept: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """Digest of each record, in their order."""

    def as_data(self) -> dict[str, object]:
        """For the agent: its ids, and what could not be kept."""
        return {"rollback": list(self.records), "not_kept": list(self.not_kept)}

    def as_record(self) -> dict[str, object]:
        """For the record of the call."""
        return self.as_data() | {FACTS_FIELD: dict(zip(self.records, self.facts, strict=True))}


def keep(store: Store, agent: Agent, parts: Iterable[Part], workspace: Path, *, is_code: bool) -> Kept:
    """Copies what is named, durably. NotRecorded when the disk refuses: then the call must not run. Blocks."""
    records, facts, said = list[str](), list[str](), list[str]()
    root = str(workspace.resolve())
    for path, kind in _named(parts).items():
        if len(records) >= MOST:
            said.append(f"{path[:_WORDS]}: more than {MOST} files are named")
            continue
        if path.endswith("/") or not path.startswith(f"{root}/"):
            why = "a whole folder: only single files are kept" if path.endswith("/") else "it is outside the workspace"
            said.append(f"{path[:_WORDS]}: {why}")
            continue
        try:
            made = store.snapshot(agent.agent_id, agent.context_id, kind, path.removeprefix(f"{root}/"))
            records.append(made.record_id)
            facts.append(made.facts_sha256)
        except NotRecorded:
            raise
        except ConsoleError as error:
            said.append(f"{path[:_WORDS]}: {error.what[:_WORDS]}")
        except OSError as error:
            raise NotRecorded(
                f"No rollback record could be written: {error.strerror}.", "Make room on the disk, then ask again."
            ) from error
    return Kept(tuple(records), (*said, CODE if is_code else UNKNOWN), tuple(facts))


def _named(parts: Iterable[Part]) -> dict[str, RollbackKind]:
    """Return each file once, by its real path. A call that also deletes the file counts as a delete."""
    # To make a folder or an empty file destroys nothing, so nothing is kept for that.
    found: dict[str, RollbackKind] = {}
    for part in parts:
        if part.step in ("file", "redirect") and part.action in _KINDS and part.use != "make" and part.names:
            kind = _KINDS[part.action]
            found[part.names[-1]] = kind if kind is RollbackKind.FILE_DELETE else found.get(part.names[-1], kind)
    return found


def note_after(store: Store, kept: Kept) -> list[tuple[str, str]]:
    """The call has ended: what it left is read, so that a restore can tell it from a later change. (record, state in words)."""
    found = []
    for record_id in kept.records:
        try:
            seen = store.note_after(record_id).after_known
        except ConsoleError:
            seen = False
        found.append((record_id, "seen" if seen else "unknown"))
    return found
