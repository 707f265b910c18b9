"""The command line in-process: a verb, its exit code, what it printed, against canned answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.cli.main import main
from console.cli.terminal import out
from tests.fakes.verbs import Said, Watchfloor


@pytest.fixture
def watchfloor(state_dir: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Watchfloor:
    """``watchfloor("fleet", "--json")`` on the test's own state directory."""
    monkeypatch.setenv("WATCHFLOOR_STATE_DIR", str(state_dir))
    monkeypatch.setattr(out._Gone, "stdout", False)

    def call(*argv: str) -> Said:
        capfd.readouterr()
        code = main(list(argv))
        seen = capfd.readouterr()
        return Said(code, seen.out, seen.err)

    return call
