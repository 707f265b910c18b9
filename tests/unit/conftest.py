"""An instance's places, and canned answers in place of its supervisor."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.settings.places import Places, find_places
from tests.fakes.canned_api import CannedApi, canned_api


@pytest.fixture
def places(state_dir: Path) -> Places:
    return find_places(str(state_dir), create=True)


@pytest.fixture
def api(places: Places) -> Iterator[CannedApi]:
    with canned_api(places) as canned:
        yield canned


@pytest.fixture
def midnight_is_utc() -> Iterator[None]:
    """Days begin at local midnight; with this, at UTC's, so that what is asserted of a day is so in every time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
