"""Stops, caps and ratchets against launches that are under way, and against restarts at the worst moment."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Conflict, ConsoleError
from console.killswitch.client.guard_client import GuardClient
from tests.fakes.instance import Instance, processes_with, until

SPAWNER = (
    "import threading\n"
    "def go():\n"
    "  try: agent.spawn(['sh', '-c', 'sleep 300; : MARK'])\n"
    "  except client.Refused: pass\n"
    "for _ in range(6): threading.Thread(target=go).start(); time.sleep(0.05)\n"
    "time.sleep(300) # MARK"
)


@pytest.fixture
def it(state_dir: Path) -> Iterator[Instance]:
    with Instance(state_dir) as instance:
        yield instance


def mark() -> str:
    return "m" + os.urandom(6).hex()


def test_a_kill_of_a_tree_in_the_middle_of_its_spawns_leaves_nobody(it: Instance) -> None:
    for round_ in range(4):
        word = mark()
        parent = it.python(SPAWNER.replace("MARK", word))
        threading.Event().wait(0.08 * round_)
        receipt = it.api.kill(parent, tree=True)
        assert receipt.verified_zero
        until(lambda: not [a for a in it.api.fleet().agents if a.state in ("starting", "running", "alive_after_kill")])
        assert processes_with(word) == []


def is_frozen(pid: int) -> bool:
    """By the kernel's word on its cgroup; one that has ended runs as little."""
    try:
        [place] = [line.removeprefix("0::") for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::")]
        return "frozen 1" in Path(f"/sys/fs/cgroup/unified{place}/cgroup.events").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return not Path(f"/proc/{pid}").exists()


def test_a_freeze_of_a_tree_in_the_middle_of_its_spawns_leaves_nobody_running(it: Instance) -> None:
    word = mark()
    parent = it.python(SPAWNER.replace("MARK", word))
    threading.Event().wait(0.12)
    it.api.freeze(parent, tree=True)
    other = it.launch("sleep", "300")  # behind every spawn that was under way: whoever is to come has come

    def are_held() -> bool:
        family = [a for a in it.api.fleet().agents if parent in (a.id, a.parent_id)]
        states = {a.state for a in family if a.ended_at is None}  # a launch that was under way may have failed
        return states <= {"frozen"} and all(map(is_frozen, processes_with(word)))

    until(are_held, words="all of the family is frozen, and the kernel says so of each")
    assert processes_with(word) and it.agent(parent).state == "frozen" and it.agent(other).state == "running"


def test_a_cap_that_is_hit_while_an_agent_starts_still_ends_it(it: Instance) -> None:
    word = mark()

    def launch() -> None:
        try:
            it.launch("sh", "-c", f"sleep 300; : {word}", limits={"wall": 0.05})
        except ConsoleError:
            pass

    threads = [threading.Thread(target=launch) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: (states := {a.state for a in it.api.fleet().agents}) and states <= {"halted", "failed"}, words="every one is halted")
    until(lambda: not processes_with(word), words="nobody of them is there any more")


def test_a_session_stays_restricted_over_a_restart_even_if_its_agents_ended_and_its_ledger_is_lost(it: Instance) -> None:
    it.api.kill(it.launch("sleep", "300", context_id="vault", sensitivity="SECRET"))
    it.stop(signal.SIGKILL)
    it.start()
    again = it.agent(it.launch("sleep", "300", context_id="vault"))
    assert (again.sensitivity, again.network_mode) == ("SECRET", "NONE")
    it.api.kill(again.id)
    it.stop()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (it.state_dir / name).unlink(missing_ok=True)
    it.start()
    third = it.agent(it.launch("sleep", "300", context_id="vault"))
    assert (third.sensitivity, third.network_mode) == ("SECRET", "NONE")


def test_an_agent_cannot_work_in_another_agents_session(it: Instance) -> None:
    it.launch("sleep", "300", context_id="payroll")
    lunch = it.python(
        "try: agent.spawn(['true'], context_id='payroll'); print('ENTERED', flush=True)\n"
        "except client.Refused as e: print('refused', e.status, flush=True)"
    )
    assert "refused 403" in it.says(lunch, "\n")


def test_a_rearm_never_releases_a_kill_that_nobody_looked_at(it: Instance) -> None:
    first = it.api.activate("the first")
    client = GuardClient(it.places.guard_sock, timeout_s=60)
    second = client.press("all", "the second", "test", timeout_s=90)
    until(lambda: client.progress(second)["done"])
    with pytest.raises(Conflict):
        it.api.rearm("released the first", kill_id=first.kill_id)
    assert client.status()["latched"]
    client.close()
    until(lambda: (r := next((r for r in it.api.receipts().receipts if r.kill_id == second), None)) and r.complete)
    it.api.rearm("looked at the second", kill_id=second)


def test_a_damaged_latch_reads_as_killed_and_the_console_says_so(it: Instance) -> None:
    pid = it.living_guard()  # our own guard, named by its own answer
    os.kill(pid, signal.SIGSTOP)
    (it.places.guard_dir / "latch.json").write_text("{")
    os.kill(pid, signal.SIGKILL)
    until(lambda: it.api.fleet().killed, words="it reads as killed")
    until(lambda: it.guard_pid())
    it.api.rearm("the latch file was damaged")
    it.state_becomes(it.launch("sleep", "300"), "running")
