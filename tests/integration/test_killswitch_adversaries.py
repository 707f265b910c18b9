"""Trees that resist, on the real kernel: all end at zero proven beside two hundred bystanders; what cannot die is never called dead."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Denied
from console.domain.kill import Outcome, Receipt, StepName, StepStatus
from console.domain.verdict import verdict
from console.killswitch.client.guard_client import GuardClient
from console.killswitch.kernel import processes
from console.killswitch.kernel.cgroups import find_mounts
from console.killswitch.kill.receipt import read_receipt
from console.killswitch.store.journal import read_journal
from tests.fakes.guard_world import FORK_BOMB, HOSTILE_TREE, NOBODY, GuardWorld, decoys, until
from tests.fakes.in_time import code_in_time
from tests.fakes.stuck_file import StuckFile

PYTHON = ("/usr/bin/python3", "-S", "-c")
"""One that nobody may run as well."""

RESISTANT = r"""
import ctypes, os, select, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def stopped_by_its_own_tracer():
    child = os.fork()
    if not child:
        libc.ptrace(0, 0, 0, 0)                       # PTRACE_TRACEME
        os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    libc.ptrace(0x4200, child, 0, 0x40)               # PTRACE_SETOPTIONS, TRACEEXIT: it would stop once more on its way out
def watchdogs():                                      # each starts the other again
    def watch(other):
        while True:
            fd = os.pidfd_open(other); select.select([fd], [], []); os.close(fd)
            if other != os.getppid():
                try: os.waitpid(other, 0)
                except OSError: pass
            me = os.getpid(); other = os.fork() or me
    if os.fork() == 0:
        os.setsid()
        me = os.getpid()
        watch(os.fork() or me)
def in_vfork():                                       # state D: a child that shares its memory waits for a pipe that nobody opens
    if os.fork() == 0:
        os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])
def stopped():
    if os.fork() == 0:
        os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)
for trick in (stopped_by_its_own_tracer, watchdogs, in_vfork, stopped): trick()
print("ready", flush=True)
time.sleep(600)
"""

TRACER = r"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
pid, options = int(sys.argv[1]), int(sys.argv[2])
assert libc.ptrace(0x4206, pid, 0, options) == 0      # PTRACE_SEIZE
assert libc.ptrace(0x4207, pid, 0, 0) == 0            # PTRACE_INTERRUPT
os.waitpid(pid, 0)
print("ready", flush=True)
time.sleep(600)                                       # and lets its tracee go on for nothing in the world
"""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(tmp_path_factory.mktemp("w"), heartbeat_s=600.0)) as made:
        yield made.start_impatient()


@pytest.fixture
def world(lasting: GuardWorld) -> Iterator[GuardWorld]:
    yield lasting
    lasting.clear()


def press(world: GuardWorld, scope: str | list[str] = "all") -> Receipt:
    return world.pressed(scope)


def states(world: GuardWorld, agent_id: str) -> str:
    return "".join(sorted(processes.state(pid) for pid in world.supervisor.call("procs", agent_id=agent_id)["pids"]))


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(tmp_path / "g")) as made:
        yield made.start()


def test_trees_that_resist_end_proven_beside_two_hundred_bystanders(patient: GuardWorld, state_dir: Path) -> None:
    world = patient
    state_dir.chmod(0o711)
    os.mkfifo(state_dir / "fifo")
    (state_dir / "fifo").chmod(0o644)
    with decoys(200):
        resists = world.agent("resists", *PYTHON, RESISTANT, str(state_dir / "fifo"), pids_max=50, env=NOBODY, stdout=subprocess.PIPE)
        world.agent("hops", *PYTHON, HOSTILE_TREE, "20", pids_max=200, env=NOBODY)
        world.agent("bomb", *PYTHON, FORK_BOMB, pids_max=150, env=NOBODY)
        assert resists.stdout is not None and resists.stdout.readline() == b"ready\n"
        until(lambda: {"t", "T", "D"} <= set(states(world, "resists")), "stopped, traced and waiting in the kernel")
        until(lambda: len(world.oracle("bomb")) > 100 and len(world.oracle("hops")) > 10, "they have grown")
        receipt = press(world)
        assert receipt.verified_zero and code_in_time(receipt) == 0, receipt
        assert {t.outcome for t in receipt.targets} == {Outcome.PROVEN_ZERO}
        assert [world.oracle(agent) for agent in ("resists", "hops", "bomb")] == [[], [], []]


@pytest.mark.parametrize("options", [0, 0x40], ids=["stopped", "stopped again on its way out"])
def test_one_that_a_bystander_traces_is_dead_or_not_called_so(world: GuardWorld, options: int) -> None:
    """With TRACEEXIT (ptrace(2)) it obeys SIGKILL and stops once more: not dead as long as its tracer, whom nobody touches, lives."""
    agent = world.agent("traced", env=NOBODY)
    tracer = world.popen(sys.executable, "-S", "-c", TRACER, str(agent.pid), str(options), stdout=subprocess.PIPE)
    assert tracer.stdout is not None and tracer.stdout.readline() == b"ready\n"
    receipt = press(world)
    assert receipt.verified_zero is not processes.is_alive(agent.pid) and receipt.verified_zero is (options == 0)
    assert [(s.pid, s.state, s.wchan) for s in receipt.survivors] == ([(agent.pid, "t", "ptrace_stop")] if options else [])
    assert tracer.poll() is None
    tracer.kill()
    until(lambda: (read_receipt(world.state / "guard", receipt.kill_id) or receipt).verified_zero, "proven once it is dead")
    assert not processes.is_alive(agent.pid)


def test_what_sleeps_beyond_every_signal_is_not_proven_until_it_is_dead(world: GuardWorld) -> None:
    """State D for good: it waits for an answer of a file system, and nothing but the answer ends that. Then the receipt is amended."""
    with contextlib.closing(StuckFile()) as stuck:
        agent, other = world.agent("stuck", "/bin/cat", str(stuck.path), env=NOBODY), world.agent("other", env=NOBODY)
        until(stuck.asked.is_set, "it waits")
        receipt = press(world)
        assert not receipt.verified_zero and verdict(receipt).exit_code == 9 and other.wait(60) == -signal.SIGKILL
        assert {t.agent_id: t.outcome for t in receipt.targets} == {"stuck": Outcome.NOT_PROVEN, "other": Outcome.PROVEN_ZERO}
        (left,) = receipt.survivors
        assert (left.agent_id, left.pid, left.state) == ("stuck", agent.pid, "D") and left.wchan
        again = press(world)  # a second press is possible, and no more of a proof
        assert not again.verified_zero
        stuck.close()
        assert agent.wait(60) == -signal.SIGKILL
    for kill_id in (receipt.kill_id, again.kill_id):
        until(lambda i=kill_id: (read_receipt(world.state / "guard", i) or receipt).verified_zero, "its receipt is amended")  # type: ignore[misc]
    now = read_receipt(world.state / "guard", receipt.kill_id)
    assert now is not None and code_in_time(now) in (0, 7) and not now.survivors and "stuck" in now.amended[0]
    (then,) = next(t for t in now.targets if t.agent_id == "stuck").evidence["amended"]
    assert then["outcome"] == "not_proven" and then["left"][0]["state"] == "D"
    assert {s.name: s.status for s in now.steps}[StepName.ZERO] is StepStatus.OK
    ids = {receipt.kill_id, again.kill_id}

    def told() -> set[str]:
        return {line["kill_id"] for line in read_journal(world.state / "guard" / "journal.jsonl") if line["kind"] == "receipt_amended"}

    until(lambda: ids <= told(), "the journal has both")


def move(pids: list[int], folder: Path) -> None:
    for pid in pids:
        (folder / "cgroup.procs").write_text(str(pid))


ORPHAN = """import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    time.sleep(600)
os.wait()
time.sleep(600)"""


def test_a_root_agent_that_rules_its_own_cgroup_is_frozen_outside_and_killed_where_cgroup_kill_is_refused(world: GuardWorld) -> None:
    agent = world.python("root", ORPHAN, env={})
    v2 = find_mounts().v2
    assert v2 is not None
    (leaf,) = (v2.point / f"watchfloor-{world.instance}" / "agents").glob("root-*")
    until(lambda: len((leaf / "cgroup.procs").read_text().split()) == 2 and processes.parent(_other(leaf, agent.pid)) == 1, "an orphan")
    orphan = _other(leaf, agent.pid)
    # 1. It left its cgroup: frozen all the same, or not called so.
    move([agent.pid], v2.point)
    assert world.operator.freeze(["root"]) | {"ok": True} == {"ok": True, "frozen": 1, "failed": {}, "unconfirmed": {}}
    until(lambda: world.operator.call("freezing", scope=["root"])["n"] == 0, "it is seen to be stopped")
    assert processes.state(agent.pid) == "T"
    world.operator.thaw(["root"])
    until(lambda: processes.state(agent.pid) == "S", "it goes on")
    # 2. Its cgroup is threaded, where cgroup.kill is refused and nobody is listed; the orphan is linked to nothing.
    move([orphan], v2.point)
    (leaf / "cgroup.type").write_text("threaded")
    for folder in (leaf.parent, leaf):
        move([orphan, agent.pid], folder)
    receipt = press(world, ["root"])
    writes = receipt.targets[0].evidence["writes"]
    assert "not supported" in writes["cgroup.kill"] and receipt.targets[0].outcome is Outcome.BEST_EFFORT, receipt
    assert not processes.is_alive(orphan) and agent.wait(60) == -signal.SIGKILL and not receipt.survivors


def _other(leaf: Path, first: int) -> int:
    return next(pid for pid in map(int, (leaf / "cgroup.procs").read_text().split()) if pid != first)


RING = r"""
import ctypes, mmap, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
given = ctypes.create_string_buffer(struct.pack("IIIII", 8, 0, 2, 0, 600_000), 120)   # IORING_SETUP_SQPOLL: its thread in the kernel spins
ring = libc.syscall(425, 8, given)                                                    # io_uring_setup(2)
if ring >= 0:
    tail, = struct.unpack_from("I", given, 44)
    shared = mmap.mmap(ring, 4096)
    struct.pack_into("I", shared, tail, 1)                                            # one entry, all zeros: do nothing
    libc.syscall(426, ring, 0, 0, 2, None, 0)                                         # io_uring_enter(2): wakes the thread
print("ready" if ring >= 0 else os.strerror(ctypes.get_errno()), flush=True)
time.sleep(600)
"""


def test_a_thread_of_the_kernel_that_works_for_an_agent_is_frozen_and_killed_with_it(world: GuardWorld) -> None:
    """io_uring(7): it polls a ring of the agent's and never enters user space, where signals are usually heard."""
    agent = world.agent("ring", *PYTHON, RING, pids_max=10, env=NOBODY, stdout=subprocess.PIPE)
    assert agent.stdout is not None
    if (said := agent.stdout.readline()) != b"ready\n":
        assert said, "it ended"
        pytest.skip(f"not available, because this kernel gives nobody a ring: {said.decode().strip()}")
    (worker,) = (t for t in Path(f"/proc/{agent.pid}/task").iterdir() if t.name != str(agent.pid))
    until(lambda: (worker / "comm").read_text().startswith("iou-sqp-"), "it has named itself")
    until(lambda: spins(worker), "the thread spins")
    world.operator.freeze(["ring"])
    until(lambda: world.operator.call("freezing", scope=["ring"])["n"] == 0, "it is seen to be frozen")
    until(lambda: not spins(worker), "the thread spins no more")
    receipt = press(world, ["ring"])
    assert receipt.verified_zero and agent.wait(60) == -signal.SIGKILL and not worker.exists()


def spins(thread: Path) -> bool:
    """Running, or waiting for a core (proc(5), field 3)."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0] == "R"


CALLER = """
import subprocess, sys, time
sys.path.insert(0, sys.argv[1])
done = subprocess.run([sys.executable, "-c", sys.argv[2], *sys.argv[1:]], check=False)
print("lives", flush=True)
time.sleep(600)
"""
PRESS = """
import sys
from pathlib import Path
from console.killswitch.client.kill import press_and_wait
state, run, instance = sys.argv[3:]
receipt = press_and_wait(Path(state), Path(run), instance, "all", "from below", "t", timeout_s=90)
print(receipt.kill_id, flush=True)
"""


@pytest.mark.parametrize("with_guard", [True, False])
def test_an_ancestor_of_the_caller_is_never_signalled(state_dir: Path, with_guard: bool) -> None:
    """The one who presses descends from a process that carries an agent's marks and runs under an agent's account."""
    root = str(Path(__file__).parents[2])
    with contextlib.closing(GuardWorld(state_dir)) as world:
        world.start()
        world.supervisor.call("ticket", agent_id="kin", kind="process", control_level="managed", uid=os.geteuid() or 65534)
        env = {**os.environ, "WATCHFLOOR_AGENT_ID": "kin", "WATCHFLOOR_INSTANCE": world.instance}
        command = [sys.executable, "-c", CALLER, root, PRESS, str(world.state), str(world.run), world.instance]
        if not with_guard:
            world.kill_guard()
        parent = world.popen(*command, env={**env, "PYTHONPATH": root}, stdout=subprocess.PIPE)
        assert parent.stdout is not None
        kill_id = parent.stdout.readline().decode().strip()
        assert parent.stdout.readline() == b"lives\n" and parent.poll() is None
        receipt = read_receipt(world.state / "guard", kill_id)
        assert receipt is not None and parent.pid not in [s["pid"] for t in receipt.targets for s in t.evidence.get("left", [])]
        assert f"pid {parent.pid}" not in str([t.evidence.get("strays") for t in receipt.targets])


def test_an_agents_child_that_slipped_out_asks_in_vain(world: GuardWorld) -> None:
    code = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom pathlib import Path\n"
        "from console.killswitch.client.guard_client import GuardClient\n"
        "try: GuardClient(Path(sys.argv[2]), timeout_s=60).thaw('all')\nexcept Exception as e: print(type(e).__name__, flush=True)\n"
    )
    agent = world.agent(
        "asks", sys.executable, "-c", code, str(Path(__file__).parents[2]), str(world.run / "guard.sock"), stdout=subprocess.PIPE
    )
    assert agent.stdout is not None and agent.stdout.readline() == b"Denied\n"
    with pytest.raises(Denied), contextlib.closing(GuardClient(world.run / "guard.sock", timeout_s=60)) as client:
        client.freeze(["asks"])
        world.supervisor.thaw(["asks"])
        world.supervisor.freeze(["asks"])  # the supervisor's own: an operator of guard.sock does not lift it
        client.thaw(["asks"])
