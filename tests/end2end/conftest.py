"""Sentences start supervisors and verbs by the dozen; a module that says nothing else shares one instance among its sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from console.cli.main import main
from tests.fakes.instance import Instance
from tests.fakes.standing import end_all, standing_instance


@pytest.fixture(scope="session", autouse=True)
def forked_sentences(forked: None) -> None:
    """Instance and Terminal fork them from one process."""


@pytest.fixture(scope="module")
def standing() -> Iterator[Instance]:
    """One instance for all sentences of a module that neither kill everything nor restart it."""
    with standing_instance() as instance:
        yield instance


@pytest.fixture
def it(standing: Instance) -> Iterator[Instance]:
    """The standing instance, with nobody left after each sentence."""
    yield standing
    end_all(standing)


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def watchfloor(it: Instance, capsys: pytest.CaptureFixture[str]) -> Say:
    """A verb of this instance: exit code, stdout, stderr."""

    def say(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(
            [argv[0], "--state-dir", str(it.state_dir), *argv[1:]] if argv[0] == "run" else [*argv, "--state-dir", str(it.state_dir)]
        )
        told = capsys.readouterr()
        return code, told.out, told.err

    return say
