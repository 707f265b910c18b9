"""The kernel tells who began another program: to this process where it can, and never in silence where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from console.sources import exec_news as module
from console.sources.exec_news import ExecNews, exec_news

FIRST = "pid:[4026531836]"
"""The PID namespace that the kernel begins with (proc_ns.h, PROC_PID_INIT_INO)."""
ASK = "from console.sources.exec_news import exec_news; print(exec_news())"


@pytest.fixture
def first_namespace() -> None:
    if os.readlink("/proc/self/ns/pid") != FIRST:  # noqa: PTH115
        pytest.skip("the kernel tells of processes to the first PID namespace alone; what is done elsewhere is tested below")


@pytest.fixture
def news(first_namespace: None) -> Iterator[ExecNews]:
    made = ExecNews()
    yield made
    made.close()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_new_program_and_an_old_process_that_becomes_another_are_told_once(news: ExecNews) -> None:
    told: list[int] = []

    def is_told(pid: int) -> bool:
        told.extend(news.began() or ())
        return pid in told

    with subprocess.Popen(["/bin/sh", "-c", "read line; exec sleep 0"], stdin=subprocess.PIPE) as shell:
        until(lambda: is_told(shell.pid))
        told.clear()
        assert not is_told(shell.pid), "said once"
        assert shell.stdin is not None
        shell.stdin.write(b"\n")
        shell.stdin.flush()
        until(lambda: is_told(shell.pid))


def test_what_only_forks_is_left_out(news: ExecNews) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert child not in (news.began() or set())


@pytest.mark.usefixtures("first_namespace")
def test_more_than_the_kernel_keeps_is_said_and_the_next_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROOM", 1)  # the kernel gives its least
    news = ExecNews()
    try:
        for _ in range(40):
            subprocess.run(["/bin/true"], check=True)
        assert news.began() is None
        with subprocess.Popen(["/bin/true"]) as one:
            pass
        assert one.pid in (news.began() or set())
    finally:
        news.close()


def test_where_the_kernel_says_nothing_there_are_no_news() -> None:
    for words in (["unshare", "--pid", "--fork"], ["unshare", "--user"]):
        asked = subprocess.run([*words, sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
        assert asked.stdout == "None\n", (words, asked.stderr)


def test_a_refusal_is_no_news_and_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_news: ExecNews) -> None:
        raise PermissionError(1, "Operation not permitted")

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    monkeypatch.setattr(ExecNews, "_begin", refuse)
    assert exec_news() is None and len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
