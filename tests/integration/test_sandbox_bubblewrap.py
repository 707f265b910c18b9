"""Contained agents by bubblewrap, and managed agents of an ordinary user, on the real kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.errors import TimedOut
from console.domain.ids import ControlLevel
from console.domain.network import NetworkMode
from console.sandbox.bubblewrap import Bubblewrap
from console.sandbox.interface import KILLED_EXIT_CODE
from tests.fakes.sandbox_world import UID, WAIT_S, World, answers, look_around, procs, run, wait_for

ROOT = Path(__file__).parents[2]
SLEEP = ("/bin/sleep", "300")


@pytest.fixture
def world(state_dir: Path) -> Iterator[World]:
    made = World(state_dir)
    yield made
    made.close()


@pytest.fixture
def bubblewrap() -> Bubblewrap:
    made = Bubblewrap()
    found = made.available()
    assert found.ok, found.reason
    return made


def test_contained_agent_sees_only_its_own_and_can_do_nothing(
    world: World, bubblewrap: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WF_SECRET", "canary-7f3a")
    seen = answers(bubblewrap, look_around(world, "look", env={"ONLY": "this"}), world.ticket("look"))
    assert seen["ids"] == [UID] * 4
    assert seen["caps"] == [0, 0, 0, 0, 0]
    assert seen["nnp"] == 1 and seen["seccomp"] == 2
    assert seen["pids"] == [1, seen["pid"]] and seen["pid"] == 2
    assert seen["interfaces"] == ["lo"]
    assert seen["fds"] == [0, 1, 2]
    assert {"PATH", "ONLY"} <= set(seen["environ"]) <= {"PATH", "ONLY", "LC_CTYPE", "PWD"}
    assert not seen["canary"]
    assert seen["state"] == ["agents", "workspaces"] and seen["agents"] == ["look.sock"]
    assert seen["cgroups"] == "ENOENT" and seen["other"] == "ENOENT"
    assert {seen[way] for way in ("proc_root", "up", "link")} <= {"ENOENT", "EACCES"} and seen["contexts"] == ["c-look"]
    assert seen["release_agent"] == []
    for name in ("leave", "leave_v2", "core_pattern", "sysrq", "root", "usr", "mknod"):
        assert seen[name] in ("ENOENT", "EACCES", "EPERM", "EROFS"), name
    assert not (world.state / "planted").exists()  # at most in its own /tmp
    for name in ("vsock", "packet", "keyctl", "io_uring", "userns", "mount", "ptrace", "bpf", "perf", "userfaultfd"):
        assert seen[name] == "EPERM", name
    assert seen["devices"] == []
    assert seen["work"] == "done" and seen["talk"] == "done"


ORDINARY = (
    "import socket; print(socket.getservbyname('https', 'tcp'), socket.getprotobyname('tcp'))",
    "import platform; print(platform.freedesktop_os_release()['ID'])",
    "import subprocess; subprocess.run(['openssl', 'req', '-batch', '-new', '-newkey', 'rsa:1024', '-nodes', '-keyout', 'k'], check=True)",
    "import ssl; assert ssl.create_default_context().get_ca_certs()",
)
"""What works on this host without a sandbox, and is no secret."""


@pytest.mark.parametrize("code", ORDINARY)
def test_what_programs_of_the_host_read_of_etc_is_there(world: World, bubblewrap: Bubblewrap, code: str) -> None:
    if subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=world.state).returncode:
        pytest.skip("not on this host")
    code_inside, said, _ = run(bubblewrap, world.spec("plain", "/usr/bin/python3", "-c", code), world.ticket("plain"))
    assert code_inside == 0, said


def test_java_has_the_settings_that_its_package_keeps_in_etc(world: World, bubblewrap: Bubblewrap) -> None:
    java = Path("/usr/bin/java")
    if not java.exists():
        pytest.skip("no Java here")
    settings = java.resolve().parents[1] / "conf" / "security" / "java.security"
    code, said, _ = run(bubblewrap, world.spec("java", "/bin/cat", str(settings)), world.ticket("java"))
    assert code == 0 and "security.provider.1" in said, said


def test_of_etc_it_sees_nothing_that_may_hold_a_secret(world: World, bubblewrap: Bubblewrap) -> None:
    code, said, _ = run(bubblewrap, world.spec("etc", "/bin/sh", "-c", "ls /etc /etc/ssl /etc/maven"), world.ticket("etc"))
    assert "passwd" in said.split(), code
    assert not {"shadow", "gitconfig", "environment", "machine-id", "ssh", "private", "sudoers", "settings.xml"} & set(said.split()), said


def test_the_gate_holds_and_the_leaf_has_everything(world: World, bubblewrap: Bubblewrap) -> None:
    spec, ticket = world.spec("gate", "/bin/sh", "-c", "echo ran > ran; exec sleep 300"), world.ticket("gate")
    prepared = bubblewrap.prepare(spec, ticket)
    assert prepared.control_level is ControlLevel.CONTAINED and prepared.netns and prepared.userns and prepared.mask
    assert prepared.pid in procs(ticket.leaf)
    time.sleep(0.5)
    assert not (spec.workspace / "ran").exists()
    bubblewrap.go(prepared)
    wait_for((spec.workspace / "ran").exists, "the agent never ran")
    os.kill(prepared.pid, 9)
    assert bubblewrap.wait(prepared, WAIT_S) == KILLED_EXIT_CODE
    assert procs(ticket.leaf) == []
    bubblewrap.release(prepared)


def test_abort_and_a_dead_supervisor_run_nothing(world: World, bubblewrap: Bubblewrap) -> None:
    spec, ticket = world.spec("abort", "/bin/sh", "-c", "echo ran > ran"), world.ticket("abort")
    bubblewrap.abort(bubblewrap.prepare(spec, ticket))
    assert procs(ticket.leaf) == []
    fields = (spec.argv, dict(spec.env), str(spec.workspace), str(spec.agent_socket), str(spec.output), ticket.leaf, UID)
    program = (
        "import os\nfrom pathlib import Path\nfrom console.sandbox.bubblewrap import Bubblewrap\n"
        "from console.sandbox.interface import LaunchSpec, Ticket\nfrom console.domain.network import NetworkMode\n"
        f"argv, env, work, door, out, leaf, uid = {fields!r}\n"
        "Bubblewrap().prepare(LaunchSpec('orphan', argv, env, Path(work), Path(door), Path(out), NetworkMode.NONE,"
        " uid=uid, gid=uid), Ticket(leaf))\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=WAIT_S, check=False)
    wait_for(lambda: procs(ticket.leaf) == [], "the sandbox outlived its gate")
    assert not (spec.workspace / "ran").exists()


def test_a_shim_that_is_killed_takes_the_closed_sandbox_with_it(world: World, bubblewrap: Bubblewrap) -> None:
    spec, ticket = world.spec("shim", "/bin/sh", "-c", "echo ran > ran"), world.ticket("shim")
    prepared = bubblewrap.prepare(spec, ticket)
    shim = next(pid for pid in procs(ticket.leaf) if b"shim.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(shim, 9)
    assert bubblewrap.wait(prepared, WAIT_S) == KILLED_EXIT_CODE
    wait_for(lambda: procs(ticket.leaf) == [], "the sandbox outlived its shim")
    assert not (spec.workspace / "ran").exists()
    bubblewrap.release(prepared)


def test_exit_code_output_and_limits(world: World, bubblewrap: Bubblewrap) -> None:
    ticket = world.ticket("exit")
    code, text, _ = run(bubblewrap, world.spec("exit", "/bin/sh", "-c", "setsid sleep 300 & echo out; echo err >&2; exit 42"), ticket)
    assert (code, text) == (42, "out\nerr\n")
    assert procs(ticket.leaf) == []
    fill = "open('/tmp/x', 'wb').write(bytes(300 << 20))"
    code, text, _ = run(bubblewrap, world.python("fill", fill), world.ticket("fill"))
    assert code == 1 and "No space left" in text


def test_full_shares_the_network_and_says_so(world: World, bubblewrap: Bubblewrap) -> None:
    prepared = bubblewrap.prepare(world.spec("full", *SLEEP, network_mode=NetworkMode.FULL), world.ticket("full"))
    same = os.stat(f"/proc/{prepared.pid}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino
    bubblewrap.abort(prepared)
    assert same and not prepared.netns and any("FULL" in note for note in prepared.notes)


def test_secrets_are_on_no_command_line(world: World, bubblewrap: Bubblewrap) -> None:
    ticket = world.ticket("quiet")
    prepared = bubblewrap.prepare(world.spec("quiet", *SLEEP, env={"AGENT_AUTH_TOKEN": "canary-token-55"}), ticket)
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in procs(ticket.leaf)]
    bubblewrap.abort(prepared)
    assert lines and not any(b"canary-token-55" in line for line in lines)


def test_hostile_words_arrive_unchanged_and_preloading_stays_inside(world: World, bubblewrap: Bubblewrap) -> None:
    words = ["", "a\nb", "\u202e\u2066x", "\udcff", "--bind", "/", "ü" * 50_000]
    program = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['HOSTILE']]))"
    hostile = "x\n" + "y" * 100_000
    env = {"HOSTILE": hostile, "LD_PRELOAD": "/no/such/library.so"}
    assert answers(bubblewrap, world.python("words", program, *words, env=env), world.ticket("words")) == [words, hostile]


def test_a_restarted_supervisor_follows_to_the_end(world: World, bubblewrap: Bubblewrap) -> None:
    prepared = bubblewrap.prepare(world.spec("again", *SLEEP), world.ticket("again"))
    bubblewrap.go(prepared)
    later = Bubblewrap()
    found = later.reattach(AgentId("again"), prepared.pid, prepared.start_ticks, "")
    assert found.control_level is ControlLevel.CONTAINED
    with pytest.raises(TimedOut):
        later.wait(found, 0.05)
    later.abort(found)
    assert bubblewrap.wait(prepared, WAIT_S) == KILLED_EXIT_CODE
    bubblewrap.release(prepared)


AS_USER = """
import json, os, sys
uid, project, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path.insert(0, project)
from console.sandbox import shim
if shim.libc.unshare(shim.CLONE_NEWNS):
    sys.exit("no mount namespace")
shim.make_private()  # an ordinary machine's root is no chroot, where the kernel refuses user namespaces
os.setgroups([]); os.setgid(uid); os.setuid(uid)
from pathlib import Path
from console.domain.network import NetworkMode
from console.sandbox import bubblewrap
from console.sandbox.interface import LaunchSpec, Ticket
from console.sandbox.managed import Managed
from console.sandbox.workspace.folder import open_workspace
if sys.argv[4] == "plain":
    bubblewrap.PLACES = ()
state = Path(folder)
(state / "guard").mkdir(); (state / "guard" / "latch").write_text("canary"); (state / "door").touch()
work = open_workspace(state / "workspaces", "c-one", uid, uid)
program = (
    "import json, os, socket; print(json.dumps([os.getpid(), sorted(int(n) for n in os.listdir('/proc') if n.isdigit()), os.getuid(),"
    " os.path.exists('%s/guard/latch'), sorted(n for _, n in socket.if_nameindex()), os.getsid(0),"
    " open('/proc/self/status').read().count('NoNewPrivs:\\t1')]))" % folder
)
spec = LaunchSpec("user", ("/usr/bin/python3", "-c", program), {"PATH": "/usr/bin:/bin"}, work, state / "door", state / "out",
    NetworkMode.NONE, hide=(state,), uid=uid, gid=uid)
managed = Managed()
prepared = managed.prepare(spec, Ticket(""))
managed.go(prepared)
code = managed.wait(prepared, 60)
managed.release(prepared)
print(json.dumps({"code": code, "seen": json.loads(spec.output.read_text()), "notes": prepared.notes, "netns": prepared.netns,
    "userns": prepared.userns, "mask": prepared.mask, "level": prepared.control_level, "reason": managed.available().reason}))
"""


def _as_user(folder: Path, how: str) -> dict[str, object]:
    python = Path("/usr/bin/python3")  # the project's own may stand in a folder that only root can pass
    folder.mkdir()
    os.chown(folder, UID, UID)
    command = [str(python), "-c", AS_USER, str(UID), str(ROOT), str(folder), how]
    result = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False, env={"PATH": "/usr/bin:/bin"})
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_an_ordinary_user_gets_namespaces_through_bubblewrap(state_dir: Path) -> None:
    found = _as_user(state_dir / "u", "wrapped")
    seen = found["seen"]
    assert isinstance(seen, list)
    assert found["code"] == 0
    assert seen[:5] == [2, [1, 2], UID, False, ["lo"]] and seen[6] == 1
    assert found["netns"] and found["userns"] and found["mask"] and found["level"] == "managed"
    assert any("best effort" in note for note in found["notes"])  # type: ignore[attr-defined]


def test_an_ordinary_user_without_bubblewrap_is_told_what_is_missing(state_dir: Path) -> None:
    found = _as_user(state_dir / "u", "plain")
    seen = found["seen"]
    assert isinstance(seen, list)
    assert found["code"] == 0 and seen[3] is True and seen[6] == 1
    assert not (found["netns"] or found["userns"] or found["mask"])
    assert found["level"] == "managed"
    text = " ".join(found["notes"])  # type: ignore[arg-type]
    for word in ("no cgroup", "no PID namespace", "stop is best effort", "not masked", "own uid", "not enforced"):
        assert word in text
