"""``python -m console.supervisor serve`` runs the daemon; ``oneshot VERB`` runs what needs machinery but no daemon."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import logging.handlers
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError
from console.domain.process.ending import INTERRUPTED, hear_again, leave
from console.killswitch.kernel.systemd_notify import ALIVE, READY, STOPPING, notify
from console.settings.layers import Effective, change, in_force
from console.settings.named_folder import real_folder
from console.settings.places import Places, find_places
from console.supervisor.verbs.printing import complain

GARBAGE = 10_000
"""Objects more than before, after which it is looked for cycles among the youngest."""
INTERNED = 200_000
"""More than the interpreter's table of interned strings has free places at the start."""


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="watchfloor-supervisor")
    verbs = parser.add_subparsers(dest="verb", required=True)
    serve = verbs.add_parser("serve")
    serve.add_argument("--state-dir")
    serve.add_argument("--embedded", action="store_true", help="end 60 s after the last client when nothing lives")
    serve.add_argument("--engine-socket")
    serve.add_argument("--discover-root")
    serve.add_argument("--remote-bucket")
    serve.add_argument("--remote-key")
    serve.add_argument("--remote-endpoint")
    serve.add_argument("--remote-fleet")
    serve.add_argument("--remote-poll-s", type=float)
    serve.add_argument("--stand-in", action="append")
    serve.add_argument("--egress-netns")
    serve.add_argument("--egress-hosts", help="a JSON file: {name: [address]}")
    serve.add_argument("--host-name")
    serve.add_argument("--heartbeat-s", type=float)
    serve.add_argument("--members-dir", type=Path, help="a folder for the sockets of members of watchfloor's groups; root's service")
    once = verbs.add_parser("oneshot")
    once.add_argument("what")
    once.add_argument("rest", nargs=argparse.REMAINDER)
    return parser


NAMES = {
    "engine_socket": "engine_socket",
    "discover_root": "discover_root",
    "remote_bucket": "remote.bucket",
    "remote_key": "remote.key",
    "remote_endpoint": "remote.endpoint",
    "remote_fleet": "remote.fleet",
    "remote_poll_s": "remote.poll_s",
    "stand_in": "stand_ins",
    "egress_netns": "egress.netns",
    "host_name": "host_name",
    "heartbeat_s": "heartbeat_s",
}


def _settings(places: Places, given: argparse.Namespace) -> Effective:
    """All layers, with what the command line says; kept in the account's file, so that other verbs see the same."""
    import json

    changes: dict[str, Any] = {dotted: value for name, dotted in NAMES.items() if (value := getattr(given, name)) is not None}
    try:
        if given.egress_hosts:
            changes["egress.hosts"] = json.loads(Path(given.egress_hosts).read_text())
    except (OSError, ValueError) as error:
        raise ConsoleError(f"An option is not valid: {str(error)[:200]}.", "python -m console.supervisor serve --help") from error
    now = in_force(places)
    if changes and not now.faults:  # while a file is broken nothing else is read, and nothing is written
        change(places, changes)
        now = in_force(places)
    return now


class LogFile(logging.handlers.RotatingFileHandler):
    """The supervisor's log, for its account alone. What a full disk keeps out goes to the journal as one line; logging prints stacks."""

    def _open(self) -> TextIOWrapper:
        fd = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return open(fd, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        words = f"not in the log ({sys.exc_info()[1]}): {record.levelname} {record.getMessage()}"
        with suppress(OSError, ValueError):
            print(words.encode("unicode_escape").decode()[:1000], file=sys.stderr, flush=True)


def _log_to(places: Places) -> None:
    handler = LogFile(places.log_file, maxBytes=5_000_000, backupCount=3)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a line for each piece of garbage would push out all others


def serve(given: argparse.Namespace) -> int:
    """Runs the daemon until SIGTERM, SIGINT or a shutdown request; prints ``ready`` once operator.sock answers."""
    from console.supervisor.home import move_home
    from console.supervisor.http.peers import Peer
    from console.supervisor.lock import take_lock

    places = find_places(given.state_dir, create=True)
    mine = Peer(os.getpid(), os.geteuid(), Path("/proc/self/cgroup").read_text(), True)
    if "/agents/" in mine.cgroups and "/watchfloor-" in mine.cgroups:
        raise ConsoleError("This process runs inside an agent's cgroup: a supervisor does not start there.", "Start it outside any agent.")
    move_home(places.instance_id)
    # Written before the rest is loaded, which takes longest: "keys init" at the same moment waits for what it says.
    settings = _settings(places, given)
    options = settings.options
    from console.supervisor.adapters import keep_trials_in
    from console.supervisor.compose import Supervisor
    from console.supervisor.embedded import linger

    if given.members_dir is not None:
        places = replace(places, members_dir=given.members_dir)
    if options.workspaces.root:
        places = replace(places, shared_workspaces=real_folder(Path(options.workspaces.root)))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # every agent has a socket, a pidfd and a gate here
    with suppress(OSError):  # the last to be taken when memory runs out; its agents and Envoy set their own
        Path("/proc/self/oom_score_adj").write_text("-900")
    signal.signal(signal.SIGUSR1, lambda *_: None)  # a press by signal before anything runs must not end the one who starts
    lock = take_lock(places.supervisor_lock, places.operator_sock)
    _log_to(places)
    keep_trials_in(places)
    try:
        supervisor = Supervisor(places, settings)

        async def run() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, supervisor.end.set)
            loop.add_signal_handler(signal.SIGUSR1, supervisor.press_by_signal)
            beside = [loop.create_task(linger(supervisor))] if given.embedded else []
            beside += [loop.create_task(_keep_alive(watchdog_s()))] if watchdog_s() else []
            await supervisor.run(_ready)
            notify(STOPPING)
            for task in beside:
                task.cancel()

        asyncio.run(run())
        if supervisor.ended_idle:
            supervisor.end_guard()
    finally:
        lock.close()
    return 0


def watchdog_s() -> float:
    """Seconds after which systemd replaces this process when it hears nothing; 0 when it does not watch this process."""
    period, meant = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not period.isdigit() or (meant and meant != str(os.getpid())):
        return 0.0
    return int(period) / 1e6


async def _keep_alive(period_s: float) -> None:
    """Tells systemd that the loop turns. Forever."""
    while True:
        notify(ALIVE)
        await asyncio.sleep(period_s / 3)


def _ready() -> None:
    """What was loaded stays for good and is never looked through again for garbage; what a fleet makes is seldom any."""
    print("ready", flush=True)
    notify(READY)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 20)
    gc.enable()
    _grow_interned()


def _grow_interned() -> None:
    """Let the interpreter's table of interned strings take its final size now, not after some minutes or hours.

    A string that is interned and dropped (each part of a Path) uses a slot up. When all are used, the table is made again with three slots
    for each living string: some megabytes more, once.
    """
    for number in range(INTERNED):
        sys.intern(f"/{number}")


def main() -> int:
    """The door of the daemon: errors become words and exit codes."""
    given = _arguments().parse_args()
    os.umask(0o022)  # agents under other ids pass through folders of ours, whoever starts us; what is secret names its own mode
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # the command line held Ctrl-C back while this program loaded
        if given.verb == "serve":
            return serve(given)
        from console.supervisor.verbs.oneshot import oneshot

        return oneshot(given.what, given.rest)
    except ConsoleError as error:
        return _refuse(error, given)
    except OSError as error:
        return _refuse(ConsoleError(f"{error}.", "Check the state directory's permissions and free space."), given)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Before Python 3.12 a Ctrl-C in a class that is just being made comes out as a RuntimeError (type.__new__, __set_name__).
        if isinstance(error, RuntimeError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _refuse(error: ConsoleError, given: argparse.Namespace) -> int:
    if given.verb == "serve":  # one line: it is the last in the log, and what a verb that started it says
        print(str(error), file=sys.stderr)
    else:
        complain(error, given.rest)
    return int(error.exit_code)


if __name__ == "__main__":
    gc.disable()  # until all is loaded: nothing of it is ever garbage, and looking for some takes a seventh of a start
    sys.unraisablehook = hear_again
    leave(main())
