"""A day of an ordinary user, told through the command line: doctor, run, fleet, panic. Run inside a world of its own (user_world.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from console.api.client.api_client import ApiClient
from console.api.ladder import LadderBody, ScopeBody
from console.api.messages import LaunchBody
from console.domain.errors import ConsoleError
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel.processes import ticks_now
from console.killswitch.kill.records import Looks
from console.settings.places import find_places
from tests.fakes.guard_world import HOSTILE_TREE

STATE = Path(os.environ["HOME"]) / "state"
WAIT_S = 120.0


def watchfloor(*arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of one verb."""
    verb, *rest = arguments
    words = [sys.executable, "-m", "console", verb, "--state-dir", str(STATE), *rest]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S, check=False)
    return done.returncode, done.stdout, done.stderr


def answer(*arguments: str) -> dict[str, Any]:
    """What one verb says with --json; its exit code under "code"."""
    code, out, err = watchfloor(*arguments[:1], "--json", *arguments[1:])
    try:
        found: dict[str, Any] = json.loads(out)
    except ValueError as error:
        raise AssertionError((code, out, err)) from error
    return found | {"code": code}


def until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)


def with_words(words: str) -> list[int]:
    """Live processes whose command line holds these words. This world's /proc shows nobody else's."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                if alive and words in (entry / "cmdline").read_text(errors="replace"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def launch(*argv: str) -> str:
    """The id of a new agent."""
    code, out, err = watchfloor("run", "--", *argv)
    assert code == 0, (out, err)
    return out.split()[0]


def supervisor() -> ApiClient:
    """The operator's own client."""
    places = find_places(str(STATE), create=False)
    assert places is not None
    return ApiClient(places, timeout_s=WAIT_S)


SLEEPERS = "time.sleep(600)"
TREE = 24
WALKER = r"""
import ctypes, errno, json, os, signal, socket, sys
def attempt(action):
    try:
        action()
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def enter(path):
    with open(path, "w") as file:
        file.write("0")
# Another program tells it: until it has begun, the kernel hides the files of a process in a new user namespace. It tells it in one piece:
# two of us write into one pipe, which mixes whatever is longer than PIPE_BUF (pipe(7)).
def live_on(name, told):
    code = "import os,sys,time\nos.write(1, sys.argv[1].encode())\ntime.sleep(600)"
    os.execv(sys.executable, [sys.executable, "-S", "-c", code, "%s %s\n" % (name, json.dumps(told))])
def connect(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
out = {"pid": os.getpid(), "seen": len([n for n in os.listdir("/proc") if n.isdigit()])}
groups = [os.path.join(at, "cgroup.procs") for at, _, files in os.walk("/sys/fs/cgroup") if "cgroup.procs" in files]
out["groups"] = []
for path in groups:
    said = attempt(lambda: enter(path))
    out["groups"] += [said] if said not in out["groups"] else []
    if said == "done":
        out["where"] = path
        break
runtime = "/run/user/%d" % os.getuid()
out["doors"] = [attempt(lambda: connect(runtime + door)) for door in ("/systemd/private", "/bus")]
libc = ctypes.CDLL(None, use_errno=True)
if os.fork() == 0:  # a cgroup tree mounted by itself, in namespaces of its own
    os.setsid()
    inner, uid = {}, os.getuid()
    inner["namespaces"] = libc.unshare(0x10000000 | 0x00020000 | 0x02000000)
    inner["mount"] = libc.mount(b"none", b"/sys/fs/cgroup", b"cgroup2", 0, None)
    everywhere = os.walk("/sys/fs/cgroup") if not inner["mount"] else ()
    above = [os.path.join(at, "cgroup.procs") for at, _, files in everywhere if "cgroup.procs" in files]
    inner["groups"] = sorted({attempt(lambda: enter(path)) for path in above})
    inner["made"] = attempt(lambda: os.mkdir("/sys/fs/cgroup/own")) if above else ""
    inner["entered"] = attempt(lambda: enter("/sys/fs/cgroup/own/cgroup.procs")) if above else ""
    live_on("INNER", inner)
out["kills"] = [attempt(lambda: os.kill(int(pid), signal.SIGKILL)) for pid in sys.argv[1:]]
live_on("OUTER", out)
"""
"""An agent that tries to walk out of its cgroup, to have others start something for it, and to kill who holds it."""


def guard() -> dict[str, Any]:
    """The guard's own words; nothing while none answers."""
    try:
        return _asked("status")
    except ConsoleError:
        return {}


def looked_since(walker: dict[str, Any]) -> bool:
    """Whether a look that began after the walker had tried everything knows all of its connections. The one before may have met its child
    between its new user namespace and its new program, where the kernel hides its files."""
    places = find_places(str(STATE), create=False)
    assert places is not None
    began = Looks(places.run_dir).read()[0]
    return began > walker["done_at"] and not _asked("connections", of_supervisor=True, agent_id=walker["id"])["trouble"]


def _asked(verb: str, *, of_supervisor: bool = False, **more: Any) -> dict[str, Any]:
    places = find_places(str(STATE), create=False)
    assert places is not None
    client = GuardClient(places.guard_supervisor_sock if of_supervisor else places.guard_sock, timeout_s=90)
    try:
        return client.call(verb, **more)
    finally:
        client.close()


def _heads(log: Path) -> set[str]:
    """The first word of each whole line."""
    return {line.split(" ")[0] for line in log.read_text().split("\n")[:-1]}


def walk(*victims: int) -> dict[str, Any]:
    """What the walker could do; it and a child of it then live on. Its type may create user namespaces: no agent has more to try."""
    with supervisor() as client:
        body = LaunchBody(argv=["/usr/bin/python3", "-c", WALKER, *map(str, victims)], agent_type="browser")
        agent_id = client.launch(body).id
    log = STATE / "output" / f"{agent_id}.log"
    try:
        until(lambda: log.exists() and {"INNER", "OUTER"} <= _heads(log), "the walker has tried everything")
    except AssertionError as error:
        raise AssertionError(
            (log.read_text() if log.exists() else "no log", guard(), (STATE / "supervisor.log").read_text()[-3000:])
        ) from error
    lines = dict(line.split(" ", 1) for line in log.read_text().splitlines() if line.startswith(("INNER ", "OUTER ")))
    return {"id": agent_id, "done_at": ticks_now(), **{name.lower(): json.loads(text) for name, text in lines.items()}}


def hostile(*more: str) -> dict[str, Any]:
    """The whole story: a hostile tree and a walker are started, shown, and stopped; a bystander lives on."""
    out: dict[str, Any] = {"here": Path("/proc/self/cgroup").read_text()}
    doctor = subprocess.Popen([sys.executable, "-m", "console", "doctor", "--json"], stdout=subprocess.PIPE, text=True)
    bystander = subprocess.Popen(["/bin/sleep", "600"])
    agent_id = launch("/usr/bin/python3", "-S", "-c", HOSTILE_TREE, str(TREE))
    until(lambda: len(with_words(SLEEPERS)) >= TREE, "the tree has grown")
    before = guard()
    out["guard"] = {"pid": before["pid"], "caps": before["caps"], "cgroup": Path(f"/proc/{before['pid']}/cgroup").read_text()}
    out["walker"] = walk(before["pid"])
    if "guard" in more:  # it could be killed, so it was
        until(lambda: guard().get("pid", before["pid"]) != before["pid"], "another guard has taken over")
    with supervisor() as client:
        out["agent"] = next(a for a in client.fleet().agents if a.id == agent_id).as_data()
        out["preview"] = client.preview(LadderBody(action="kill", scope=ScopeBody(reach="agent", target=agent_id))).as_data()
        if out["agent"]["best_effort"]:  # of a guard that has just come back, with the supervisor's next look at it
            until(lambda: any("best effort" in notice for notice in client.status().notices), "it is said to everybody")
        out["notices"] = client.status().notices
    out["fleet"] = watchfloor("fleet")[1]
    until(lambda: looked_since(out["walker"]), "a look after that knows all of the walker's connections")
    out["receipt"] = answer("panic", "--reason", "the story ends")
    out["left"] = [Path(f"/proc/{pid}/cmdline").read_text(errors="replace") for pid in with_words(SLEEPERS)]
    out["bystander"] = bystander.poll()
    out["doctor"] = json.loads(doctor.communicate(timeout=WAIT_S)[0]) | {"code": doctor.returncode}
    return out


def tell(story: dict[str, Any]) -> None:
    """To whoever started this world."""
    print("RESULT " + json.dumps(story), flush=True)


if __name__ == "__main__":
    tell(hostile(*sys.argv[1:]))
