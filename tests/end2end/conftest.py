"""Sentences start supervisors and verbs by the dozen."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def forked_sentences(forked: None) -> None:
    """Instance and Terminal fork them from one process."""
