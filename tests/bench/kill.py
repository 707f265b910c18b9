"""How fast a press is, and whether anything survives it: ``python tests/bench/kill.py [--rounds N] [--container-rounds N]``.

Every method gets the same trees, launched the same way, in one run, shuffled, so that ratios mean something on a busy machine.
Time is from the call to the moment the *pids* hierarchy of cgroup v1, which no method uses, lists no process (at most 1 s, then
survivors are counted). ``plain``: 100 processes in one session. ``hostile``: 40 plain, 20 in sessions of their own, 40 double-forked
orphans in sessions of their own. ``containers``: 20 containers of one busybox shell and two sleeps each.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil  # type: ignore[import-untyped]  # noqa: E402 - needs the line above to find the project

from tests.fakes.docker_engine import Docker, busybox_tar  # noqa: E402
from tests.fakes.guard_world import GuardWorld, ticks, until  # noqa: E402

LIMIT_S = 1.0
TREE = r"""
import os, sys, time
plain, session, orphan = map(int, sys.argv[1:4])
for i in range(plain + session + orphan - 1):
    if os.fork() == 0:
        if i >= plain + session - 1:
            if os.fork(): os._exit(0)
            os.setsid()
        elif i >= plain - 1:
            os.setsid()
        time.sleep(600); os._exit(0)
while True:
    try: os.wait()
    except ChildProcessError: time.sleep(1)
"""
SHAPES = {"plain 100": ("100", "0", "0"), "hostile 100": ("40", "20", "40")}


class Table:
    """Milliseconds and survivors per (case, method)."""

    def __init__(self) -> None:
        self.ms: dict[tuple[str, str], list[float]] = {}
        self.survivors: dict[tuple[str, str], list[int]] = {}

    def add(self, case: str, method: str, ms: float, survivors: int) -> None:
        self.ms.setdefault((case, method), []).append(ms)
        self.survivors.setdefault((case, method), []).append(survivors)

    def show(self) -> None:
        print(f"\n{'case':<14}{'method':<28}{'n':>3}{'median ms':>11}{'p95 ms':>9}{'x bare':>8}{'runs at zero':>14}{'survivors':>11}")
        for (case, method), values in sorted(self.ms.items()):
            left = self.survivors[case, method]
            zero = [ms for ms, n in zip(values, left, strict=True) if n == 0]
            bare = statistics.median(self.ms[case, BARE])
            words = (
                (f"{statistics.median(zero):11.1f}{_p95(zero):9.1f}{statistics.median(zero) / bare:8.1f}")
                if zero
                else f"{'never':>11}{'':>9}{'':>8}"
            )
            print(f"{case:<14}{method:<28}{len(values):>3}{words}{f'{len(zero)}/{len(values)}':>14}{statistics.median(left):>11.0f}")
        print(f"\nload average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; compare within this run only.")


BARE = "bare cgroup.kill write"
PRESS = "watchfloor press (guard)"


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def time_to_zero(act: Callable[[], object], members: Callable[[], list[int]]) -> tuple[float, int]:
    """(ms from the call until nobody is left, who is left after the limit). The call runs beside the watch."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act)
        while members():
            if time.perf_counter() - begun > LIMIT_S and acting.done():
                acting.result()
                return (time.perf_counter() - begun) * 1000, len(members())
            time.sleep(0.0003)
        ms = (time.perf_counter() - begun) * 1000
        acting.result()
    return ms, 0


def listed(folders: list[Path]) -> list[int]:
    """Live members of v1 groups; a removed one has none."""
    found: list[int] = []
    for folder in folders:
        try:
            found += [int(line) for line in (folder / "cgroup.procs").read_text().split()]
        except OSError:
            continue
    return found


def psutil_recipe(pid: int) -> None:
    """psutil's documentation, "Kill process tree"."""
    parent = psutil.Process(pid)
    everyone = [*parent.children(recursive=True), parent]
    for process in everyone:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(everyone, timeout=1)


def release(world: GuardWorld) -> None:
    """Waits for the kill to be over and unlatches, outside of the measured time."""
    until(lambda: (world.operator.status()["kill"] or {"done": True})["done"], "the kill is done")
    status = world.operator.status()
    if status["latched"]:
        world.supervisor.unlatch(status["generation"], status["kills"], "bench")


def run_processes(world: GuardWorld, table: Table, rounds: int) -> None:
    for number in range(rounds):
        jobs = [(case, method) for case in SHAPES for method in (PRESS, BARE, "psutil recipe", "killpg")]
        random.shuffle(jobs)
        for case, method in jobs:
            agent = f"a{number}-{abs(hash((case, method))) % 10**8}"
            process = world.python(agent, TREE, *SHAPES[case], pids_max=400, start_new_session=True)
            folders = list(Path(f"/sys/fs/cgroup/pids/watchfloor-{world.instance}").glob(f"{agent}-*"))
            leaf = next(Path(f"/sys/fs/cgroup/unified/watchfloor-{world.instance}/agents").glob(f"{agent}-*"))
            until(lambda f=folders: len(listed(f)) >= 100, "the tree has grown")  # type: ignore[misc]
            time.sleep(0.1)
            acts: dict[str, Callable[[], object]] = {
                PRESS: lambda: world.operator.press("all", "bench", "bench", timeout_s=5),
                BARE: lambda leaf=leaf: (leaf / "cgroup.kill").write_text("1"),  # type: ignore[misc]
                "psutil recipe": lambda pid=process.pid: psutil_recipe(pid),  # type: ignore[misc]
                "killpg": lambda pid=process.pid: os.killpg(pid, signal.SIGKILL),  # type: ignore[misc]
            }
            table.add(case, method, *time_to_zero(acts[method], lambda f=folders: listed(f)))  # type: ignore[misc]
            (leaf / "cgroup.kill").write_text("1")
            process.wait()
            until(lambda f=folders: not listed(f), "cleaned up")  # type: ignore[misc]
            release(world)
            world.supervisor.forget(agent)


def run_containers(world: GuardWorld, table: Table, rounds: int, count: int, docker: Docker, image: str) -> None:
    tree = "sleep 600 & sleep 600 & wait"
    for number in range(rounds):
        methods = [PRESS, BARE, "docker kill"]
        random.shuffle(methods)
        for method in methods:
            names = [f"c{number}-{methods.index(method)}-{i}" for i in range(count)]
            tickets = {name: world.supervisor.ticket(name, "container", "contained") for name in names}
            with ThreadPoolExecutor(4) as pool:
                made = dict(zip(names, pool.map(lambda n: docker.run(image, world.instance, n, "/bin/sh", "-c", tree), names), strict=True))
            for name, (container, pid) in made.items():
                world.supervisor.confirm(name, tickets[name]["generation"], pid, ticks(pid), container)
            ids = [container for container, _ in made.values()]
            folders = [Path(f"/sys/fs/cgroup/pids/docker/{i}") for i in ids]
            until(lambda f=folders: len(listed(f)) >= 3 * count, "the containers have grown")  # type: ignore[misc]
            acts: dict[str, Callable[[], object]] = {
                PRESS: lambda: world.operator.press("all", "bench", "bench", timeout_s=5),
                BARE: lambda ids=ids: [Path(f"/sys/fs/cgroup/unified/docker/{i}/cgroup.kill").write_text("1") for i in ids],  # type: ignore[misc]
                "docker kill": lambda ids=ids: subprocess.run(["docker", "kill", *ids], check=True, capture_output=True),  # type: ignore[misc]
            }
            table.add(f"containers {count}", method, *time_to_zero(acts[method], lambda f=folders: listed(f)))  # type: ignore[misc]
            release(world)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda i: docker.ask("DELETE", f"/containers/{i}?force=1&v=1"), ids))
            docker.made = [i for i in docker.made if i not in ids]
            for name in names:
                world.supervisor.forget(name)


@contextmanager
def image_on(socket: Path, folder: Path) -> Iterator[tuple[Docker, str]]:
    docker, name = Docker(socket), f"watchfloor-bench-{os.getpid()}"
    docker.ask("POST", f"/images/create?fromSrc=-&repo={name}&tag=1", busybox_tar(folder), "application/x-tar")
    try:
        yield docker, f"{name}:1"
    finally:
        docker.close()
        docker.ask("DELETE", f"/images/{name}:1?force=1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--container-rounds", type=int, default=3)
    parser.add_argument("--containers", type=int, default=20)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="wfb-", dir="/tmp"))
    engine = Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
    world = GuardWorld(folder / "state", engine_socket=engine if engine.exists() else None)
    world.state.mkdir(mode=0o711)
    table = Table()
    try:
        world.start(heartbeat_s=600.0)
        run_processes(world, table, options.rounds)
        if options.container_rounds and engine.exists():
            with image_on(engine, folder) as (docker, image):
                run_containers(world, table, options.container_rounds, options.containers, docker, image)
        elif options.container_rounds:
            print(f"containers not measured: no engine on {engine}")
        table.show()
    finally:
        world.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
