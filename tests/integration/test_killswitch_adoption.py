"""Adoption on the real kernel: a tree that others started is moved whole, held, frozen and killed with proof; what must not be, is not."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import Conflict, Denied, Killed, Unreachable
from console.domain.headline import headline_of
from console.domain.kill import Outcome
from console.domain.verdict import verdict
from console.killswitch.client import start as spawn
from console.killswitch.kernel import processes
from console.killswitch.kernel.descendants import Closure, strike
from console.killswitch.kernel.processes import Handle
from tests.fakes.guard_world import GuardWorld, decoys, ticks, until

UID = 61_234
"""An account that nothing else runs under here: its processes cannot leave a leaf of root's."""
AS_UID = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups")
GROWING = """
import os, time
for kind in range(6):
    if os.fork() == 0:
        if kind % 2: os.setsid()
        while True:
            if kind < 3 and os.fork() == 0:
                time.sleep(0.05); os._exit(0)
            time.sleep(0.01)
            try: os.waitpid(-1, os.WNOHANG)
            except ChildProcessError: pass
print("grown", flush=True)
while True: time.sleep(1)
"""
"""Six children, three of them in sessions of their own, three of which fork all the time (at most five at once)."""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(tmp_path_factory.mktemp("w"))) as made:
        yield made.start()


@pytest.fixture
def world(lasting: GuardWorld) -> Iterator[GuardWorld]:
    yield lasting
    lasting.clear()


@pytest.fixture
def own(state_dir: Path) -> Iterator[GuardWorld]:
    """One whose guard may end."""
    with contextlib.closing(GuardWorld(state_dir)) as made:
        yield made.start()


@pytest.fixture
def seen() -> Iterator[Any]:
    """Starts a process as anybody might; whatever is left of it is ended with all below it."""
    made: list[tuple[subprocess.Popen[bytes], Closure, Handle]] = []

    def start(*argv: str, uid: bool = True, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*(AS_UID if uid else ()), *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=cwd)
        handle = Handle(process.pid, ticks(process.pid))
        made.append((process, Closure(handle), handle))
        until(lambda: not (processes.command_line(process.pid) or "setpriv").startswith("setpriv"), "it runs its own program")
        return process

    yield start
    for process, closure, handle in made:
        closure.look()
        until(lambda c=closure: not strike([c])[0] or not c.look(), "nothing is left of it")  # type: ignore[misc]
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        handle.close()


def candidate(world: GuardWorld, pid: int) -> dict[str, Any]:
    return world.supervisor.call("adoptable", pid=pid, start_ticks=ticks(pid), spare=[os.getpid()], around="o-1")


def adopt(world: GuardWorld, pid: int, agent: str = "o-1", /, **changed: Any) -> dict[str, Any]:
    shown = candidate(world, pid)
    asked = {"pid": pid, "start_ticks": shown["start_ticks"], "exe": shown["exe"], "uid": shown["uid"]} | changed
    return world.supervisor.call("adopt", agent_id=agent, spare=[os.getpid()], by="test", **asked)


def place(pid: int) -> str:
    return processes.cgroup_line(pid) or ""


def test_a_tree_that_forks_is_moved_whole_and_its_kill_is_proven(world: GuardWorld, seen: Any) -> None:
    tree = seen(sys.executable, "-S", "-c", GROWING)
    assert tree.stdout.readline() == b"grown\n"
    shown = candidate(world, tree.pid)
    assert (
        shown["why_not"] == "" and shown["uid"] == UID and shown["exe"] == os.path.realpath(sys.executable) and shown["descendants_n"] >= 6
    )
    done = adopt(world, tree.pid)
    assert (done["whole"], done["left"], done["best_effort"], done["frozen"]) == (True, {}, "", "") and done["moved"] >= 7
    handle = Handle(tree.pid, ticks(tree.pid))
    places = {place(pid) for pid, _ in Closure(handle).look()} - {""}  # one that ended since has none
    assert len(places) == 1 and f"watchfloor-{world.instance}/agents/o-1-" in places.pop()
    handle.close()
    with decoys():
        receipt = world.pressed(["o-1"])
    [target] = receipt.targets
    assert receipt.verified_zero and (target.outcome, target.control_level) == (Outcome.PROVEN_ZERO, "adopted")
    assert tree.wait(60) == -9


def test_it_is_frozen_with_proof_and_thawed_and_a_new_guard_still_holds_it(own: GuardWorld, seen: Any) -> None:
    world, one = own, seen("sleep", "600")
    adopt(world, one.pid)
    world.kill_guard()
    world.start()
    world.operator.freeze(["o-1"])
    until(lambda: world.operator.call("freezing", scope="all")["n"] == 0, "it is seen frozen")
    assert world.operator.status()["frozen"] == {"o-1": ["operator"]}
    world.operator.thaw(["o-1"])
    assert world.pressed().verified_zero and one.wait(60) == -9


def test_what_changed_since_it_was_shown_is_a_conflict_and_stays_where_it_was(world: GuardWorld, seen: Any) -> None:
    one = seen("sleep", "600")
    for changed in ({"start_ticks": ticks(one.pid) - 1}, {"exe": "/usr/bin/other"}, {"uid": UID + 1}, {"pid": one.pid + 100_000}):
        with pytest.raises(Conflict):
            adopt(world, one.pid, **changed)
    assert "watchfloor" not in place(one.pid) and world.operator.status()["agents"] == 0 and processes.state(one.pid) == "S"


def test_whoever_must_not_be_adopted_is_not_and_it_is_said_why(world: GuardWorld, seen: Any) -> None:
    ours = world.agent("ours", env={**os.environ})
    guard, child = world.pid, seen("sleep", "600")
    for pid, word in (
        (1, "process 1"),
        (os.getpid(), "the caller"),
        (os.getppid(), "ancestor"),
        (guard, "guard"),
        (ours.pid, "held already"),
    ):
        assert word in candidate(world, pid)["why_not"]
        with pytest.raises((Denied, Conflict)):
            adopt(world, pid)
    below = world.spawn_in({"leaf": str(Path("/sys/fs/cgroup/unified") / place(ours.pid).lstrip("/")), "limit_leaves": []}, "sleep", "600")
    assert "already" in candidate(world, below.pid)["why_not"]
    marked = subprocess.Popen(["sleep", "600"], env={**os.environ, "WATCHFLOOR_INSTANCE": "0badcafe"})
    until(lambda: processes.instance_mark(marked.pid), "it has its own environment")
    assert "0badcafe" in candidate(world, marked.pid)["why_not"]
    marked.kill()
    marked.wait()
    assert candidate(world, child.pid)["why_not"] == "" and world.operator.status()["agents"] == 1


def test_a_process_of_roots_is_adopted_and_never_called_proven(world: GuardWorld, seen: Any) -> None:
    one = seen("sleep", "600", uid=False)
    assert "may move itself out" in adopt(world, one.pid)["best_effort"]
    receipt = world.pressed(["o-1"])
    assert [t.outcome for t in receipt.targets] == [Outcome.BEST_EFFORT] and one.wait(60) == -9


def test_a_console_below_it_stays_outside_and_the_rest_is_best_effort(world: GuardWorld, seen: Any) -> None:
    """Nobody's panic button dies with an agent it was started from; what stays outside is no proof."""
    code = (
        "import os, socket, sys, time\nif os.fork():\n  while True: time.sleep(1)\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(os.getpid(), flush=True); time.sleep(600)"
    )
    tree = seen(sys.executable, "-S", "-c", code, str(world.run / "guard.sock"), uid=False)
    console = int(tree.stdout.readline())
    done = adopt(world, tree.pid)
    assert list(done["left"]) == [str(console)] and "could not be moved" in done["best_effort"]
    assert "watchfloor" not in place(console) and "watchfloor" in place(tree.pid)
    assert "line to the guard" in candidate(world, console)["why_not"]


def test_orphans_that_may_be_its_are_shown_and_come_along_when_they_are_named(world: GuardWorld, seen: Any) -> None:
    code = (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
        "  os.setsid(); print(os.getpid(), flush=True); time.sleep(600)\n  os._exit(0)\nos.wait()\nwhile True: time.sleep(1)"
    )
    tree = seen(sys.executable, "-S", "-c", code)
    orphan = int(tree.stdout.readline())
    try:
        until(lambda: [orphan, ticks(orphan)] in candidate(world, tree.pid)["orphans"], "the orphan is shown")
        assert "orphans" in adopt(world, tree.pid, also=[])["best_effort"]
        receipt = world.pressed(["o-1"])
        assert receipt.targets[0].outcome is Outcome.BEST_EFFORT and not receipt.verified_zero
        assert processes.is_alive(orphan), "it was named to nobody"
        assert [(s.pid, s.agent_id, s.by, s.preselected) for s in receipt.suspects if s.pid == orphan] == [
            (orphan, "o-1", "account", False)
        ]
        assert verdict(receipt).exit_code == 8 and "outside may be an agent's work" in headline_of(receipt)
        other = seen("sleep", "600")
        done = adopt(world, other.pid, "o-2", also=[orphan, ticks(orphan)])
        assert done["moved"] == 2 and done["best_effort"] == "" and "/o-2-" in place(orphan)
        assert world.pressed(["o-2"]).verified_zero and not processes.is_alive(orphan)
    finally:
        with contextlib.suppress(OSError):
            handle = Handle(orphan, ticks(orphan)) if processes.is_alive(orphan) else None
            if handle is not None:
                handle.send(9)
                handle.close()


def test_nothing_is_adopted_while_killed(world: GuardWorld, seen: Any) -> None:
    one = seen("sleep", "600")
    world.pressed()
    with pytest.raises(Killed):
        adopt(world, one.pid)
    assert one.poll() is None and "watchfloor" not in place(one.pid)


@pytest.mark.parametrize("at", ["adoption.registered", "adoption.moving"])
def test_a_guard_that_ends_in_the_middle_is_followed_by_one_that_finishes(
    own: GuardWorld, seen: Any, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    world, point = own, own.state / "point"
    tree = seen(sys.executable, "-S", "-c", GROWING)
    assert tree.stdout.readline() == b"grown\n"
    monkeypatch.setattr(spawn, "_ENVIRONMENT", (*spawn._ENVIRONMENT, "FAILPOINT"))
    monkeypatch.setenv("FAILPOINT", f"@{point}")
    world.kill_guard()
    world.start()
    point.write_text(f"{at}:kill")
    with pytest.raises(Unreachable):  # it dies in this call
        adopt(world, tree.pid)
    until(lambda: not processes.is_alive(world.pid), "the guard ended")
    point.write_text("")
    world.start()
    until(lambda: f"watchfloor-{world.instance}/agents/o-1-" in place(tree.pid), "the next guard moved it")
    until(lambda: not world.operator.status()["frozen"], "and let it go on")
    assert "ended while it was being adopted" in world.supervisor.call("procs", agent_id="o-1")["best_effort"]
    assert [t.outcome for t in world.pressed().targets] == [Outcome.BEST_EFFORT] and tree.wait(60) == -9


def test_a_press_in_the_middle_calls_nobody_dead_who_was_not_moved_yet(own: GuardWorld, seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leaf is empty and its first process is dead: what descends from it lives on outside, until the move brings it in."""
    world, point = own, own.state / "point"
    tree = seen(sys.executable, "-S", "-c", GROWING)
    assert tree.stdout.readline() == b"grown\n"
    monkeypatch.setattr(spawn, "_ENVIRONMENT", (*spawn._ENVIRONMENT, "FAILPOINT"))
    monkeypatch.setenv("FAILPOINT", f"@{point}")
    world.kill_guard()
    world.start_impatient()
    point.write_text("adoption.moving:hang")
    shown = candidate(world, tree.pid)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(adopt, world, tree.pid)
        until(Path(f"{point}.hit").exists, "it is being moved")
        kill_id = world.operator.press(["o-1"], "now", "test", timeout_s=90)
        until(lambda: world.operator.progress(kill_id)["done"], "the kill gave up")
        told = world.operator.receipt_text(kill_id)
        point.write_text("")
        asked.result(90)
    assert '"verified_zero": false' in told and "still being moved" in told and tree.wait(60) == -9
    until(
        lambda: '"verified_zero": true' in world.operator.receipt_text(kill_id), "it is proven once it was moved, and the receipt amended"
    )
    assert not any(processes.is_alive(pid) for pid, _ in shown["descendants"])
