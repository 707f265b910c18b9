"""How long the command line takes, as times the start of a bare interpreter, beside ``docker ps``.

Each verb runs ``--rounds`` times in turn with a bare ``python -c pass`` of the same environment, and the medians are compared.
``panic`` is timed until its order reaches the socket of the guard, since the rest is the kill. ``--docker-host`` names an engine for
``docker ps``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from console.settings.places import find_places, make_run_dir
from tests.fakes.terminal import open_terminal

TARGETS = {
    ("--version",): 5,
    ("--help",): 5,
    ("completion", "bash"): 5,
    ("status",): 10,
    ("fleet",): 10,
    ("approval", "list"): 10,
    ("kill", "--all", "--dry-run"): 10,
    ("panic", "--reason", "bench"): 6,
}


def ran(argv: list[str], environment: dict[str, str]) -> float:
    """Seconds from its start to its end."""
    began = time.perf_counter()
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def pressed(argv: list[str], environment: dict[str, str], state_dir: Path) -> float:
    """Seconds from its start until its order is at the guard's socket; it is ended then, and nothing is killed."""
    places = find_places(str(state_dir), create=True)
    make_run_dir(places)
    places.guard_sock.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.guard_sock))
        listener.listen()
        began = time.perf_counter()
        child = subprocess.Popen(
            [*argv, "--state-dir", str(state_dir)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        guard, _ = listener.accept()
        with guard:
            guard.recv(1)
            took = time.perf_counter() - began
            child.kill()
            child.wait()
    return took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--docker-host", default="", help="unix:///... of an engine for docker ps")
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="watchfloor-bench-cli-"))
    folder.chmod(0o711)
    try:
        with open_terminal(folder) as terminal:
            terminal.serve()
            terminal("run", "--", "sleep", "300")
            environment = terminal.environment
            work: dict[str, Callable[[], float]] = {"python -c pass": lambda: ran([sys.executable, "-c", "pass"], environment)}
            for verb in TARGETS:
                argv = [sys.executable, "-m", "console", *verb]
                if verb[0] == "panic":
                    work[" ".join(verb)] = lambda argv=argv: pressed(argv, environment, folder / "other")  # type: ignore[misc]
                else:
                    work[" ".join(verb)] = lambda argv=argv: ran(argv, environment)  # type: ignore[misc]
            if given.docker_host and (docker := shutil.which("docker")):
                work["docker ps"] = lambda: ran([docker, "ps"], os.environ | {"DOCKER_HOST": given.docker_host})
            times: dict[str, list[float]] = {name: [] for name in work}
            for _ in range(given.rounds):
                for name, run in work.items():
                    times[name].append(run())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bare = statistics.median(times["python -c pass"])
    wanted = {" ".join(verb): most for verb, most in TARGETS.items()}
    print(f"{'':24}  median ms  x bare  at most")
    for name, took in times.items():
        median = statistics.median(took)
        print(f"{name:24}  {median * 1000:9.1f}  {median / bare:6.1f}  {wanted.get(name, ''):>7}")


if __name__ == "__main__":
    main()
