"""How fast a kill of many agents is, by tree, session and host, beside a bare loop that writes ``cgroup.kill`` to as many groups.

``python -m tests.bench.kill_scope [--parts 50,100,250] [--busy 20] [--only idle|busy] [--json]``

A supervisor and a guard of their own start all agents once (each in its own cgroup, without another sandbox) and kill them in parts:
the first by tree, the second by session, the rest by host. Then the same number is started again, and a loop writes ``cgroup.kill`` to the
groups of as many agents. Both are timed from outside: from the call until the first process of the last agent is dead, by its pidfd.
``answer`` is when the caller has the receipt. ``held`` is how many descriptors supervisor and guard have more than before, less what the
living agents take, 2 s after the answer; a handle of another living program of this host, which is observed, is none.
Once with idle processors, once with ``--busy`` processes that compute without a pause.

Bounds, each within one run: last SIGKILL <= 2 x bare + 20 ms; answer <= 1.5 x last + 300 ms; held <= 3. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from console.api.ladder import ScopeBody
from console.api.messages import LaunchBody
from console.domain.kill import Receipt
from console.domain.process.standing import ahead
from tests.fakes.instance import Instance, until

Reached = Literal["tree", "session", "host"]
REACHES: tuple[Reached, ...] = ("tree", "session", "host")
SETTLE_S, LONGEST_S = 2.0, 300.0
FEW = 3
"""Descriptors that come and go while nobody is killed: a canary, a connection, a source that looks."""
SPIN = f"import time\nend = time.monotonic() + {LONGEST_S}\nwhile time.monotonic() < end:\n    sum(range(20000))\n"


@dataclass(frozen=True)
class Row:
    """One part of the fleet, killed once each way. Milliseconds from the call."""

    load: str
    reach: str
    agents: int
    bare_ms: float
    last_ms: float
    answer_ms: float
    held_guard: int
    held_supervisor: int
    verified: bool
    kills: int
    """Receipts that the one request made."""

    def misses(self) -> list[str]:
        """The bounds that this part does not keep."""
        bounds = {
            f"the last agent was reached after {self.last_ms:.0f} ms": self.last_ms <= 2 * self.bare_ms + 20,
            f"the answer came after {self.answer_ms:.0f} ms": self.answer_ms <= 1.5 * self.last_ms + 300,
            f"{self.held_guard} descriptors of the guard are held": self.held_guard <= FEW,
            f"{self.held_supervisor} descriptors of the supervisor are held": self.held_supervisor <= FEW,
            "zero is not verified": self.verified,
            f"{self.kills} kills were made of one": self.kills == 1,
        }
        return [words for words, is_kept in bounds.items() if not is_kept]


class Deaths(threading.Thread):
    """Notes when the last of some processes is dead."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(daemon=True)
        self.last: float | None = None
        self.answered = threading.Event()
        self._poll, self._left = select.poll(), set[int]()
        for pid in pids:
            fd = os.pidfd_open(pid)
            self._poll.register(fd, select.POLLIN)
            self._left.add(fd)

    def run(self) -> None:
        with ahead():  # what measures is not kept waiting by what keeps the processors busy, either way
            self._watch()
            self.answered.wait(LONGEST_S)  # as an ordinary thread again it could keep the caller beside it from Python's lock

    def _watch(self) -> None:
        until_s = time.perf_counter() + LONGEST_S
        while self._left and time.perf_counter() < until_s:
            for fd, _ in self._poll.poll(1000):
                self._poll.unregister(fd)
                self._left.discard(fd)
                os.close(fd)
        self.last = None if self._left else time.perf_counter()


def timed(pids: list[int], act: Callable[[], object]) -> tuple[float, float]:
    """(milliseconds until the last is dead, until ``act`` returned)."""
    deaths = Deaths(pids)
    deaths.start()
    with ahead():  # until the clock is read, for the same reason
        begun = time.perf_counter()
        act()
        answered = time.perf_counter()
    deaths.answered.set()
    deaths.join(LONGEST_S)
    assert deaths.last is not None, "some processes are not dead"
    return (deaths.last - begun) * 1000, (answered - begun) * 1000


class Fleet:
    """All agents of one round, and what their processes and groups are."""

    def __init__(self, it: Instance, parts: tuple[int, int, int], name: str) -> None:
        self.it, self.name, began = it, name, time.monotonic()
        root = self._start(f"{name}-t", None)
        jobs = [(f"{name}-t", root)] * (parts[0] - 1) + [(f"{name}-s", None)] * parts[1]
        jobs += [(f"{name}-h{i}", None) for i in range(parts[2])]
        with ThreadPoolExecutor(4) as pool:
            ids = [root, *pool.map(lambda job: self._start(*job), jobs)]
        self.parts: dict[Reached, list[str]] = {
            "tree": ids[: parts[0]],
            "session": ids[parts[0] : parts[0] + parts[1]],
            "host": ids[parts[0] + parts[1] :],
        }
        print(f"  {len(ids)} agents of round {name} run after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    def _start(self, session: str, parent: str | None) -> str:
        body = LaunchBody(argv=["sleep", "3000"], context_id=session, parent_id=parent, sandbox="none")
        return self.it.api.launch(body).id

    def pids(self, reach: Reached) -> list[int]:
        wanted = set(self.parts[reach])
        return [a.pid for a in self.it.api.fleet().agents if a.id in wanted and a.pid]

    def leaves(self, reach: Reached) -> list[str]:
        """By the guard's record."""
        body = json.loads((self.it.places.guard_dir / "registry.json").read_text())["body"]
        found = {entry["agent_id"]: entry["leaf"] for entry in body["agents"]}
        return [found[i] for i in self.parts[reach]]

    def bare(self, reach: Reached) -> float:
        leaves = self.leaves(reach)

        def act() -> None:
            for leaf in leaves:
                with open(f"{leaf}/cgroup.kill", "wb", buffering=0) as file:  # noqa: PTH123 - the barest way
                    file.write(b"1")

        last, _ = timed(self.pids(reach), act)
        self.gone(reach)
        return last

    def killed(self, reach: Reached) -> tuple[float, float, Receipt]:
        target = {"tree": self.parts["tree"][0], "session": f"{self.name}-s", "host": ""}[reach]
        receipts: list[Receipt] = []
        pids = self.pids(reach)
        last, answer = timed(pids, lambda: receipts.append(self.it.hasty.kill_scope(ScopeBody(reach=reach, target=target), "bench")))
        return last, answer, receipts[0]

    def gone(self, reach: Reached) -> None:
        """The supervisor and the guard know that they have ended."""
        wanted = set(self.parts[reach])
        until(lambda: not any(a.id in wanted and a.ended_at is None for a in self.it.api.fleet().agents), LONGEST_S, "they have ended")


def descriptors(pid: int, instance_id: str) -> int:
    """How many a program has open, without those that mean living processes of others: a supervisor holds each program that it observes."""
    names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - the names alone
    return len(names) - sum(_means_another(f"/proc/{pid}/fdinfo/{name}", instance_id) for name in names)


def _means_another(fdinfo: str, instance_id: str) -> bool:
    """Whether a descriptor is a pidfd (pidfd_open(2): ``Pid`` in its fdinfo, -1 once it has ended) of a process outside the instance."""
    with suppress(OSError):
        found = re.search(r"^Pid:\s*(\d+)$", Path(fdinfo).read_text(), re.MULTILINE)
        return found is not None and f"watchfloor-{instance_id}/" not in Path(f"/proc/{found[1]}/cgroup").read_text()
    return False


class Held:
    """Descriptors of the two programs: with nobody, and what each agent takes."""

    def __init__(self, it: Instance) -> None:
        assert it.process is not None
        self.pids, self.instance_id = (it.guard_pid(), it.process.pid), it.places.instance_id
        self.empty = self.now()

    def now(self) -> tuple[int, int]:
        guard, supervisor = (descriptors(pid, self.instance_id) for pid in self.pids)
        return guard, supervisor

    def full(self, agents: int) -> None:
        """Called while that many live."""
        self.each = tuple((now - empty) / agents for now, empty in zip(self.now(), self.empty, strict=True))

    def beyond(self, living: int) -> tuple[int, int]:
        """More than the living take."""
        found = zip(self.now(), self.empty, self.each, strict=True)
        guard, supervisor = (round(now - empty - each * living) for now, empty, each in found)
        return guard, supervisor


@contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes that compute; they end by themselves as well."""
    spinning = [subprocess.Popen([sys.executable, "-S", "-c", SPIN]) for _ in range(number)]
    try:
        time.sleep(1.0 if number else 0.0)
        yield
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait()


def kills_of(it: Instance) -> int:
    return sum(1 for receipt in it.api.receipts().receipts if receipt.by != "canary")


def measured(load: str, number: int, parts: tuple[int, int, int]) -> list[Row]:
    """One round with this load."""
    rows, living = [], sum(parts)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        (Path(folder) / "settings.json").write_text(json.dumps({"spawn": {"max_children": parts[0]}}))
        with Instance(Path(folder)) as it:
            time.sleep(3.0)
            held = Held(it)
            fleet, found = Fleet(it, parts, "ours"), []
            time.sleep(SETTLE_S)
            held.full(living)
            for reach in REACHES:
                before = kills_of(it)
                with busy(number):
                    last, answer, receipt = fleet.killed(reach)
                    time.sleep(SETTLE_S)
                    living -= len(fleet.parts[reach])
                    left = held.beyond(living)
                fleet.gone(reach)
                found.append((last, answer, left, receipt, kills_of(it) - before))
                print(f"  {load} {reach}: last {last:.0f} ms, answer {answer:.0f} ms, held {left}", file=sys.stderr, flush=True)
            bare_fleet = Fleet(it, parts, "bare")
            for reach, (last, answer, left, receipt, kills) in zip(REACHES, found, strict=True):
                time.sleep(SETTLE_S)
                with busy(number):
                    bare = bare_fleet.bare(reach)
                size = len(fleet.parts[reach])
                rows.append(Row(load, reach, size, bare, last, answer, *left, receipt.verified_zero, kills))
    return rows


def main() -> int:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="50,100,250")
    parser.add_argument("--busy", type=int, default=20)
    parser.add_argument("--only", choices=("idle", "busy"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    parts = tuple(int(word) for word in given.parts.split(","))
    assert len(parts) == 3
    loads = [("idle", 0), ("busy", given.busy)]
    rows = [row for name, number in loads if given.only in (None, name) for row in measured(name, number, parts)]
    if given.json:
        print(json.dumps([asdict(row) | {"misses": row.misses()} for row in rows], indent=1))
    else:
        print("load  reach    agents   bare ms   last ms  x bare  answer ms  held guard/supervisor  kills  missed")
        for r in rows:
            print(
                f"{r.load:5} {r.reach:8} {r.agents:6} {r.bare_ms:9.1f} {r.last_ms:9.1f} {r.last_ms / r.bare_ms:7.1f} {r.answer_ms:10.1f}"
                f"  {r.held_guard:10}/{r.held_supervisor:<10} {r.kills:5}  {'; '.join(r.misses()) or 'nothing'}"
            )
    with suppress(OSError):
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; compare within this run only.", file=sys.stderr)
    return 1 if any(row.misses() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
