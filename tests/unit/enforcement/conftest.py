"""Budgets of a day are in most of these tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def day(midnight_is_utc: None) -> None:
    """The same one wherever they run."""
