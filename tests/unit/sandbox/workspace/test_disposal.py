"""Workspaces on their way out: one rename, then nothing is left, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from console.domain.errors import Conflict, NotFound, UsageProblem
from console.sandbox.workspace.disposal import QUARANTINE, quarantine, sweep

ROOT = Path(__file__).resolve().parents[4]


def made(root: Path, name: str) -> Path:
    folder = root / name
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "f").write_text("x")
    return folder


def test_a_workspace_goes_and_its_neighbours_stay(tmp_path: Path) -> None:
    made(tmp_path, "old")
    kept = made(tmp_path, "old-too")
    name = quarantine(tmp_path, "old")
    assert not (tmp_path / "old").exists() and (tmp_path / QUARANTINE / name / "data" / "f").exists()
    assert (tmp_path / QUARANTINE).stat().st_mode & 0o777 == 0o700
    made(tmp_path, "old")  # the session begins anew meanwhile
    assert [(s.context_id, s.gone) for s in sweep(tmp_path)] == [("old", True)]
    assert list((tmp_path / QUARANTINE).iterdir()) == []
    assert (kept / "data" / "f").exists() and (tmp_path / "old" / "data" / "f").exists()


@pytest.mark.parametrize(
    "bad", ["x/../../precious", "y /precious2", "$(id)", "-rf", "a\0b", "x" * 300, ".", "..", "", QUARANTINE, "\u0430bc"]
)
def test_ids_that_lead_elsewhere_are_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageProblem):
        quarantine(tmp_path, bad)


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    precious = made(tmp_path, "precious")
    root = tmp_path / "root"
    root.mkdir()
    (root / "linked").symlink_to(precious)
    with pytest.raises(Conflict):
        quarantine(root, "linked")
    with pytest.raises(NotFound):
        quarantine(root, "nosuch")
    (root / QUARANTINE).rmdir()
    (root / QUARANTINE).symlink_to(precious)
    made(root, "old")
    with pytest.raises(Conflict):
        quarantine(root, "old")
    assert sweep(root) == []
    assert (precious / "data" / "f").exists() and (root / "old" / "data" / "f").exists()


def test_what_is_not_done_in_time_is_done_later(tmp_path: Path) -> None:
    made(tmp_path, "big")
    quarantine(tmp_path, "big")
    assert [(s.gone, s.why) for s in sweep(tmp_path, limit_s=-1)] == [(False, "not done yet")]
    assert [s.gone for s in sweep(tmp_path)] == [True]


def test_only_what_was_quarantined_is_swept(tmp_path: Path) -> None:
    stranger = tmp_path / QUARANTINE / "README"
    stranger.parent.mkdir()
    stranger.write_text("x")
    assert sweep(tmp_path) == [] and stranger.exists()


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o400, 0o500])
def test_a_workspace_that_its_agent_closed_goes_too(tmp_path: Path, mode: int) -> None:
    """Where agents run as we do, an ordinary user, an agent may take its own workspace's bits away."""
    work = made(tmp_path / "root", "old")
    program = "import os, sys\nfrom pathlib import Path\nfrom console.sandbox.workspace.disposal import quarantine, sweep\n"
    program += "os.setgid(65534)\nos.setuid(65534)\n" if os.geteuid() == 0 else ""
    program += (
        f"root = Path({str(tmp_path / 'root')!r})\nquarantine(root, 'old')\nprint([(s.gone, s.why) for s in sweep(root)], os.listdir(root))"
    )
    if os.geteuid() == 0:
        for name in (tmp_path / "root", work, work / "data", work / "data" / "f"):
            os.chown(name, 65534, 65534)
        for above in (tmp_path, *tmp_path.parents[:3]):
            above.chmod(0o711)
    work.chmod(mode)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == f"[(True, '')] ['{QUARANTINE}']\n", done.stderr
