"""How fast a press is, and whether anything survives it.

``python tests/bench/kill.py [--sizes 10,100,1000] [--rounds N] [--containers 20,100] [--container-rounds N] [--markdown]``

Every method gets the same trees, launched the same way, in one run, shuffled, so that ratios mean something on a busy machine.
Time is from the call to the moment the *pids* hierarchy of cgroup v1, which no method uses, lists no process. Survivors are counted
there 450 ms after the call, and again 300 ms after a second call at 500 ms (the guard gets none: it looks again by itself).

``plain``: processes in one session. ``hostile``: 40 % plain, 20 % in sessions of their own, 20 % double-forked orphans, 20 % orphans
with an empty environment and another name, and one rabbit (a new process and session every 2 ms) and one pair of mutual watchdogs
for every 50. ``containers``: a shell and two sleeps each. "first death" is an upper bound of the first SIGKILL: from the call until
the first process of the tree is dead. "first sent" is the guard's own measure, from its receipt: from the moment the press reached it
until it began to write the first ``cgroup.kill`` to somebody who was there.

A run that breaks (a tree that does not grow in time, an engine that does not answer) is named, swept away and made again, ``TRIES`` times
in all; the table shows what was measured, whatever happens, and the exit code is 1 when a run is missing.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import docker as docker_py  # noqa: E402 - needs the line above to find the project
from docker.errors import DockerException  # noqa: E402
from requests import RequestException  # noqa: E402

from console.domain.errors import ConsoleError  # noqa: E402
from tests.bench.kill_trees import PYTHON, TREE, expire, has_supervisor, kill_group, psutil_recipe, supervised  # noqa: E402
from tests.fakes.docker_engine import Docker, shell_tar  # noqa: E402
from tests.fakes.guard_world import GuardWorld, ticks, until  # noqa: E402

FIRST_LOOK_S, SECOND_PASS_S, SECOND_LOOK_S, LIMIT_S = 0.45, 0.5, 0.8, 30.0
BARE = "bare cgroup.kill write"
PRESS = "watchfloor press (guard)"
CERTAIN = (PRESS, BARE)
"""These are waited for until nobody is left; others get two passes."""
TRIES = 3
FAULTS = (AssertionError, OSError, ConsoleError, subprocess.SubprocessError, DockerException, RequestException)
"""What one run may break on without ending all of them."""
Act = Callable[[], object]


@dataclass
class Run:
    ms: float
    at_450: int
    after_second: int
    first_death_ms: float | None = None
    first_sent_ms: float | None = None


@dataclass
class Table:
    """Runs per (case, method)."""

    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)
    broke: list[str] = field(default_factory=list)
    missing: int = 0

    def attempt(self, what: str, run: Callable[[int], None], sweep: Act) -> None:
        """One run, again from the start when it broke."""
        for number in range(TRIES):
            try:
                run(number)
                return
            except FAULTS as fault:
                self.broke.append(f"{what}: {type(fault).__name__}: {str(fault)[:200]}")
                print(f"  BROKE {self.broke[-1]}", file=sys.stderr, flush=True)
                sweep()
        self.missing += 1

    def add(self, case: str, method: str, run: Run) -> None:
        self.runs.setdefault((case, method), []).append(run)
        print(f"  {case}, {method}: {run.ms:.1f} ms, left {run.at_450} then {run.after_second}", file=sys.stderr, flush=True)

    def rows(self) -> Iterator[list[str]]:
        for (case, method), runs in sorted(self.runs.items(), key=lambda item: (_order(item[0][0]), item[0][1] not in CERTAIN, item[0][1])):
            zero = [r.ms for r in runs if r.after_second == 0]
            bare = [r.ms for r in self.runs.get((case, BARE), []) if r.after_second == 0]
            sent = [r.first_sent_ms for r in runs if r.first_sent_ms is not None]
            deaths = [r.first_death_ms for r in runs if r.first_death_ms is not None]
            median = statistics.median(zero) if zero else 0.0
            yield [
                case,
                method,
                f"{len(zero)}/{len(runs)}",
                f"{median:.1f}" if zero else "never",
                f"{_p95(zero):.1f}" if zero else "",
                f"{median / statistics.median(bare):.1f}" if zero and bare else "",
                f"{max(r.at_450 for r in runs)}",
                f"{max(r.after_second for r in runs)}",
                f"{statistics.median(deaths):.1f}" if deaths else "",
                f"{statistics.median(sent):.2f} ({max(sent):.2f})" if sent else "",
            ]

    def show(self, markdown: bool) -> None:
        head = [
            "case",
            "method",
            "runs at zero",
            "median ms",
            "p95 ms",
            "x bare",
            "left at 450 ms",
            "left after 2nd pass",
            "first death ms",
            "first sent ms (worst)",
        ]
        rows = [head, *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        for number, row in enumerate(rows):
            cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
            print(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells))
            if markdown and number == 0:
                print(f"|{'|'.join('-' * (w + 1) + (':' if i > 1 else '-') for i, w in enumerate(widths))}|")
        for words in self.broke:
            print(f"\nbroke, and was made again: {words}")
        if self.missing:
            print(f"\n{self.missing} runs are MISSING: they broke {TRIES} times.")
        print(f"\nload average at the end {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; compare within this run only.")


def _order(case: str) -> tuple[str, int]:
    kind, _, count = case.rpartition(" ")
    return kind, int(count)


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


class Deaths(threading.Thread):
    """Notes when the first of some processes is dead."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__()
        self.at: float | None = None
        self._fds = []
        for pid in pids:
            with suppress(ProcessLookupError):  # a rabbit: it has run on
                self._fds.append(os.pidfd_open(pid))
        self._poll = select.poll()
        for fd in self._fds:
            self._poll.register(fd, select.POLLIN)

    def run(self) -> None:
        if self._poll.poll(3000):
            self.at = time.perf_counter()

    def end(self) -> None:
        self.join()
        for fd in self._fds:
            os.close(fd)


def measure(act: Act, members: Callable[[], list[int]], certain: bool, watched: list[int]) -> Run:
    """Calls ``act`` beside a watch of who is left, and again at 500 ms for methods that prove nothing."""
    deaths = Deaths(watched)
    deaths.start()
    begun = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act)
        at_450, again = -1, certain
        while left := members():
            now = time.perf_counter() - begun
            if at_450 < 0 and now >= FIRST_LOOK_S:
                at_450 = len(left)
            if not again and now >= SECOND_PASS_S and acting.done():
                again, acting, second = True, pool.submit(act), now
            if not certain and again and acting.done() and now >= max(SECOND_LOOK_S, second + SECOND_LOOK_S - SECOND_PASS_S):
                break
            if now > LIMIT_S:
                break
            time.sleep(0.0005)
        ms = (time.perf_counter() - begun) * 1000
        acting.result()
    deaths.end()
    first = (deaths.at - begun) * 1000 if deaths.at is not None else None
    return Run(ms, max(at_450, 0), len(left), first)


def listed(folders: list[Path]) -> list[int]:
    """Live members of v1 groups; a removed one has none."""
    found: list[int] = []
    for folder in folders:
        try:
            found += [int(line) for line in (folder / "cgroup.procs").read_text().split()]
        except OSError:
            continue
    return found


def release(world: GuardWorld) -> float | None:
    """Waits for the kill to be over and unlatches, outside of the measured time. The guard's own measure of its first SIGKILL, in ms."""
    until(lambda: (world.operator.status()["kill"] or {"done": True})["done"], "the kill is done")
    if not world.operator.status()["latched"]:
        return None
    receipt = world.operator.receipt_text(world.operator.status()["kill"]["kill_id"])
    world.unlatch("bench")
    said = re.search(r"; the first ([0-9.]+) ms after the kill reached the guard", receipt)
    assert said is not None, receipt
    return float(said[1])


def press(world: GuardWorld) -> Act:
    return lambda: world.operator.press("all", "bench", "bench", timeout_s=30)


def run_tree(world: GuardWorld, table: Table, case: str, method: str, agent: str) -> None:
    kind, _, size = case.partition(" ")
    argv = [*PYTHON, TREE, size, kind]
    ticket = world.supervisor.ticket(agent, "process", "managed", pids_max=int(size) * 2 + 100)
    places = [str(p) for p in (ticket["leaf"], *ticket["limit_leaves"]) if p]
    leaf, folders = Path(ticket["leaf"]), [Path(p) for p in ticket["limit_leaves"]]
    with ExitStack() as stack:
        pid = 0
        if method == "supervisorctl stop":
            act = stack.enter_context(supervised(world.state, places, argv))
        else:
            prefix = ["/usr/bin/timeout", "-s", "KILL", "3600"] if method == "timeout -s KILL" else []
            pid = world.spawn_in(ticket, *prefix, *argv, start_new_session=True).pid
            world.supervisor.confirm(agent, ticket["generation"], pid, ticks(pid))
            acts: dict[str, Act] = {
                PRESS: press(world),
                BARE: lambda: (leaf / "cgroup.kill").write_text("1"),
                "psutil recipe": lambda: psutil_recipe(pid),
                "killpg": lambda: kill_group(pid),
                "timeout -s KILL": lambda: expire(pid),
            }
            act = acts[method]
        until(lambda: len(listed(folders)) >= int(size) * 0.98, "the tree has grown", 120)
        time.sleep(0.2)
        watched = [p for p in listed(folders)[:6] if Path(f"/proc/{p}").exists()]
        run = measure(act, lambda: listed(folders), method in CERTAIN, watched)
        until(lambda: (leaf / "cgroup.kill").write_text("1") and not listed(folders), "cleaned up", 60)
    for process in world._started:
        process.wait()
    world._started.clear()
    run.first_sent_ms = release(world)
    table.add(case, method, run)
    world.supervisor.forget(agent)


def run_processes(world: GuardWorld, table: Table, sizes: list[int], rounds: int) -> None:
    methods = [PRESS, BARE, "psutil recipe", "killpg", "timeout -s KILL"]
    if has_supervisor():
        methods.append("supervisorctl stop")
    else:
        print("supervisorctl stop not measured: supervisor (PyPI) is not installed here", file=sys.stderr)
    cases = [f"{kind} {size}" for size in sizes for kind in ("plain", "hostile")]
    for number in range(rounds):
        jobs = [(case, method) for case in cases for method in methods]
        random.shuffle(jobs)
        for index, (case, method) in enumerate(jobs):
            run = partial(run_once, world, table, case, method, f"a{number}-{index}")
            table.attempt(f"{case}, {method}", run, world.clear)


def run_once(world: GuardWorld, table: Table, case: str, method: str, agent: str, attempt: int) -> None:
    run_tree(world, table, case, method, f"{agent}-{attempt}")


def run_containers(world: GuardWorld, table: Table, count: int, docker: Docker, image: str, prefix: str) -> None:
    client = docker_py.DockerClient(base_url=f"unix://{docker.path}", timeout=120)
    methods = [PRESS, BARE, "docker kill", "docker-py kill"]
    random.shuffle(methods)

    def sweep() -> None:
        with suppress(*FAULTS):
            remove(docker, list(docker.made))
        world.clear()

    for index, method in enumerate(methods):
        names = f"{prefix}-{index}"
        table.attempt(
            f"containers {count}, {method}",
            lambda n, m=method, p=names: run_boxes(world, table, count, docker, image, f"{p}-{n}", m, client),  # type: ignore[misc]
            sweep,
        )
    client.close()


def run_boxes(
    world: GuardWorld, table: Table, count: int, docker: Docker, image: str, prefix: str, method: str, client: docker_py.DockerClient
) -> None:
    tree = "sleep 600 & sleep 600 & wait"
    names = [f"{prefix}-{i}" for i in range(count)]
    tickets = {name: world.supervisor.ticket(name, "container", "contained") for name in names}
    with ThreadPoolExecutor(4) as pool:
        made = dict(zip(names, pool.map(lambda n: docker.run(image, world.instance, n, "/bin/sh", "-c", tree), names), strict=True))
    for name, (container, pid) in made.items():
        world.supervisor.confirm(name, tickets[name]["generation"], pid, ticks(pid), container)
    ids = [container for container, _ in made.values()]
    folders = [Path(f"/sys/fs/cgroup/pids/docker/{i}") for i in ids]
    until(lambda: len(listed(folders)) >= 3 * count, "the containers have grown", 120)
    command = ["docker", "-H", f"unix://{docker.path}", "kill", *ids]
    acts: dict[str, Act] = {
        PRESS: press(world),
        BARE: lambda: [Path(f"/sys/fs/cgroup/unified/docker/{i}/cgroup.kill").write_text("1") for i in ids],
        "docker kill": lambda: subprocess.run(command, check=False, capture_output=True),
        "docker-py kill": lambda: kill_by_client(client, ids),
    }
    run = measure(acts[method], lambda: listed(folders), True, listed(folders)[:6])
    run.first_sent_ms = release(world)
    table.add(f"containers {count}", method, run)
    remove(docker, ids)
    for name in names:
        world.supervisor.forget(name)


def remove(docker: Docker, ids: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: docker.ask("DELETE", f"/containers/{i}?force=1&v=1"), ids))
    docker.made = [i for i in docker.made if i not in ids]


def kill_by_client(client: docker_py.DockerClient, ids: list[str]) -> None:
    wanted = set(ids)
    for container in client.containers.list():
        if container.id in wanted:
            container.kill()


@contextmanager
def image_on(socket: Path, folder: Path) -> Iterator[tuple[Docker, str]]:
    docker, name = Docker(socket), f"watchfloor-bench-{os.getpid()}"
    docker.ask("POST", f"/images/create?fromSrc=-&repo={name}&tag=1", shell_tar(), "application/x-tar")
    try:
        yield docker, f"{name}:1"
    finally:
        docker.close()
        docker.ask("DELETE", f"/images/{name}:1?force=1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--sizes", type=lambda s: [int(n) for n in s.split(",")], default=[10, 100, 1000])
    parser.add_argument("--container-rounds", type=int, default=3)
    parser.add_argument("--containers", type=lambda s: [int(n) for n in s.split(",")], default=[20, 100])
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ended by a time-out, it still shows and sweeps
    folder = Path(tempfile.mkdtemp(prefix="wfb-", dir="/tmp"))
    engine = Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
    world = GuardWorld(folder / "state", engine_socket=engine if engine.exists() else None)
    world.state.mkdir(mode=0o711)
    table = Table()
    try:
        world.start(heartbeat_s=600.0)
        run_processes(world, table, options.sizes, options.rounds)
        if options.container_rounds and engine.exists():
            with image_on(engine, folder) as (docker, image):
                for number in range(options.container_rounds):
                    for count in options.containers:
                        run_containers(world, table, count, docker, image, f"c{number}-{count}")
        elif options.container_rounds:
            print(f"containers not measured: no engine on {engine}")
    finally:
        table.show(options.markdown)
        world.close()
        shutil.rmtree(folder)
    return int(bool(table.missing))


if __name__ == "__main__":
    sys.exit(main())
