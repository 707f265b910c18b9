"""Agents of a supervisor that a unit binds: they are started outside, and see the host as any program of the host does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from console.sandbox import outside
from tests.fakes.instance import Instance, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace is made and left: this needs root")
SYSTEMD_RUN = Path("/usr/bin/systemd-run")
STARTER = """#!/bin/sh
# Stands in for process 1: what it is asked to run begins in the namespaces of the test, whatever binds the one that asks.
echo "$@" >>"{told}"
while [ "$1" != -- ]; do shift; done
shift
exec nsenter --mount=/proc/{pid}/ns/mnt --root=/proc/{pid}/root --wd=/proc/{pid}/root -- "$@"
"""


class BoundInstance(Instance):
    """A supervisor in a mount namespace of its own, from which a folder of the host cannot be seen."""

    environment: ClassVar[dict[str, str]] = {"WATCHFLOOR_AGENT_UNITS": "watchfloor-agent-"}

    def __init__(self, state_dir: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wf-bound-"))
        self.folder.chmod(0o755)
        self.shown = self.folder / "shown"
        self.shown.mkdir(mode=0o755)
        (self.shown / "of-the-host").write_text("the host's own\n")
        self.told = self.folder / "told"
        self._starter = self.folder / "systemd-run"
        self._starter.write_text(STARTER.format(told=self.told, pid=os.getpid()))
        self._starter.chmod(0o755)
        super().__init__(state_dir)
        (state_dir / "policy.json").write_text(json.dumps({"permissions": {"allow": ["shell(echo:*)", "shell(cat:*)"]}}))

    @property
    def before(self) -> list[str]:
        shell = f'mount -t tmpfs none "$0" && mount --bind "$1" {SYSTEMD_RUN} && shift && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", shell, str(self.shown), str(self._starter)]

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        shutil.rmtree(self.folder)


@pytest.fixture
def bound(state_dir: Path) -> Iterator[BoundInstance]:
    assert SYSTEMD_RUN.exists(), "packaging/test installs systemd: the stand-in lies over its systemd-run"
    with BoundInstance(state_dir) as made:
        assert isinstance(made, BoundInstance)
        yield made


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_an_agent_of_a_bound_supervisor_is_started_outside_sees_the_hosts_mounts_and_is_confirmed_dead(
    bound: BoundInstance, sandbox: str
) -> None:
    assert bound.process is not None and not Path(f"/proc/{bound.process.pid}/root{bound.shown}/of-the-host").exists()
    look = f"print(*__import__('os').listdir('{bound.shown}')) if {sandbox == 'none'} else None; "
    tell = "import os, time; print('environment', sorted(os.environ)); print('open', sorted(os.listdir('/proc/self/fd'))); "
    agent = bound.launch("python3", "-u", "-c", f"{look}{tell}print('ready'); time.sleep(600)", sandbox=sandbox)
    said = bound.says(agent, "ready")
    assert ("of-the-host" in said) == (sandbox == "none")
    assert "INVOCATION_ID" not in said and "open ['0', '1', '2', '3']" in said  # 3: the folder that is being listed
    assert "--unit=watchfloor-agent-" in bound.told.read_text()
    receipt = bound.api.kill(agent)
    assert receipt.verified_zero, receipt
    until(lambda: bound.agent(agent).state == "killed", words="it is shown as killed")


def test_a_judged_call_runs_in_a_sandbox_that_is_started_outside_too(bound: BoundInstance) -> None:
    call = "done = agent.execute('shell', 'echo judged | cat'); print('DONE', done['code'], done['stdout'], flush=True); time.sleep(300)"
    agent = bound.python(call)
    assert "DONE 0 b'judged\\n'" in bound.says(agent, "DONE")
    started = [line for line in bound.told.read_text().splitlines() if "shim.py" in line]
    assert len(started) > 1 and len({line.partition("--unit=")[2].split()[0] for line in started}) == len(started)


def test_no_agent_starts_where_systemd_starts_none_and_the_error_says_so(bound: BoundInstance) -> None:
    bound.folder.joinpath("systemd-run").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    with pytest.raises(Exception, match="Failed to connect to bus"):
        bound.launch("sleep", "600")


def test_what_systemd_starts_once_nobody_waits_writes_into_no_file_that_has_the_number_since(tmp_path: Path) -> None:
    other, program = tmp_path / "ledger.db", tmp_path / "program.py"
    other.write_bytes(b"rows")
    program.write_text("print('ran')")
    with other.open("r+b") as there:
        told = f"{there.fileno()}:{other.stat().st_ino + 1}"
        words = [sys.executable, "-I", "-S", outside.__file__, str(os.getpid()), told, str(program)]
        late = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert late.returncode and "waits no longer" in late.stderr and not late.stdout and other.read_bytes() == b"rows"
        words[5] = f"{there.fileno()}:{other.stat().st_ino}"
        assert subprocess.run(words, capture_output=True, text=True, timeout=60).stdout == "ran\n"
