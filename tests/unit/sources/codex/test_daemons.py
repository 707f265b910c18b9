"""Codex's app-server: the threads it hosts are the rollouts that it holds open."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.cli.stop.daemons import show_daemons
from console.domain.agent import AgentId, ProcessIdentity
from console.killswitch.kill.daemons import KNOWN_FILE, Holds, Known, Struck
from console.services.daemons.facts import Asked, look
from console.services.daemons.service import DaemonService
from console.sources.codex.daemons import CodexDaemons
from console.sources.daemons.processes import Processes
from tests.fakes.daemons import alerts_into
from tests.fakes.going_on import PYTHON
from tests.fakes.instance import listens, until

ONE, TWO = "01a20849-8ee7-7821-bde4-dae8951094bd", "01a20849-9435-7b32-8413-691d4df13ea0"
SERVER = """
import pathlib, signal, socket, sys
home = pathlib.Path.cwd()
files = [(home / f"rollout-2026-11-23T12-00-00-{thread}.jsonl").open("a") for thread in sys.argv[1:]]
door = socket.socket(socket.AF_UNIX); door.bind(str(home / "private" / "sock")); door.listen(4)
signal.pause()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="codex-stage-"))
    folder.chmod(0o755)
    (folder / "bin").mkdir()
    shutil.copy2(Path(PYTHON).resolve(), folder / "bin" / "codex")
    (folder / "codex-package.json").write_text(json.dumps({"entrypoint": "bin/codex"}))
    (folder / "app-server").write_text(SERVER)
    (folder / "private").mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def serving(home: Path, *threads: str) -> Iterator[ProcessIdentity]:
    """An app-server that hosts these."""
    env = {"PYTHONHOME": "/usr", "HOME": str(home), "CODEX_HOME": str(home)}
    server = subprocess.Popen([str(home / "bin" / "codex"), "app-server", *threads], cwd=home, env=env, start_new_session=True)
    try:
        until(lambda: listens(home / "private" / "sock"), words="it listens")
        process = Processes().identity(server.pid)
        assert process is not None
        yield process
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.wait(10)


def test_its_threads_and_the_command_that_drops_one(home: Path) -> None:
    program = str(home / "bin" / "codex")
    with serving(home, ONE, TWO) as process:
        processes = Processes()
        found = CodexDaemons().find(processes.line(process), processes)
        assert found is not None and (found.process, found.uid, found.refused) == (process, os.geteuid(), "")
        assert [h.session for h in found.hosted] == [ONE, TWO] and all(h.child is None for h in found.hosted)
        assert found.home == (("HOME", str(home)), ("CODEX_HOME", str(home)))
        assert CodexDaemons().drop(found, TWO) == (program, "archive", TWO)
        assert CodexDaemons().drop(found, "--help") == ()


@pytest.mark.parametrize("threads", [(ONE,), (ONE, TWO)])
async def test_before_a_kill_nobody_is_told_that_its_other_threads_live_on(
    home: Path, capsys: pytest.CaptureFixture[str], threads: tuple[str, ...]
) -> None:
    with serving(home, *threads) as process:
        agent = Asked(AgentId("a1"), ("codex",), ONE, process, str(home))
        service = DaemonService(lambda: [agent], lambda *_, **__: {}, lambda *_: None, lambda *_: None, alerts_into([]))
        await service.refresh()
        show_daemons(service.around(["a1"]))
    said = capsys.readouterr().out
    assert "the agent's own process: a kill ends all sessions in it" in said and "live on" not in said
    assert ("the other sessions too" in said) == (f"other sessions in it: {TWO}" in said) == (TWO in threads)


@pytest.mark.parametrize("target", ["a1", "a2"])
def test_it_is_its_agents_own_process_whichever_of_its_threads_is_killed(home: Path, tmp_path: Path, target: str) -> None:
    known = Known(tmp_path / KNOWN_FILE)
    with serving(home, ONE, TWO) as process:
        for line in look([Asked(AgentId(f"a{n}"), ("codex",), thread, process, "") for n, thread in ((1, ONE), (2, TWO))]).messages():
            known.hear(json.loads(json.dumps(line)), lambda _, save: save())
        os.kill(process.pid, signal.SIGKILL)  # as the kill does at this moment: its program cannot be read any more
        struck = Struck("kill-1", (target,), known.told, Holds(tmp_path, lambda *_, **__: None), lambda: frozenset())
        struck.start()
        (row,) = struck.zero(10.0)
    assert (row.action, "own process" in row.reason) == ("killed", True)
