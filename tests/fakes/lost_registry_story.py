"""A guard that comes back with a record from before an agent, where neither cgroup nor PID namespace holds that agent. Run in a world of
its own (user_world.py); what everybody then says of the agent, and of a press on everything, is told."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.domain.headline import headline_of
from console.domain.verdict import verdict
from console.egress.children import readable
from console.killswitch.client.kill import press_without_guard
from console.killswitch.store.atomic_file import seal
from console.settings.places import find_places
from tests.fakes.user_story import SLEEPERS, STATE, answer, guard, launch, supervisor, tell, until, with_words

WANDERER = r"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    os.execve(sys.executable, ["agent", "-S", "-c", "import time\ntime.sl" + "eep(600)"], {})
print("gone ahead", flush=True)
time.sleep(300)
"""
"""It leaves behind somebody with a session of its own and no word of us in its environment."""


def lost() -> dict[str, Any]:
    """The whole story."""
    serving = subprocess.Popen([sys.executable, "-m", "console.supervisor", "serve", "--state-dir", str(STATE)], stdout=subprocess.PIPE)
    assert serving.stdout is not None and serving.stdout.readline() == b"ready\n"
    places = find_places(str(STATE), create=False)
    assert places is not None
    record = places.guard_dir / "registry.json"
    before = record.read_bytes()
    with supervisor() as client:
        agent_id = launch("/usr/bin/python3", "-S", "-c", WANDERER)
        until(lambda: with_words(SLEEPERS), "it has left somebody behind")
        [sleeper] = with_words(SLEEPERS)
        keeper = next(a.pid for a in client.fleet().agents if a.id == agent_id)
        assert keeper
        os.kill(serving.pid, signal.SIGSTOP)  # the guard is dead, and its record an old one, before anybody can start another
        dead = guard()["pid"]
        descriptor = os.pidfd_open(dead)
        os.kill(dead, signal.SIGKILL)
        until(lambda: _is_over(descriptor), "the guard is dead")
        record.write_bytes(before)
        os.kill(serving.pid, signal.SIGCONT)
        until(lambda: guard().get("pid", dead) != dead, "another guard has taken over")
        _kill_but(keeper, [sleeper])

        def said() -> bool:
            agent = next(a for a in client.fleet().agents if a.id == agent_id)
            words = [n for n in client.status().notices if agent_id in n]
            return bool(words) or agent.state not in ("running", "waiting")

        until(said, "its end, or that nobody knows, is said")
        agent = next(a for a in client.fleet().agents if a.id == agent_id)
        out: dict[str, Any] = {"id": agent_id, "state": agent.state, "best_effort": agent.best_effort, "notices": client.status().notices}
        out["alive"] = with_words(SLEEPERS) == [sleeper]
        out["receipt"] = answer("panic", "--reason", "the story ends")
        out["alive_after"] = with_words(SLEEPERS) == [sleeper]
        out["state_after"] = next(a.state for a in client.fleet().agents if a.id == agent_id)
    return out


def both_dead(record_of: Callable[[bytes, bytes], bytes], *, first_too: bool = False) -> dict[str, Any]:
    """Guard and supervisor are killed, the record is replaced, and everything is killed without either.

    ``record_of``: (record from before the agents, record at the end) to the one that is put in place. ``first_too``: the first process of
    each agent is dead as well.
    """
    serving = subprocess.Popen([sys.executable, "-m", "console.supervisor", "serve", "--state-dir", str(STATE)], stdout=subprocess.PIPE)
    assert serving.stdout is not None and serving.stdout.readline() == b"ready\n"
    places = find_places(str(STATE), create=False)
    assert places is not None
    record = places.guard_dir / "registry.json"
    before = record.read_bytes()
    with supervisor():
        ids = [launch("/usr/bin/python3", "-S", "-c", WANDERER) for _ in range(3)]
        until(lambda: len(with_words(SLEEPERS)) == len(ids), "each has left something behind")
        os.kill(serving.pid, signal.SIGKILL)
        serving.wait()
    dead = guard()["pid"]
    descriptor = os.pidfd_open(dead)
    os.kill(dead, signal.SIGKILL)
    until(lambda: _is_over(descriptor), "the guard is dead")
    after = record.read_bytes()
    for agent in json.loads(after)["body"]["agents"] if first_too else []:
        _kill_but(agent["pid"], with_words(SLEEPERS))
    record.write_bytes(record_of(before, after))
    killed = press_without_guard(places.state_dir, places.run_dir, places.instance_id, "all", "the story ends", "me")
    found = verdict(killed)
    out: dict[str, Any] = {
        "ids": ids,
        "alive_after": len(with_words(SLEEPERS)),
        "headline": headline_of(killed),
        "code": int(found.exit_code),
    }
    return out | {"receipt": killed.as_json() | {"verified_zero": found.verified_zero}}


def forged(before: bytes, after: bytes) -> bytes:
    """Every agent is there, under the number of a process that has ended."""
    body = json.loads(after)["body"]
    for agent in body["agents"]:
        agent |= {"pid": 2**22 - 1, "start_ticks": 1}
    return seal(body)


def held_by_nothing(before: bytes, after: bytes) -> bytes:
    """Every agent is there under its own number, and in a PID namespace that is not its."""
    body = json.loads(after)["body"]
    for agent in body["agents"]:
        agent |= {"pid_namespace": 4_000_000_000}
    return seal(body)


STORIES: dict[str, Callable[[], dict[str, Any]]] = {
    "lost": lambda: lost(),
    "held-by-nothing-first-dead": lambda: both_dead(held_by_nothing, first_too=True),
    "older": lambda: both_dead(lambda before, after: before),
    "forged": lambda: both_dead(forged),
    "held-by-nothing": lambda: both_dead(held_by_nothing),
    "whole": lambda: both_dead(lambda before, after: after),
}


def _is_over(descriptor: int) -> bool:
    return readable(descriptor, 0)


def _kill_but(first: int, spared: list[int]) -> None:
    """Kills a process and what it started; what ends with the one before it is gone already."""
    for pid in [first, *_below(first)]:
        if pid not in spared:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _below(pid: int) -> list[int]:
    found = list[int]()
    with contextlib.suppress(OSError):  # it ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *_below(int(child))]
    return found


if __name__ == "__main__":
    tell(STORIES[sys.argv[1]]())
