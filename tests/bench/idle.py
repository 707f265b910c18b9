"""What a supervisor and its guard take with no agents beside many processes that are none of theirs, and how soon programs are seen.

    .venv/bin/python -m tests.bench.idle [--beside 400 2000 5000] [--seconds 60] [--settle 30]

Each number of processes gets a supervisor of its own. While it is there, four things are looked at: a program that starts, an old process
that becomes one (same pid, same start time), and a pid that another program and then another process gets, which needs root.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from console.sources.processes import ProcessTable
from tests.fakes.instance import Instance

SEEN_S = 2.0
GUARD_PERCENT = 0.1
AT_MOST = ((400, 1.0), (5000, 2.0))
"""Percent of one core that a supervisor may take, up to that many processes."""
SLEEP = shutil.which("sleep") or "/bin/sleep"
BECOMES = 'read line; exec "$0" 600'
WITH_PID = """
import ctypes, os, struct, sys
libc, pid = ctypes.CDLL(None, use_errno=True), ctypes.c_int(int(sys.argv[1]))
given = struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1, 0)  # clone_args of clone3(2): SIGCHLD and set_tid
made = libc.syscall(435, given, len(given))
if made == 0:
    os.execv(sys.argv[2], sys.argv[2:])
print(made, os.strerror(ctypes.get_errno()), flush=True)
if made > 0:
    os.waitpid(made, 0)
"""
"""A child with the pid that is asked for."""


def processor_s(pid: int) -> float:
    """Time on a processor until now, its own and that of children it has waited for (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(fields[n]) for n in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")


def seen_after(it: Instance, is_so: Callable[[dict[str, int | None]], bool]) -> float:
    """Seconds until the live rows, as pid by id, are so."""
    begun = time.monotonic()
    while time.monotonic() - begun < 60:
        if is_so({a.id: a.pid for a in it.api.fleet().agents if a.ended_at is None}):
            break
        time.sleep(0.05)
    return time.monotonic() - begun


@contextmanager
def running(*argv: str, cwd: Path, pipe: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Ended and waited for at the end."""
    process = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.PIPE if pipe else subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


@contextmanager
def reusing(pid: int, program: str, cwd: Path) -> Iterator[None]:
    """Another process that has this pid, free by now."""
    with subprocess.Popen([sys.executable, "-c", WITH_PID, str(pid), program, "600"], cwd=cwd, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        said = maker.stdout.readline()
        if not said.startswith(f"{pid} "):
            raise OSError(f"no process gets the pid {pid}: {said}")
        try:
            yield
        finally:
            os.kill(pid, 9)


def looked(it: Instance, program: Path, home: Path, old: subprocess.Popen[bytes]) -> None:
    """Prints how soon each is seen."""
    table = ProcessTable()
    with running(str(program), "600", cwd=home) as new:
        say("a program that starts", seen_after(it, lambda rows: new.pid in rows.values()))
        first = {a.id for a in it.api.fleet().agents}
        pid = new.pid
    with reusing(pid, SLEEP, home):
        say("its pid is another program's", seen_after(it, lambda rows: pid not in rows.values()))
    with reusing(pid, str(program), home):
        say("its pid is another process's", seen_after(it, lambda rows: pid in {p for i, p in rows.items() if i not in first}))
        taken = [a.id for a in it.api.fleet().agents if a.id in first and a.pid == pid and a.ended_at is None]
        print("    the old row " + (f"TAKEN FOR IT: {taken}" if taken else "has ended, and stays apart"))
    before = table.start_ticks(old.pid)
    assert old.stdin is not None
    old.stdin.write(b"\n")
    old.stdin.flush()
    say("an old process that becomes one", seen_after(it, lambda rows: old.pid in rows.values()))
    assert table.start_ticks(old.pid) == before


def say(what: str, took: float) -> None:
    print(f"    {what:32} {took:5.2f} s  {'' if took <= SEEN_S else f'MORE THAN {SEEN_S:g} s'}", flush=True)


def beside(count: int, seconds: float, settle: float) -> None:
    """One supervisor beside ``count`` processes."""
    with ExitStack() as stack:
        folder, home = (Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"wf-idle-{name}-"))) for name in "sh")
        program = home / "goose"
        shutil.copy(SLEEP, program)
        for _ in range(count):
            stack.enter_context(running(SLEEP, "36000", cwd=home))
        old = stack.enter_context(running("/bin/sh", "-c", BECOMES, str(program), cwd=home, pipe=True))
        folder.chmod(0o711)
        it = stack.enter_context(Instance(folder, "--discover-root", str(home)))
        assert it.process is not None
        time.sleep(settle)
        watched = {"supervisor": it.process.pid, "guard": it.living_guard()}
        then, begun = {name: processor_s(pid) for name, pid in watched.items()}, time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - begun
        shares = {name: 100 * (processor_s(pid) - then[name]) / passed for name, pid in watched.items()}
        most = {"supervisor": next((percent for limit, percent in AT_MOST if count <= limit), AT_MOST[-1][1]), "guard": GUARD_PERCENT}
        print(f"beside {count} processes of ours, {len(list(ProcessTable().pids()))} in all:")
        for name, share in shares.items():
            print(f"    {name:32} {share:5.2f} % of a core, at most {most[name]:g} %", flush=True)
        looked(it, program, home, old)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=int, nargs="+", default=[400, 2000, 5000])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--settle", type=float, default=30.0)
    given = parser.parse_args()
    for count in given.beside:
        beside(count, given.seconds, given.settle)


if __name__ == "__main__":
    main()
