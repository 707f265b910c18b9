"""One order is one kill with one receipt: said twice, in many lines, to a guard that is busy or stopped, and across a guard's death."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import NotFound, TimedOut
from console.domain.guard import LINE_LIMIT, encode
from console.domain.headline import headline_of
from console.domain.kill import Outcome, Target
from console.killswitch.client.guard_client import GuardClient, order_lines
from console.killswitch.client.kill import place_order, press_and_wait
from console.killswitch.kill.receipt import new_kill_id, read_receipt
from console.killswitch.store.journal import read_journal
from tests.fakes.guard_world import NOBODY, WAIT_S, GuardWorld, end, until


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    made = GuardWorld(state_dir)
    try:
        yield made.start()
    finally:
        made.close()


def presses(world: GuardWorld) -> Counter[str]:
    """How often each kill was begun, by the journal."""
    return Counter(line["kill_id"] for line in read_journal(world.state / "guard" / "journal.jsonl") if line["kind"] == "press")


def receipts(world: GuardWorld) -> list[str]:
    return sorted(path.stem for path in (world.state / "guard" / "receipts").glob("*.json"))


def test_an_order_that_is_said_twice_is_one_kill(world: GuardWorld) -> None:
    agent, kill_id = world.agent("one", env=NOBODY), new_kill_id()
    for _ in range(3):
        assert world.operator.press(["one"], "said again", "tester", timeout_s=WAIT_S, kill_id=kill_id) == kill_id
    assert agent.wait(60) == -signal.SIGKILL
    assert world.receipt(kill_id)["verified_zero"]
    until(lambda: presses(world) == {kill_id: 1}, "it was begun once")
    assert receipts(world) == [kill_id]


def test_an_order_of_hundreds_begins_with_its_last_line(world: GuardWorld) -> None:
    agents = {f"agent-with-a-long-name-{n:03d}": world.agent(f"agent-with-a-long-name-{n:03d}", env=NOBODY) for n in range(6)}
    scope, kill_id = [*list(agents)[:3], *(f"nobody-of-this-name-{n:04d}" for n in range(600)), *list(agents)[3:]], new_kill_id()
    lines = order_lines({"op": "press", "reason": "r" * 400, "by": "t", "order": "", "kill_id": kill_id}, scope)
    assert len(lines) > 3 and all(len(line) <= LINE_LIMIT for line in lines)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as half:
        half.settimeout(WAIT_S)
        half.connect(str(world.run / "guard.sock"))
        half.sendall(b"".join(lines[:-1]))
        heard = b""
        while heard.count(b"\n") < len(lines) - 1:
            heard += half.recv(LINE_LIMIT)
    with pytest.raises(NotFound):
        world.operator.progress(kill_id)
    assert all(agent.poll() is None for agent in agents.values()), "nothing begins before the last line"
    assert world.operator.press(scope, "r" * 400, "t", timeout_s=WAIT_S, kill_id=kill_id) == kill_id
    assert [agent.wait(60) for agent in agents.values()] == [-signal.SIGKILL] * 6
    assert len(world.receipt(kill_id)["targets"]) == 606 and receipts(world) == [kill_id]


def test_an_order_of_more_lines_than_are_taken_is_refused_in_words(world: GuardWorld) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(WAIT_S)
        sock.connect(str(world.run / "guard.sock"))
        answers, line = b"", encode({"op": "press", "kill_id": new_kill_id(), "scope": ["x"], "more": True})
        for _ in range(65):
            sock.sendall(line)
            answers += sock.recv(LINE_LIMIT)
    assert json.loads(answers.splitlines()[-1])["kind"] == "UsageProblem"


def keep_busy(world: GuardWorld, seconds: float) -> None:
    """The guard neither reads nor answers for so long; then it goes on where it was."""
    end(world.pid, signal.SIGSTOP)
    threading.Timer(seconds, end, (world.pid, signal.SIGCONT)).start()


def test_a_guard_that_comes_to_an_order_late_leaves_it_to_the_one_who_gave_up_on_it(world: GuardWorld) -> None:
    agents = [world.agent(f"a{n}", env=NOBODY) for n in range(5)]
    keep_busy(world, 4.0)
    receipt = press_and_wait(world.state, world.run, world.instance, [f"a{n}" for n in range(5)], "busy", "tester", timeout_s=WAIT_S)
    assert receipt.verified_zero and receipt.complete and [a.wait(60) for a in agents] == [-signal.SIGKILL] * 5, headline_of(receipt)
    until(lambda: world.operator.status()["agents"] == 5, "the guard goes on")
    until(lambda: not world.operator.status()["kill"] or world.operator.status()["kill"]["done"], "and is not killing")
    assert presses(world) == {receipt.kill_id: 1} and receipts(world) == [receipt.kill_id]
    with pytest.raises(NotFound):
        world.operator.progress(receipt.kill_id)
    kept = read_receipt(world.state / "guard", receipt.kill_id)
    assert kept is not None and kept.verified_zero and {t.agent_id for t in kept.targets} == {f"a{n}" for n in range(5)}


BUSY_LOOP = """import sys, time
from console.killswitch.guard import operations
look = operations.Desk._status
def slow(self):
    end = time.monotonic() + 1.0   # computes: its process is not one that stands still
    while time.monotonic() < end:
        pass
    return look(self)
operations.Desk._status = slow
from console.killswitch.__main__ import main
sys.exit(main())"""


def test_a_guard_that_computes_for_a_second_is_waited_for_and_nothing_is_done_beside_it(world: GuardWorld) -> None:
    """Its loop answers a status for more than a second when the order comes."""
    world.kill_guard()
    world.start_by(BUSY_LOOP)
    agent = world.agent("one", env=NOBODY)
    other = GuardClient(world.run / "guard.sock", WAIT_S)
    asker = threading.Thread(target=other.status)
    asker.start()
    time.sleep(0.1)
    done = place_order(world.state, world.run, world.instance, ["one"], "busy", "tester")
    assert isinstance(done, str), "the guard has it"
    assert agent.wait(60) == -signal.SIGKILL and world.receipt(done)["verified_zero"]
    asker.join()
    other.close()
    assert presses(world) == {done: 1} and receipts(world) == [done]


def test_a_guard_that_dies_in_the_middle_is_followed_by_one_that_finishes_the_same_order(world: GuardWorld) -> None:
    agents, kill_id = [world.agent(f"a{n}", env=NOBODY) for n in range(3)], new_kill_id()
    scope = [f"a{n}" for n in range(3)]
    world.operator.press(scope, "the reason", "tester", "", WAIT_S, kill_id)
    until(lambda: read_receipt(world.state / "guard", kill_id) or not is_marked(world.state, kill_id), "it is on disk")
    world.kill_guard()
    assert [a.wait(60) for a in agents] == [-signal.SIGKILL] * 3
    world.start()
    assert world.operator.press(scope, "the reason", "tester", "", WAIT_S, kill_id) == kill_id, "said again to the next guard"
    until(lambda: (r := read_receipt(world.state / "guard", kill_id)) is not None and r.complete, "its receipt is complete")
    kept = read_receipt(world.state / "guard", kill_id)
    assert kept is not None and kept.verified_zero and kept.reason == "the reason" and receipts(world) == [kill_id]


def is_marked(state: Path, kill_id: str) -> bool:
    entries = json.loads((state / "guard" / "registry.json").read_text())["body"]["agents"]
    return any(entry["killed"] == kill_id for entry in entries)


def test_a_full_backlog_is_a_busy_guard_and_no_dead_one(tmp_path: Path) -> None:
    """It accepts nothing for as long as the order may wait."""
    path = tmp_path / "guard.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as full:
        full.bind(str(path))
        full.listen(0)
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        waiting.connect(str(path))
        with waiting, pytest.raises(TimedOut, match="busy"):
            GuardClient(path).press("all", "x", "t", timeout_s=0.5)


FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def frozen_group(world: GuardWorld) -> Iterator[Path]:
    """A group of the freezer of cgroup v1."""
    if os.geteuid() != 0 or not FREEZER.is_dir():
        pytest.skip("no freezer of cgroup v1 can be written here")
    group = FREEZER / f"watchfloor-{world.instance}"
    group.mkdir()
    yield group
    (group / "freezer.state").write_text("THAWED")


def freeze(group: Path, *pids: int) -> None:
    for pid in pids:
        (group / "cgroup.procs").write_text(str(pid))
    (group / "freezer.state").write_text("FROZEN")
    until(lambda: (group / "freezer.state").read_text().strip() == "FROZEN", "it is frozen")


def killed_cold(world: GuardWorld, agent: subprocess.Popen[bytes]) -> tuple[Target, str]:
    """(the target once it is proven, the receipt in words). Its proof may be an amendment, on a machine that stood still for 5 s; and the
    second look is at every process of the machine, those of other tests as well: only what it says of this target counts here."""
    first = world.pressed(["cold"])
    words = f"{headline_of(first)} {first}"
    until(lambda: agent.poll() is not None, f"it ends; the receipt was {words}", 60)
    assert agent.returncode == -signal.SIGKILL, words

    def target() -> Target:
        last = read_receipt(world.state / "guard", first.kill_id)
        assert last is not None, words
        return last.targets[0]

    until(lambda: target().outcome is Outcome.PROVEN_ZERO, f"it is proven dead; the receipt was {words}")
    return target(), words


def test_a_group_that_a_v1_freezer_holds_is_thawed_to_die(world: GuardWorld, frozen_group: Path) -> None:
    agent = world.agent("cold", env=NOBODY)
    freeze(frozen_group, agent.pid)
    target, words = killed_cold(world, agent)
    assert target.evidence["writes"].get("freezer of cgroup v1") == "thawed 1 process", words
    assert (frozen_group / "freezer.state").read_text().strip() == "THAWED", words


def test_what_is_frozen_beside_a_target_stays_frozen(world: GuardWorld, frozen_group: Path) -> None:
    agent, other = world.agent("cold", env=NOBODY), world.popen("/bin/sleep", "600")
    freeze(frozen_group, agent.pid, other.pid)
    _, words = killed_cold(world, agent)
    assert (frozen_group / "freezer.state").read_text().strip() == "FROZEN", f"the other one is nobody's target: {words}"
    assert [int(pid) for pid in (frozen_group / "cgroup.procs").read_text().split()] == [other.pid], words
    (frozen_group / "freezer.state").write_text("THAWED")
