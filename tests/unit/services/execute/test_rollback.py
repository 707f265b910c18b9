"""What an executed call names is kept once, by its real path; everything else that it may write is said not to be."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.calls.permission import Verdict
from console.domain.errors import Denied, NotFound, NotRecorded
from console.domain.rollback import RollbackKind
from console.policy.rules.verdicts import Part
from console.services.execute.rollback import CODE, MOST, UNKNOWN, Kept, keep, note_after

AGENT: Any = SimpleNamespace(agent_id="a-1", context_id="s-1")


class Store:
    """It takes notes, and refuses what it is told to."""

    def __init__(self, **refused: Exception) -> None:
        self.asked, self.refused = list[tuple[str, RollbackKind]](), refused

    def snapshot(self, agent_id: str, context_id: str, kind: RollbackKind, rel_path: str) -> Any:
        assert (agent_id, context_id) == ("a-1", "s-1")
        if rel_path in self.refused:
            raise self.refused[rel_path]
        self.asked.append((rel_path, kind))
        return SimpleNamespace(record_id=f"r-{rel_path}", facts_sha256=f"digest of {rel_path}")

    def note_after(self, record_id: str) -> Any:
        if record_id in self.refused:
            raise self.refused[record_id]
        return SimpleNamespace(after_known=record_id == "r-seen")


def part(path: Path | str, action: str = "write", step: str = "file", use: str = "", *before: str) -> Part:
    return Part("text", Verdict.ALLOW, "rule", step, "why", action, use or action, (*before, str(path)))


def kept(store: Store, workspace: Path, *parts: Part, is_code: bool = False) -> Kept:
    return keep(store, AGENT, parts, workspace, is_code=is_code)


def test_each_file_is_kept_once_by_where_its_link_leads_and_a_delete_outdoes_a_write(tmp_path: Path) -> None:
    store = Store()
    parts = (part(tmp_path / "a", step="redirect"), part(tmp_path / "a", "delete"), part(tmp_path / "b", "write", "file", "", "/link"))
    found = kept(store, tmp_path, *parts)
    assert store.asked == [("a", RollbackKind.FILE_DELETE), ("b", RollbackKind.FILE_WRITE)]
    assert found == Kept(("r-a", "r-b"), (UNKNOWN,), ("digest of a", "digest of b"))
    assert found.as_data() == {"rollback": ["r-a", "r-b"], "not_kept": [UNKNOWN]}
    assert found.as_record() == found.as_data() | {"rollback_facts": {"r-a": "digest of a", "r-b": "digest of b"}}


def test_what_is_read_run_reached_or_made_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "a"
    parts = (part(path, "read"), part(path, "connect", "network"), part(path, "write", "program"), part(path, "write", "file", "make"))
    assert kept(store := Store(), tmp_path, *parts, is_code=True) == Kept((), (CODE,)) and not store.asked


def test_what_cannot_be_kept_is_named_with_why(tmp_path: Path) -> None:
    store = Store(box=Denied("It is a socket.", ""))
    found = kept(store, tmp_path, part(f"{tmp_path}/many/", "delete"), part("/etc/x"), part(tmp_path / "box"), part(f"{tmp_path}-evil/x"))
    assert found.records == () and not store.asked
    for why, said in zip(
        ("a whole folder", "outside the workspace", "socket", "outside the workspace", UNKNOWN), found.not_kept, strict=True
    ):
        assert why in said
    many = kept(store, tmp_path, *(part(tmp_path / f"f{n}") for n in range(MOST + 3)))
    assert len(many.records) == MOST and len(many.not_kept) == 4 and "more than" in many.not_kept[0]


@pytest.mark.parametrize("error", [NotRecorded("full", ""), OSError(errno.ENOSPC, "No space left on device")])
def test_a_disk_that_refuses_lets_nothing_run(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(NotRecorded):
        kept(Store(a=error), tmp_path, part(tmp_path / "a"))


def test_what_it_left_is_read_afterwards() -> None:
    store = Store(**{"r-lost": NotFound("No record.", "")})
    assert note_after(store, Kept(("r-seen", "r-not", "r-lost"))) == [("r-seen", "seen"), ("r-not", "unknown"), ("r-lost", "unknown")]
