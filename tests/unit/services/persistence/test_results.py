"""What earlier hunts found, read back from the case folders."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from console.rollback.persistence.findings import Change, Finding, Report
from console.services.persistence.results import Kept, kept_reports
from console.settings.places import Places


def report(context_id: str, at: float, path: str = "/w/1") -> Report:
    fields: dict[str, Any] = {"root": "session:c", "path": path, "kind": "git hook", "change": Change.ADDED, "runs": "you", "what": "file"}
    found = Finding(**fields, before_sha256="", after_sha256="a", uid=1, mtime=1.0, size=1, excerpt="", could_write="yes")
    return Report(context_id, at, 1.0, ("why",), (found,), 2, ("home: no",))


def kept(cases: Path, kill_id: str, *reports: Report, name: str = "persistence.json") -> Path:
    folder = cases / kill_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({"schema": "x", "kill_id": kill_id, "sessions": [r.as_json() for r in reports]}))
    return folder / name


def places(state_dir: Path) -> Places:
    return SimpleNamespace(state_dir=state_dir)  # type: ignore[return-value]


async def test_the_newest_report_of_each_session_comes_back_whole_and_never_over_a_newer_look(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    kept(cases, "20260101-1", report("c1", 5.0), report("c2", 5.0))
    kept(cases, "20260102-1", report("c1", 9.0))
    kept(cases, "20260102-1", report("c1", 7.0), name="persistence.2.json")
    assert kept_reports(cases) == {"c1": report("c1", 9.0), "c2": report("c2", 5.0)}
    reports = {"c2": report("c2", 20.0)}
    one = Kept(places(tmp_path))
    await one.into(reports)
    assert reports == {"c1": report("c1", 9.0), "c2": report("c2", 20.0)}
    kept(cases, "20260103-1", report("c9", 1.0))
    await one.into(reports)
    assert "c9" not in reports, "read once"


async def test_nobody_was_killed_yet(tmp_path: Path) -> None:
    reports: dict[str, Report] = {}
    await Kept(places(tmp_path)).into(reports)
    assert reports == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sessions": 3}', '{"sessions": [{"context_id": "c"}]}', "[" * 100_000])
def test_a_file_that_cannot_be_read_leaves_the_others(tmp_path: Path, text: str) -> None:
    kept(tmp_path, "20260101-1", report("c1", 5.0))
    kept(tmp_path, "20260102-1").write_text(text)
    assert kept_reports(tmp_path) == {"c1": report("c1", 5.0)}


def test_neither_a_link_nor_a_pipe_is_followed(tmp_path: Path) -> None:
    real = kept(tmp_path / "elsewhere", "k", report("c1", 5.0))
    cases = tmp_path / "cases"
    (cases / "20260101-1").mkdir(parents=True)
    (cases / "20260101-1" / "persistence.json").symlink_to(real)
    (cases / "20260102-1").symlink_to(real.parent)
    (cases / "20260103-1").mkdir()
    os.mkfifo(cases / "20260103-1" / "persistence.json")
    assert kept_reports(cases) == {}
