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

import pytest

from console.settings.places import find_places
from tests.fakes.instance import Instance, Patient, until

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

    def start(self) -> None:
        """As every instance, behind mounts that only it has."""
        shell = f'mount -t tmpfs none "$0" && mount --bind "$1" {SYSTEMD_RUN} && shift && exec "$@"'
        self.process = made = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", shell, str(self.shown), str(self._starter)]
            + [sys.executable, "-m", "console.supervisor", "serve", "--state-dir", str(self.state_dir), *self.options],
            cwd=self.code,
            env={**os.environ, "WATCHFLOOR_AGENT_UNITS": "watchfloor-agent-"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert made.stdout is not None and made.stderr is not None
        line = made.stdout.readline()
        assert line == b"ready\n", (line, made.stderr.read().decode())
        places = find_places(str(self.state_dir), create=False)
        assert places is not None
        self.places, self.api = places, Patient(places, timeout_s=60)

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        shutil.rmtree(self.folder)


@pytest.fixture
def bound(state_dir: Path) -> Iterator[BoundInstance]:
    if not SYSTEMD_RUN.exists():
        pytest.skip("systemd-run is not installed: nothing stands in its place")
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
