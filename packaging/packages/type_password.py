"""A member at a terminal of their own: polkit's agent asks there, and the password of an administrator is typed. Prints what stood there.

``type_password.py ACCOUNT PASSWORD SCRIPT``: SCRIPT is a Python file that ACCOUNT runs while the agent waits.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import termios
import time

BOUND_S = 60.0
WORK = """mkfifo "$HOME/ready"
pkttyagent --process $$ --notify-fd 3 3>"$HOME/ready" &
cat "$HOME/ready"
rm "$HOME/ready"
exec python3 "$0" """
"""The agent answers for the process $$ alone, which the script becomes. It closes descriptor 3 once polkit knows it (pkttyagent(1))."""


def main(account: str, password: str, script: str) -> str:
    """Returns everything that the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("runuser", ["runuser", "-u", account, "--", "env", f"HOME=/home/{account}", "bash", "-c", WORK, script])
    poll = select.poll()
    poll.register(terminal, select.POLLIN)
    shown, typed, until = b"", False, time.monotonic() + BOUND_S
    ended = False
    while time.monotonic() < until and not ended:
        ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        while poll.poll(200):
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # pty(7): EIO once the other end is closed
                break
        # The agent prints the prompt, and drops what was typed until then when it turns the echo off: no person is as fast.
        if b"Password: " in shown and not typed and not termios.tcgetattr(terminal)[3] & termios.ECHO:
            typed = True
            os.write(terminal, password.encode() + b"\n")
    os.close(terminal)  # what is left of the session gets SIGHUP
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return shown.decode(errors="replace")


if __name__ == "__main__":
    sys.stdout.write(main(*sys.argv[1:4]))
