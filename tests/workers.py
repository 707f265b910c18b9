"""One pytest that collects once and then is several processes: forked, they share the files out, and their reports come back here.

Collecting imports everything and takes half a minute of a core where nothing was compiled before; several runs would each do it again.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import selectors
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest

from tests.sharing import taken

_DIED = 70
"""Exit status of a process that could not go on."""


@dataclass
class _Worker:
    """One of the processes, as the first one sees it."""

    pid: int
    source: int
    log: Path
    unread: bytes = b""
    runs: str = ""
    """The test it is in."""
    is_done: bool = False
    finished: set[str] = field(default_factory=set)


def side_by_side(session: pytest.Session, count: int, root: Path, begin: Callable[[], None]) -> bool:
    """Runs each collected test in exactly one of ``count`` processes, a file whole and in its own order; what they report is reported here.

    ``begin`` is called in each of them first. A test that nobody reported, and a process that died, are failures.
    """
    folder = Path(tempfile.mkdtemp(prefix="wft-", dir="/tmp"))  # noqa: S108 - not in the folder of this session: theirs are others
    gc.collect()
    gc.freeze()  # what was collected stays, and is looked through for garbage in none of them
    sys.stdout.flush()
    sys.stderr.flush()
    workers: list[_Worker] = []
    try:
        for number in range(count):
            source, sink = os.pipe()
            log = folder / f"{number}.log"
            pid = os.fork()
            if pid == 0:
                for other in (source, *(worker.source for worker in workers)):
                    os.close(other)  # nobody but the first hears them: when it is gone, whoever speaks ends
                _run(session, folder, log, sink, root, begin)
            os.close(sink)
            workers.append(_Worker(pid, source, log))
        _listen(session, workers, folder)
    finally:
        for worker in workers:
            os.close(worker.source)  # whoever still speaks, after an interruption, ends
            _end(session, worker, os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1]))
        shutil.rmtree(folder)
    finished = set().union(*(worker.finished for worker in workers))
    if not session.shouldfail and not session.shouldstop:
        for item in session.items:
            if item.nodeid not in finished:
                _fail(session, item.nodeid, "no process reported its end")
    return True


def note_failed(session: pytest.Session, file: Path) -> None:
    """Writes the ids of what failed, one a line, for a second run alone; nothing when a process died or when a test is missing.

    What a process was in when it died may not be what killed it, so no second run can tell.
    """
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    assert reporter is not None
    failed = [*reporter.stats.get("failed", ()), *reporter.stats.get("error", ())]
    if not any(isinstance(report.longrepr, str) for report in failed):
        file.write_text("".join(f"{one}\n" for one in dict.fromkeys(report.nodeid for report in failed)))


def _listen(session: pytest.Session, workers: list[_Worker], folder: Path) -> None:
    """Until the last of them has closed its end."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.source, selectors.EVENT_READ, worker)
        while selector.get_map():
            for key, _ in selector.select():
                worker = key.data
                piece = os.read(worker.source, 1 << 20)
                if not piece:
                    selector.unregister(worker.source)
                    continue
                *lines, worker.unread = (worker.unread + piece).split(b"\n")
                for line in lines:
                    _hear(session, worker, json.loads(line))
            if session.shouldfail or session.shouldstop:
                (folder / "stop").touch()


def _hear(session: pytest.Session, worker: _Worker, said: dict[str, object]) -> None:
    hook = session.config.hook
    data = said.get("report")
    if isinstance(data, dict):
        for name, value in data.items():
            if name in ("location", "longrepr") and isinstance(value, list):
                data[name] = tuple(value)  # JSON knows none
        hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=session.config, data=data))
    elif "started" in said:
        worker.runs = str(said["started"])
        hook.pytest_runtest_logstart(nodeid=said["started"], location=tuple(said["location"]))  # type: ignore[arg-type]
    elif "finished" in said:
        worker.finished.add(str(said["finished"]))
        worker.runs = ""
        hook.pytest_runtest_logfinish(nodeid=said["finished"], location=tuple(said["location"]))  # type: ignore[arg-type]
    else:
        worker.is_done = True


def _end(session: pytest.Session, worker: _Worker, status: int) -> None:
    if worker.is_done and status == 0:
        return
    words = f"the process that ran it ended with {status}:\n{worker.log.read_text(errors='replace')[-20_000:]}"
    _fail(session, worker.runs or f"process {worker.pid}", words)


def _fail(session: pytest.Session, nodeid: str, words: str) -> None:
    report = pytest.TestReport(nodeid, (nodeid.split("::")[0], None, nodeid), {}, "failed", words, "call")
    session.config.hook.pytest_runtest_logreport(report=report)


class _Teller:
    """In each of them: says what happens, one line of JSON each."""

    def __init__(self, config: pytest.Config, sink: int) -> None:
        self._config, self._sink = config, sink

    def say(self, **said: object) -> None:
        rest = memoryview(json.dumps(said, default=str).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._sink, rest) :]

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.say(started=nodeid, location=location)

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self.say(finished=nodeid, location=location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.say(report=self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def _run(session: pytest.Session, folder: Path, log: Path, sink: int, root: Path, begin: Callable[[], None]) -> NoReturn:
    """The life of one of them; it never goes back into what it was forked from."""
    status = _DIED
    try:
        _write_to(session.config, log)
        teller = _Teller(session.config, sink)
        begin()
        try:
            session.config.pluginmanager.register(teller)
            _run_taken(session, folder, root)
            session.config.hook.pytest_sessionfinish(session=session, exitstatus=pytest.ExitCode.OK)
        finally:
            session.config._ensure_unconfigure()  # all that pytest looks at and puts away at its end
        teller.say(done=True)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it must not reach the first one's own frames
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _run_taken(session: pytest.Session, folder: Path, root: Path) -> None:
    """pytest's own loop, over the files that nobody else has taken."""
    items = taken(session.items, folder / "taken", root)
    item = next(items, None)
    while item is not None and not (folder / "stop").exists():
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following


def _write_to(config: pytest.Config, log: Path) -> None:
    """What it prints is read only when it dies; what pytest captures goes to files of its own, not to those it was forked with."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    faulthandler.enable(2)  # where it was when it died by a signal; pytest's own writes to the first one's stderr
    capture.start_global_capturing()
    capture.suspend_global_capture(in_=True)
