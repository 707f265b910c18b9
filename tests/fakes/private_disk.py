"""A tiny file system in a private mount namespace: a child runs there with its own full disk, and nothing of it is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent

_PRELUDE = """
import json, os, subprocess, sys, time
from pathlib import Path
disk = Path(sys.argv[1])

def fill(leave=0):
    # Eats every free block but `leave` bytes; to be removed by `empty`. Who replaces a file at this moment frees the old one's
    # blocks a moment later, so it looks again until nothing was freed.
    with (disk / "ballast").open("ab", buffering=0) as stream:
        was = -1
        while was != stream.tell():
            was = stream.tell()
            for size in (65536, 4096, 512, 1):
                try:
                    while True:
                        stream.write(b"x" * size)
                except OSError:
                    pass
            time.sleep(0.3)
        if leave:
            os.ftruncate(stream.fileno(), stream.tell() - leave)

def empty():
    (disk / "ballast").unlink()

def read_only(on):
    subprocess.run(["mount", "-o", "remount," + ("ro" if on else "rw"), str(disk)], check=True)
"""


def run_on_a_small_disk(mount_point: Path, code: str, size: str = "2m", timeout: float = 250.0) -> Any:
    """Runs ``code`` (it has ``disk``, ``fill``, ``empty``, ``read_only``) on a tmpfs of ``size``; returns what it prints as JSON."""
    mount_point.mkdir(exist_ok=True)
    script = _PRELUDE + textwrap.dedent(code)
    shell = f'mount -t tmpfs -o size={size} none "$1" && exec "$2" -W error -c "$3" "$1"'
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run(
        ["unshare", *user, "--mount", "--propagation", "private", "sh", "-c", shell, "sh", str(mount_point), sys.executable, script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
