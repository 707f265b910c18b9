"""The fault suite: every test breaks something on purpose, and ends with ``check_invariants``."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.fakes.broken import Broken
from tests.fakes.nursery import WINDOW, Nursery

Make = Callable[..., Broken]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.fault)


def sparse(values: Iterable[str], ordinary: Container[str]) -> list[ParameterSet]:
    """Parameters of which the ordinary run takes a few, and --long all."""
    return [pytest.param(value, marks=() if value in ordinary else (pytest.mark.long,)) for value in values]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Forks supervisors and verbs of the command line."""
    yield from _nursery("n")


@pytest.fixture(scope="session")
def windows() -> Iterator[Nursery]:
    """Forks windows, offscreen."""
    yield from _nursery("w", WINDOW)


def _nursery(name: str, *preload: str) -> Iterator[Nursery]:
    folder = Path(tempfile.gettempdir()) / f"{name}{secrets.token_hex(2)}"
    made = Nursery(folder, *preload)
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.fixture
def broken(state_dir: Path, nursery: Nursery) -> Iterator[Make]:
    """Makes an instance to be broken, in the test's own state directory; its end is seen to whatever became of it."""
    made: list[Broken] = []

    def make(*options: str) -> Broken:
        made.append(Broken(state_dir, nursery, *options))
        return made[0]

    yield make
    for it in made:
        it.close()
