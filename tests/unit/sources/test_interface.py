"""Confinement and the reading of foreign values."""

from __future__ import annotations

from console.sources.interface import Confinement


def test_everything_is_admitted_by_default_and_only_ours_when_confined() -> None:
    assert Confinement().admits(1)
    confined = Confinement(pids=lambda pid: pid == 7)
    assert confined.admits(7)
    assert not confined.admits(8)
