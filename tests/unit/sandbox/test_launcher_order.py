"""Init and readiness arrive through one pipe from two processes, in either order."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from console.sandbox.interface import Ticket
from console.sandbox.launcher import Patience, _await_ready, _Pipes


@pytest.mark.parametrize("ready_first", [False, True])
def test_either_order_gives_the_same_sandbox(ready_first: bool) -> None:
    with subprocess.Popen(["sleep", "30"]) as init:
        pipes = _Pipes()
        try:
            lines = [{"init": init.pid}, {"ready": True, "child": 0}]
            for line in reversed(lines) if ready_first else lines:
                os.write(pipes.status[1], json.dumps(line).encode() + b"\n")
            launched = _await_ready(pipes, Ticket(""), Patience(""))
            assert (launched.init, launched.child) == (init.pid, 0)
            os.close(launched.init_pidfd)
        finally:
            pipes.close_all()
            init.kill()
