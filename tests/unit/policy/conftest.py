"""Walks in tests end by what they find: a busy machine alone makes none of them ask."""

import pytest


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.policy.files.paths.SECONDS_MAX", 60.0)
    monkeypatch.setattr("console.policy.files.paths.CLOCK_SECONDS_MAX", 60.0)
