"""The door of the daemon."""

from __future__ import annotations

import os
import sys

import pytest

from console.supervisor import __main__ as door


def test_whoever_starts_it_with_whatever_umask_agents_can_pass_through_its_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 077, as careful people have it, no agent under another id could start."""
    seen: list[int] = []

    def serve(given: object) -> int:
        seen.append(os.umask(0o022))
        return 0

    monkeypatch.setattr(door, "serve", serve)
    monkeypatch.setattr(sys, "argv", ["supervisor", "serve"])
    before = os.umask(0o077)
    try:
        assert door.main() == 0 and seen == [0o022]
    finally:
        os.umask(before)
