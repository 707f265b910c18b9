"""A key that fell into the making of a class ends the program with the exit code that it chose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import console

ROOT = Path(console.__file__).resolve().parent.parent
INTERRUPTED_IN_EXEC = """
import signal
from console.domain.process.ending import leave
try:
    exec("signal.raise_signal(signal.SIGINT)")
except KeyboardInterrupt:
    print("interrupted")
    leave({})
"""


def ends_with(code: int) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IN_EXEC.format(code)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout


def test_after_ctrl_c_the_exit_code_is_the_one_that_was_chosen() -> None:
    assert ends_with(130) == (130, "interrupted\n")


def test_every_other_exit_code_ends_in_order() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import atexit; from console.domain.process.ending import leave; atexit.register(print, 'bye'); leave(3)"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "bye\n")


IN_A_CALLBACK = """
import signal, sys, time, weakref
from console.domain.process.ending import hear_again
sys.unraisablehook = hear_again
class Thing: pass
thing = Thing()
kept = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
try:
    del thing
    time.sleep(30)
except KeyboardInterrupt:
    print("heard")
"""


def test_a_key_that_falls_into_a_callback_is_heard_all_the_same_and_shows_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_CALLBACK], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "heard\n", "")
