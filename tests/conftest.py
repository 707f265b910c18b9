"""What every test has: the project on sys.path, a temporary folder of the session's own, and a check that nothing is left behind."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.leaks import SESSION_VARIABLE, Session, ask_engine  # noqa: E402 - needs the line above
from tests.workers import note_failed, side_by_side  # noqa: E402

FULL_COUNTS_S = 3600
"""Time-out of a test with its full counts: 200 supervisors that are killed and started take minutes on a busy machine."""
_SHALLOW = ("unit", "gui")
"""Rooms of tests/ whose tests start nothing detached: only their children are looked at after each test, the rest at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the full counts of the heavy tests")
    parser.addoption("--workers", type=int, default=1, help="processes that run the tests side by side; each file goes to whoever is free")
    parser.addoption("--failed-to", type=Path, help="with --workers: the file that gets the ids of the tests that failed")


def pytest_configure(config: pytest.Config) -> None:
    _begin(config)
    # What is drawn at random is the same each time, and a busy machine fails no test; --long draws anew.
    settings.register_profile("ordinary", derandomize=not config.getoption("--long"), deadline=None, database=None)
    settings.load_profile("ordinary")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it starts in the background: tests send it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is not None:
        shutil.rmtree(session.folder, ignore_errors=True)


def _begin(config: pytest.Config) -> None:
    """A session of its own for this process."""
    # Short, because a unix socket's path holds 107 bytes; 0711, because agents run under another uid.
    folder = Path(tempfile.mkdtemp(prefix="wt-", dir="/tmp"))  # noqa: S108
    folder.chmod(0o711)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    os.environ["WATCHFLOOR_ETC"] = str(folder / "no-etc")  # the settings of this host's administrator are not the tests' own
    mark = secrets.token_hex(8)
    os.environ[SESSION_VARIABLE] = mark
    config.stash[_SESSION] = Session(mark, folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        for item in items:
            if "full_counts" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.timeout(FULL_COUNTS_S))
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="full counts run with --long"))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With ``--workers``: several processes instead of pytest's own loop."""
    config = session.config
    count = config.getoption("--workers")
    if count < 2 or config.getoption("collectonly") or session.testsfailed:
        return None
    side_by_side(session, count, ROOT, lambda: _begin(config))
    if file := config.getoption("--failed-to"):
        note_failed(session, file)
    return True


_SESSION = pytest.StashKey[Session]()


def _engine() -> Path:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return Path(host.removeprefix("unix://"))


@pytest.fixture(scope="session", autouse=True)
def nothing_left_by_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    """At the very end no process that any test started lives."""
    session = request.config.stash[_SESSION]
    before = session.look(deep=True, engine=None)
    yield
    left = session.left_after(before, deep=True, engine=None)
    assert not left, "the tests left behind: " + "; ".join(left)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test: no process, thread, file, mount, cgroup, network or container of its making."""
    session = request.config.stash[_SESSION]
    room = request.path.relative_to(ROOT / "tests").parts[0]
    deep = room not in _SHALLOW
    engine = _engine() if request.node.get_closest_marker("engine") else None
    before = session.look(deep=deep, engine=engine)
    yield
    left = session.left_after(before, deep=deep, engine=engine)
    assert not left, "this test left behind: " + "; ".join(left)


@pytest.fixture
def state_dir(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty state directory with a short path that agents under another uid can pass through."""
    folder = request.config.stash[_SESSION].folder / f"s{secrets.token_hex(3)}"
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def forked() -> Iterator[None]:
    """One process that has imported what supervisors and verbs import forks those of Instance and Terminal: imports would take minutes.

    Programs started from scratch have tests of their own (end2end/test_demo.py).
    """
    from tests.fakes.nursery import SHARED, VERBS, Nursery

    folder = Path(tempfile.gettempdir()) / "pytest-of-nursery"
    made = Nursery(folder, VERBS)
    SHARED.append(made)
    yield
    SHARED.clear()
    made.close()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def engine_socket() -> Path:
    """The Docker engine's socket, which answers. packaging/test sees to one."""
    engine = _engine()
    if not ask_engine(engine, "/_ping"):
        pytest.fail(f"No Docker engine answers on {engine}: start one (packaging/engine) or name one in DOCKER_HOST.", pytrace=False)
    return engine


@pytest.fixture(scope="session")
def full_counts(request: pytest.FixtureRequest) -> bool:
    """Whether the heavy tests run their full counts (--long)."""
    return bool(request.config.getoption("--long"))
