"""``python -m console.killswitch``: starts the guard of one instance, in the foreground or detached."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import resource
import signal
import sys
from pathlib import Path

from console.domain.guard import HEARTBEAT_S, RETURN_WATCH_S
from console.domain.process import failpoints
from console.domain.process.precedence import NICE, lead_session
from console.domain.roles.rights import AGENTS_UID
from console.killswitch.guard.freeze import Freezing
from console.killswitch.guard.launches import Launches
from console.killswitch.guard.operations import Desk
from console.killswitch.guard.server import Doors
from console.killswitch.guard.state import Config, Guard, is_over, take_away
from console.killswitch.kernel import processes
from console.killswitch.kernel.peers import inside_an_agent, why_unfit
from console.killswitch.kernel.systemd_notify import READY, STOPPING, notify

ALREADY_RUNNING = 75
SWITCH_S = 0.0005
"""How long a thread that computes (a receipt, the registry's text) may keep the loop waiting; Python's own 5 ms is a press's whole time."""
DRAIN_S = 5.0
"""An orderly end waits that long for the disk: what was answered is on it."""


def main(words: list[str] | None = None) -> int:
    """Exit codes: 0 ended in order, 1 cannot start, 75 another guard holds this instance. ``words``: arguments, else the process's own."""
    arguments = _parser().parse_args(words)
    if not re.fullmatch(r"[0-9a-f]{8}", arguments.instance):
        print("instance must be 8 hexadecimal characters", file=sys.stderr)
        return 1
    if inside_an_agent():
        print("a guard inside an agent's cgroup would kill itself: refused", file=sys.stderr)
        return 1
    config = Config(
        arguments.state_dir.absolute(),
        arguments.run_dir.absolute(),
        arguments.instance,
        arguments.engine_socket,
        arguments.heartbeat_s,
        arguments.lease,
        arguments.supervisor_uid,
        arguments.orphan_s,
        arguments.return_watch_s,
        realtime=True,
        passphrase_file=arguments.passphrase_file,
        agents_uid=arguments.agents_uid,
    )
    config.guard_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = _take_lock(config.guard_dir / "lock")
    if lock is None:
        print("already running", file=sys.stderr)
        return ALREADY_RUNNING
    told = _detach(config.guard_dir / "guard.log") if arguments.detach else None
    return _run(config, told, arguments.socket_mode, arguments.members_dir)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m console.killswitch", allow_abbrev=False)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--instance", required=True)
    parser.add_argument("--engine-socket", type=Path)
    parser.add_argument("--heartbeat-s", type=float, default=HEARTBEAT_S)
    parser.add_argument("--orphan-s", type=float, default=900.0)
    parser.add_argument("--return-watch-s", type=float, default=RETURN_WATCH_S)
    parser.add_argument("--lease", action="store_true")
    parser.add_argument("--supervisor-uid", type=int)
    parser.add_argument("--passphrase-file", type=Path, help="where the passphrase for rearm is kept")
    parser.add_argument("--socket-mode", type=lambda t: int(t, 8), default=0o600)
    parser.add_argument("--members-dir", type=Path, help="a folder for the socket of members of watchfloor's groups")
    parser.add_argument("--agents-uid", type=int, default=AGENTS_UID, help="the account of agents, which is no member")
    parser.add_argument("--detach", action="store_true", help="print 'ready PID' and go on in the background")
    return parser


def _take_lock(path: Path) -> int | None:
    """One guard per instance; the kernel lets go when it dies."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _detach(log: Path) -> int:
    """The caller's child ends once the guard is ready; the guard itself has no parent that could stop it.

    Gives the descriptor to tell readiness on, in the guard; does not return in the parent.
    """
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        with os.fdopen(told, "rb") as pipe:
            line = pipe.read(200).decode(errors="replace")
        sys.stdout.write(line)
        sys.stdout.flush()
        os._exit(0 if line.startswith("ready") else 1)
    os.close(told)
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    for number, source in ((0, null), (1, null), (2, out)):
        os.dup2(source, number)
    os.close(null)
    os.close(out)
    return tell


def _run(config: Config, told: int | None, socket_mode: int, members_dir: Path | None) -> int:
    _harden()
    if config.supervisor_uid is not None:
        failpoints.disarm()  # system mode
    guard = Guard(config)
    guard.take_over()
    freezing = Freezing(guard)
    freezing.restore()
    launches = Launches(guard, freezing)
    desk = Desk(guard, freezing, launches)
    doors = Doors(guard, freezing, desk)
    signal.signal(signal.SIGUSR1, lambda *_: _ask_press(doors))
    signal.signal(signal.SIGTERM, lambda *_: _ask_end(desk, doors))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    guard.finish_kills()
    guard.clerk.do(desk.unlatching.look)
    guard.clerk.do(desk.adoption.resume)
    config.run_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
    doors.listen(config.run_dir / "guard.sock", "operator", socket_mode)
    doors.listen(config.run_dir / "guard-supervisor.sock", "supervisor", 0o600, config.supervisor_uid)
    if members_dir is not None:
        _listen_to_members(guard, doors, members_dir)
    if guard.follower is not None:
        guard.follower.start()
    guard.connections.start()
    notify(READY)
    if told is None:
        print("ready", flush=True)
    else:
        os.write(told, f"ready {os.getpid()}\n".encode())
        os.close(told)
    doors.serve()
    notify(STOPPING)
    guard.clerk.drain(DRAIN_S)
    if is_over(guard):
        take_away(guard)
        doors.close()
    return 0


def _listen_to_members(guard: Guard, doors: Doors, folder: Path) -> None:
    """Whatever goes wrong is a notice: root's own socket is there already."""
    try:
        why = why_unfit(folder)
        if not why:
            doors.listen(folder / "guard.sock", "member", 0o666)
    except OSError as error:
        why = f"{folder}: {error.strerror}"
    if why:
        guard.notices["members"] = f"Only root can ask this guard to kill: {why}."


def _ask_press(doors: Doors) -> None:
    doors.presses_asked += 1
    doors.wake()


def _ask_end(desk: Desk, doors: Doors) -> None:
    """SIGTERM ends the guard, not the latch: everything is on disk and a successor takes over."""
    desk.wants_to_end = True
    doors.wake()


def _harden() -> None:
    """As many descriptors as allowed; the last to be taken when memory runs out; nothing of it in a core file."""
    processes.raise_descriptors()
    sys.setswitchinterval(SWITCH_S)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-900")
    with contextlib.suppress(OSError):  # ahead of what it is to stop, however busy that keeps the processors; only root may
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    lead_session(NICE)
    # core(5): no memory of ours is dumped, whatever the machine does with cores; a passphrase passes through here.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0")


if __name__ == "__main__":
    sys.exit(main())
