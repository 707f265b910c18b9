"""The first process in a container: waits at the gate for its orders, starts the agent, reaps, ends with its exit code.

Run by the image's Python as ``python3 -I -S /.watchfloor/init.py``; standard library only. The orders (argv, environment and all)
come through a pipe, so that no secret stands in the container's configuration, where ``docker inspect`` would show it.
"""

import ctypes
import json
import os
import signal
import struct
import sys
from typing import Any, NoReturn

GATE = "/.watchfloor/gate"
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
NOT_STARTED = 125

libc = ctypes.CDLL(None, use_errno=True)


def main(gate: str) -> NoReturn:
    """Blocks until the supervisor has written its orders and closed the gate; without orders nothing is started."""
    with open(gate, "rb") as file:
        text = file.read()
    try:
        orders: dict[str, Any] = json.loads(text)
    except ValueError:
        os._exit(NOT_STARTED)
    main_child = os.fork()
    if not main_child:
        become_agent(orders)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    os._exit(reap(main_child))


def become_agent(orders: dict[str, Any]) -> NoReturn:
    """The forked child: filter, folder, command. Exit 126 or 127 when that fails, as a shell does."""
    try:
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, 65536)
        os.chdir(orders["cwd"])
        install_filter(bytes.fromhex(orders["seccomp"]))
        os.execvpe(orders["argv"][0], orders["argv"], orders["env"])
    except (OSError, ValueError) as error:
        os.write(2, f"[watchfloor: cannot run {orders['argv'][0]!r}: {error}]\n".encode(errors="backslashreplace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def install_filter(program: bytes) -> None:
    """seccomp(2), filter mode, on top of the engine's own profile."""
    if not program:
        return
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(fprog), 0, 0):
        raise OSError(ctypes.get_errno(), "the system call filter was refused")


def reap(main_child: int) -> int:
    """Collects every child until the agent's first process has ended; its exit code, 128 + signal when one ended it."""
    while True:
        pid, status = os.wait()
        if pid == main_child:
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else GATE)
