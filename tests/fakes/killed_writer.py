"""A child that writes and says what was acknowledged, and is killed with SIGKILL in mid-write (fault 1)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from console.egress.children import readable

ROOT = Path(__file__).resolve().parent.parent.parent

_PRELUDE = """
import os, sys, threading
from pathlib import Path
folder = Path(sys.argv[1])

def acknowledge(text):
    os.write(1, (text + "\\n").encode())
"""


def killed_in_mid_write(folder: Path, code: str, after_s: float, first_line_s: float = 60.0) -> list[str]:
    """Runs ``code`` (it has ``folder`` and ``acknowledge``), kills it ``after_s`` after its first word; returns what it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + textwrap.dedent(code), str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    received = b""
    try:
        end = time.monotonic() + first_line_s
        while time.monotonic() < end:
            ready = readable(child.stdout.fileno(), 0.01)
            if ready:
                piece = os.read(child.stdout.fileno(), 65536)
                if not piece:
                    break
                if not received:
                    end = min(end, time.monotonic() + after_s)
                received += piece
    finally:
        child.kill()
        received += child.stdout.read()
        errors = child.stderr.read().decode()
        child.stdout.close()
        child.stderr.close()
        child.wait()
    assert received, errors
    assert child.returncode == -9, errors
    return received[: received.rfind(b"\n")].decode().split("\n")
