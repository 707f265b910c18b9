"""The first process in a container: has itself looked at, waits at the gate for its orders, starts the agent, ends with its exit code.

Run by the image's Python as ``python3 -I -S /.watchfloor/init.py``; standard library only. The orders (argv, environment and all)
come through a socket, so that no secret stands in the container's configuration, where ``docker inspect`` would show it. A socket
and not a named pipe, because gVisor opens no named pipe of the host's.
"""

import contextlib
import ctypes
import json
import os
import runpy
import signal
import socket
import struct
import sys
import threading
from typing import Any, NoReturn

FOLDER = "/.watchfloor"
PORT = 3128
# A thread for each direction: without a bound a loop of connects would use up the sandbox's processes.
CONNECTIONS_MAX = 64
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
NOT_STARTED = 125

libc = ctypes.CDLL(None, use_errno=True)


def main(folder: str) -> NoReturn:
    """Blocks until the supervisor has judged what is seen from in here and sent its orders; without orders nothing is started."""
    with open(f"{folder}/filter", "rb") as file:
        install_filter(file.read())
    orders = fetch_orders(folder)
    # Before the agent is forked: one that runs first could bind the port and play the proxy to its own children.
    portal = open_portal() if orders.get("portal") else None
    main_child = os.fork()
    if not main_child:
        become_agent(orders)
    if portal is not None and not os.fork():
        forward(portal, f"{folder}/portal.sock")
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    if portal is not None:
        portal.close()
    os._exit(reap(main_child))


def fetch_orders(folder: str) -> dict[str, Any]:
    """What the supervisor sends once it took what it was told; ends the container when there is nothing."""
    seen = runpy.run_path(f"{folder}/look.py")["facts"]()
    text = b""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gate:
        gate.connect(f"{folder}/gate.sock")
        gate.sendall(json.dumps({"facts": seen}).encode() + b"\n")
        while part := gate.recv(65536):
            text += part
    try:
        orders: dict[str, Any] = json.loads(text)
    except ValueError:
        os._exit(NOT_STARTED)
    return orders


def become_agent(orders: dict[str, Any]) -> NoReturn:
    """The forked child: folder, command. Exit 126 or 127 when that fails, as a shell does."""
    try:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDWR), 0)  # nobody writes to it: the engine may have left a pipe that never ends
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        # The portal's listener is among them: an agent that held it could answer in the proxy's place.
        os.closerange(3, 65536)
        os.chdir(orders["cwd"])
        os.execvpe(orders["argv"][0], orders["argv"], orders["env"])
    except (OSError, ValueError) as error:
        os.write(2, f"[watchfloor: cannot run {orders['argv'][0]!r}: {error}]\n".encode(errors="backslashreplace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def install_filter(program: bytes) -> None:
    """seccomp(2), filter mode, on top of the engine's own profile; before the look, and inherited by all that follows."""
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


# -- gVisor: its network is its own, so a port opened from outside is not seen inside; this one is, and leads to the portal's socket ----


def open_portal() -> socket.socket:
    """The agent's proxy port, taken before the agent runs."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(128)
    return listener


def forward(listener: socket.socket, path: str) -> NoReturn:
    """Carry connections to ``path``, forever. It decides nothing: a process that ends it or goes around it reaches the same socket."""
    room = threading.Semaphore(CONNECTIONS_MAX)
    while True:
        with contextlib.suppress(OSError):
            inner, _ = listener.accept()
            room.acquire()
            threading.Thread(target=carry, args=(inner, path, room), daemon=True).start()


def carry(inner: socket.socket, path: str, room: threading.Semaphore) -> None:
    """One connection, both ways, until either side has ended."""
    with contextlib.suppress(OSError), inner, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as outer:
        outer.connect(path)
        back = threading.Thread(target=pump, args=(outer, inner), daemon=True)
        back.start()
        pump(inner, outer)
        back.join()
    room.release()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """One way, to its end."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else FOLDER)
