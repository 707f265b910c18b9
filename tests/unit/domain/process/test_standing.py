"""A process that asks for stops is ahead, and never what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from console.domain.process.precedence import NICE
from console.domain.process.standing import STANDING, ahead

NICE_OF_CHILD = "import os; print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))"


def nice(thread: int = 0) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread)


def child() -> tuple[int, int]:
    nice_, policy = subprocess.run([sys.executable, "-c", NICE_OF_CHILD], capture_output=True, text=True, check=True).stdout.split()
    return int(nice_), int(policy)


def on_a_thread(work: Callable[[], object]) -> None:
    """The runner's own thread keeps its place, whatever fails."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def may_raise() -> bool:
    def try_it() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, nice() - 1)

    try:
        on_a_thread(try_it)
    except OSError:
        return False
    return True


MAY = may_raise()


def test_a_thread_that_asks_for_a_stop_is_ahead_and_what_it_starts_is_not() -> None:
    def work() -> None:
        before = nice()
        with ahead():
            assert nice() == (NICE if MAY else before)
            assert child()[0] == (0 if MAY else before)
        assert nice() == before
        assert child()[0] == before

    on_a_thread(work)


def test_every_thread_is_ahead_until_the_last_kill_is_over() -> None:
    # In a process of its own: it changes the place of all its threads.
    code = """
import os, threading
from console.domain.process.standing import Standing
first, stop = Standing(), threading.Event()
other = threading.Thread(target=stop.wait); other.start()
def seen(): return [os.getpriority(os.PRIO_PROCESS, one) for one in (0, other.native_id)]
first.stand(); print(*seen())
first.take_all(); first.take_all(); print(*seen())
first.give_all_back(); print(*seen())
joined = []
def job(): first.join(); joined.append(os.getpriority(os.PRIO_PROCESS, 0))
late = threading.Thread(target=job); late.start(); late.join(); print(*joined, *joined)
first.give_all_back(); print(*seen())
stop.set(); other.join()
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    plain = nice()
    wanted = [STANDING, NICE, NICE, NICE, STANDING] if MAY else [plain] * 5
    assert said == [f"{one} {one}" for one in wanted]


def test_a_thread_that_begins_during_a_stop_is_put_ahead_at_the_next_look() -> None:
    code = """
import os, sys, threading
from console.domain.process.standing import Standing
first, stop = Standing(), threading.Event()
before = sys.getswitchinterval()
def begin():
    one = threading.Thread(target=stop.wait); one.start(); return one
def seen(*them): print(*(os.getpriority(os.PRIO_PROCESS, one.native_id) for one in them))
first.catch_up(); first.stand()
early = begin(); seen(early); first.catch_up(); seen(early)
first.take_all(); print(sys.getswitchinterval() < before)
late = begin(); seen(late); first.catch_up(); seen(early, late)
first.give_all_back(); seen(early, late); print(sys.getswitchinterval() == before)
stop.set(); early.join(); late.join()
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    plain = nice()
    standing, ahead_, own = (STANDING, NICE, 0) if MAY else (plain, plain, plain)
    assert said == [f"{own}", f"{standing}", "True", f"{own}", f"{ahead_} {ahead_}", f"{standing} {standing}", "True"]
