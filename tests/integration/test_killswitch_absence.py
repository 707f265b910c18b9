"""A press from where nobody can be seen (another PID namespace, no cgroup mounted) calls nobody dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from console.domain.verdict import verdict
from tests.fakes.guard_world import WAIT_S, GuardWorld

BLIND = r"""
import json, subprocess, sys
from pathlib import Path
subprocess.run(["umount", "-l", "/sys/fs/cgroup"], check=True)
from console.domain.verdict import verdict
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_without_guard
receipt = press_without_guard(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], "all", "from in here", "test")
print("RESULT " + json.dumps(receipt.as_json()), flush=True)
"""


def test_who_cannot_be_seen_from_here_is_not_proven_dead(state_dir: Path) -> None:
    world = GuardWorld(state_dir).start()
    try:
        process = world.agent("one")
        world.kill_guard()
        blind = [sys.executable, "-c", BLIND, str(state_dir), str(world.run), world.instance]
        command = ["/usr/bin/unshare", "-m", "-p", "-f", "--mount-proc", *blind]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, capture_output=True, timeout=WAIT_S, check=False, env=env)
        lines = [line for line in done.stdout.decode().splitlines() if line.startswith("RESULT ")]
        assert lines, done.stderr.decode()[-3000:]
        receipt = json.loads(lines[0].removeprefix("RESULT "))
        assert process.poll() is None, "nothing in there can reach it"
        [target] = receipt["targets"]
        assert not receipt["verified_zero"] and target["outcome"] == "not_proven"
        assert "cannot be seen from here" in target["evidence"]["why"]
        world.start()
        assert not verdict(world.pressed()).may_run, "where it can be seen it is killed, and proven"
        process.wait(WAIT_S)
    finally:
        world.close()
