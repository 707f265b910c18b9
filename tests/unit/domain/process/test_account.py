"""The name of the account that gives an order."""

from __future__ import annotations

import os
import pwd

import pytest

from console.domain.process.account import operator


def test_the_name_behind_sudo_is_told_and_hostile_text_in_its_place_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert operator() == f"{pwd.getpwuid(0).pw_name} (uid 0)"
    monkeypatch.setenv("SUDO_USER", "ann")
    assert operator() == "ann through sudo (uid 0)"
    monkeypatch.setenv("SUDO_USER", "ann\x1b[2J")
    assert operator() == f"{pwd.getpwuid(0).pw_name} (uid 0)"
    monkeypatch.setattr(os, "getuid", lambda: 4_000_111)
    assert operator() == "unknown (uid 4000111)"
