"""Layers hold alone: each one is broken in turn (policy, proxy, budget, file system, hook), and the others still stop what they must.

One instance, and one agent in it that does what it is told: the battery of ``holds`` asks for what each layer stops, and every case
leaves out only what it broke. The last case is the kill, with proof, whatever had been broken before.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from console.api import budgets as b
from console.api.allowlist_review import ImportBody
from console.api.policy import policy_data
from console.audit.verify import verify_file
from console.domain.errors import ConsoleError
from console.services.hooks.installation import SOURCE
from console.sources.hook_settings import HookCommand
from tests.fakes.broken import Broken
from tests.fakes.instance import until
from tests.fakes.invariants import check_invariants, living
from tests.fakes.nursery import Nursery

pytestmark = pytest.mark.envoy

CLERK = """
import json, socket, subprocess, urllib.error, urllib.request

def ask(tool, argument):
    try: return agent.permission(tool, argument, wait_s=0)['verdict']
    except client.Refused as error: return error.status

def reserve(**estimate):
    try: return agent.settle(agent.reserve(**estimate)['id']) and 'done'
    except client.Refused as error: return error.status

def get(url):
    try: return urllib.request.urlopen(url, timeout=60).status
    except urllib.error.HTTPError as error: return error.code
    except OSError: return 0

def direct(port):
    with socket.socket() as sock:
        sock.settimeout(60)
        return sock.connect_ex(('127.0.0.1', port))

def write(path):
    try: open(path, 'w').close()
    except OSError as error: return type(error).__name__
    return 'written'

def read(path):
    try: return open(path).read(9)
    except OSError as error: return type(error).__name__

def hook(command, line=''):
    call = {'session_id': 's-1', 'hook_event_name': 'PreToolUse', 'tool_name': 'Bash', 'tool_input': {'command': command}}
    own = '/usr/bin/python3 -I -S "$WATCHFLOOR_TOYS/hook.py" claude-code "$WATCHFLOOR_AGENT_SOCKET" 120 || exit 2'
    return subprocess.run(['sh', '-c', line or own], input=json.dumps(call), text=True, capture_output=True).returncode

print('ready', flush=True)
for number in range(10 ** 6):
    name = f'order-{number}'
    while not os.path.exists(name):
        time.sleep(0.01)
    print(f'#{number}#', repr(eval(open(name).read())), flush=True)
"""
SPENDER = "print('ready', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nagent.usage(cost_usd=5)\ntime.sleep(600)"
EVERYTHING = ["shell(*)", "file(read:/**)", "file(write:/**)", "file(delete:/**)", "network(outbound:*)"]
HOST = "http://paste.example.com/"


class Clerk:
    """An agent in PROXIED mode that does what a file in its workspace says."""

    def __init__(self, it: Broken, context: str) -> None:
        self.it, self.context, self.orders = it, context, 0
        self.id = it.python(CLERK, network_mode="PROXIED", context_id=context, limits={"tool_calls": 1000}, tree_limits={"cost": 50})
        it.says(self.id, "ready")
        self.workspace = it.places.workspaces_dir / context

    def does(self, order: str) -> object:
        """What the expression comes to, there."""
        draft = self.workspace / ".order"
        draft.write_text(order)
        draft.chmod(0o644)
        draft.rename(self.workspace / f"order-{self.orders}")
        mark = f"#{self.orders}# "
        self.orders += 1
        said = self.it.says(self.id, mark).rpartition(mark)[2]
        return ast.literal_eval(said.partition("\n")[0])

    def thaw(self) -> None:
        self.it.api.thaw(self.id, reason="go on")
        self.it.state_becomes(self.id, "running")


@pytest.fixture(scope="module")
def it(nursery: Nursery) -> Iterator[Broken]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    made = Broken(folder, nursery, envoy=True)
    try:
        made.start()
        until(lambda: made.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def clerk(it: Broken) -> Clerk:
    return Clerk(it, "clerk")


@pytest.fixture(scope="module")
def outside() -> Iterator[socket.socket]:
    """What listens on the host, where no agent of a PROXIED session comes."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        made.settimeout(0)
        yield made


def stopped_by_policy(clerk: Clerk) -> None:
    assert clerk.does("ask('read_file', '/etc/shadow')") == "deny"
    assert clerk.does("ask('shell', 'sudo ls')") == "deny"


def stopped_by_the_hook(clerk: Clerk) -> None:
    assert clerk.does("hook('cat /etc/shadow')") == 2


def stopped_by_the_proxy(clerk: Clerk, outside: socket.socket) -> None:
    """Nothing of the host, and of the world what the proxy lets through: an unlisted host is refused, or there is no way at all."""
    assert clerk.does(f"get({HOST!r})") in (403, 503, 0)
    assert clerk.does(f"direct({outside.getsockname()[1]})") != 0
    with pytest.raises(BlockingIOError):
        outside.accept()


def stopped_by_the_budget(clerk: Clerk) -> None:
    refused = clerk.does("reserve(cost_usd=1000)")
    assert refused in (403, 503), refused


def stopped_by_the_file_system(clerk: Clerk) -> None:
    """The agent's own rights, and no change without a way back."""
    assert clerk.does("write('/etc/watchfloor-test')") in ("PermissionError", "OSError") and not Path("/etc/watchfloor-test").exists()
    assert clerk.does("read('/etc/shadow')") == "PermissionError"
    assert clerk.does("ask('write_file', '/etc/watchfloor-test')") != "allow"


def stopped_by_hand(clerk: Clerk, *, recorded: bool) -> None:
    """An operator's freeze holds; its way back works, or is refused where nothing can be recorded."""
    clerk.it.api.freeze(clerk.id, reason="look")
    clerk.it.state_becomes(clerk.id, "frozen")
    if recorded:
        clerk.thaw()
        return
    with pytest.raises(ConsoleError):
        clerk.it.api.thaw(clerk.id, reason="go on")
    assert clerk.it.agent(clerk.id).state == "frozen"


@contextmanager
def halted_in_the_end(it: Broken, context: str, until_then: ExitStack) -> Iterator[None]:
    """An agent that, once the block is over, uses five dollars of the one it has: it is ended, and that is proven.

    The proof may come once what ``until_then`` breaks is whole again."""
    agent = it.python(SPENDER, network_mode="NONE", context_id=context, limits={"cost": 1})
    try:
        it.says(agent, "ready")
        yield
        (it.places.workspaces_dir / context / "go").touch()
        until(lambda: agent not in living(it.places).values(), words="it is ended, whatever can be written")
        until_then.close()
        it.state_becomes(agent, "halted")
        until(lambda: [r for r in it.api.receipts().receipts if r.scope == agent and r.verified_zero], words="proven")
    finally:
        with suppress(ConsoleError):
            it.api.kill(agent, reason="the test")


def holds(clerk: Clerk, outside: socket.socket, *broken: str, recorded: bool = True) -> None:
    """Every layer but those that were broken stops what it is there for. Not ``recorded``: it stays frozen, until ``Clerk.thaw``."""
    if "policy" not in broken:
        stopped_by_policy(clerk)
    if "hook" not in broken:
        stopped_by_the_hook(clerk)
    if "budget" not in broken:
        stopped_by_the_budget(clerk)
    stopped_by_the_proxy(clerk, outside)
    stopped_by_the_file_system(clerk)
    stopped_by_hand(clerk, recorded=recorded)
    assert verify_file(clerk.it.places.audit_db).whole


def relay_of(clerk: Clerk) -> int:
    """The relay of its sandbox, by its cgroup."""
    for mount in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()):
        procs = mount / f"watchfloor-{clerk.it.places.instance_id}" / "relays" / clerk.id / "cgroup.procs"
        if procs.exists() and (found := procs.read_text().split()):
            return int(found[0])
    raise AssertionError("it has no relay")


def envoy_of(it: Broken) -> int:
    """The Envoy that this supervisor started; 0: none runs."""
    assert it.supervisor is not None
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and (folder / "comm").read_bytes() == b"envoy\n":
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z" and int(fields[1]) == it.supervisor.pid:
                    return int(folder.name)
    return 0


def cap(it: Broken, clerk: Clerk, usd: float) -> None:
    it.api.change_budget(b.BudgetBody(scope="tree", key=clerk.id, limits={"cost": usd}, reason="the test"))


@contextmanager
def no_more_bytes(it: Broken) -> Iterator[None]:
    """Every write of supervisor and guard beyond 100 bytes of a file fails (EFBIG), whatever was free."""
    assert it.supervisor is not None
    both = (it.supervisor.pid, it.living_guard())
    before = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in both]
    for pid, (_, hard) in zip(both, before, strict=True):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        for pid, limits in zip(both, before, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


@pytest.fixture(autouse=True)
def whole_again(request: pytest.FixtureRequest, it: Broken, clerk: Clerk) -> Iterator[None]:
    """What was broken is taken back, and work goes on."""
    yield
    if "kill" in request.node.name:
        return
    it.arm("")
    it.places.policy_file.write_bytes(policy_data.default_rules())
    if it.agent(clerk.id).state == "frozen":
        clerk.thaw()
    until(lambda: clerk.does("ask('read_file', 'note.txt')") == "allow", words="work goes on")


@pytest.mark.parametrize("broken", ["empty", "garbage", "gone"])
def test_rules_that_cannot_be_read_open_nothing(it: Broken, clerk: Clerk, outside: socket.socket, broken: str) -> None:
    if broken == "gone":
        it.places.policy_file.unlink()
    else:
        it.places.policy_file.write_bytes(b"" if broken == "empty" else b'{"permissions": {"allow": ["shell(*)"')
    assert clerk.does("ask('shell', 'ls')") == "allow"  # the last good ones hold, as they were
    holds(clerk, outside)


def test_rules_that_allow_everything_open_nothing_else(it: Broken, outside: socket.socket) -> None:
    clerk = Clerk(it, "trusted")
    it.places.policy_file.write_text(json.dumps({"permissions": {"allow": EVERYTHING, "unconfined": EVERYTHING}}))
    assert clerk.does("ask('shell', 'cat /etc/passwd')") == "allow" and clerk.does("hook('cat /etc/passwd')") == 0
    holds(clerk, outside, "policy", "hook")
    # A credential that the rules let be read costs the session its network, whatever they say of the network.
    assert it.agent(clerk.id).network_mode == "PROXIED" and clerk.does("ask('read_file', '/etc/shadow')") == "allow"
    assert it.agent(clerk.id).network_mode == "NONE" and clerk.does(f"get({HOST!r})") == 0
    it.api.kill(clerk.id, reason="the test")
    it.state_becomes(clerk.id, "killed")


def test_a_judge_that_cannot_judge_denies(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    file = it.state_dir / "sequences.yaml"
    file.write_text("[")
    assert clerk.does("ask('read_file', 'note.txt')") == "deny" and clerk.does("hook('ls')") == 2
    holds(clerk, outside)
    file.write_text("watchfloor_sequences: 1\n")


def test_a_relay_that_is_killed_is_no_network(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    os.kill(relay_of(clerk), signal.SIGKILL)
    assert clerk.does(f"get({HOST!r})") in (0, 403, 503)
    holds(clerk, outside)


def test_an_envoy_that_is_killed_is_no_network(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    before = envoy_of(it)
    os.kill(before, signal.SIGKILL)
    holds(clerk, outside)
    until(lambda: envoy_of(it) not in (0, before) and it.api.allowlist().envoy == "healthy", words="another runs")
    holds(clerk, outside)


def test_an_allowlist_that_is_damaged_lets_nothing_more_through(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    for file in sorted((it.state_dir / "egress").glob("?ds/**/*.json")):
        draft = file.with_name(".draft")
        draft.write_text("{" if file.name == "rds.json" else "")
        draft.rename(file)  # as Envoy watches for
    holds(clerk, outside)
    with pytest.raises(ConsoleError):
        it.api.import_allowlist(ImportBody(text="watchfloor_allowlist: 1\nentries: [{host: '*', reason: x, owner: y}]", reason="the test"))


def test_a_budget_that_was_lifted_lifts_nothing_else(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    cap(it, clerk, 1e6)
    assert clerk.does("reserve(cost_usd=1000)") == "done"
    holds(clerk, outside, "budget")
    cap(it, clerk, 50)


@pytest.mark.parametrize("point", ["ledger.commit", "audit.commit", "snapshot.kept"])
def test_what_cannot_be_recorded_is_not_allowed_and_what_stops_stops(it: Broken, clerk: Clerk, outside: socket.socket, point: str) -> None:
    recorded = point != "audit.commit"  # the way back from a freeze is on record first
    with ExitStack() as armed, halted_in_the_end(it, f"spends-{point.partition('.')[0]}", armed):
        armed.callback(it.arm, "")
        it.arm(f"{point}:raise")
        if point == "ledger.commit":
            assert clerk.does("reserve(cost_usd=1)") == 507  # what is spent is on disk before the call
        else:
            assert clerk.does("ask('write_file', 'note.txt')") == "deny"  # record and image before the write
        holds(clerk, outside, recorded=recorded)
    if not recorded:
        clerk.thaw()


def test_a_disk_that_takes_nothing_allows_nothing(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    with ExitStack() as full, halted_in_the_end(it, "spends-full", full):
        full.enter_context(no_more_bytes(it))
        assert clerk.does("ask('write_file', 'note.txt')") == "deny"
        with pytest.raises(ConsoleError):
            it.launch("sleep", "300")
        holds(clerk, outside, recorded=False)
    clerk.thaw()


def test_a_workspace_that_is_read_only_stops_no_other_layer(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    owner, mode = clerk.workspace.stat(), clerk.workspace.stat().st_mode & 0o7777
    os.chown(clerk.workspace, 0, 0)
    clerk.workspace.chmod(0o555)
    try:
        assert clerk.does("write('note.txt')") == "PermissionError"
        holds(clerk, outside)
    finally:
        clerk.workspace.chmod(mode)
        os.chown(clerk.workspace, owner.st_uid, owner.st_gid)


def test_a_hook_that_is_broken_blocks(clerk: Clerk, outside: socket.socket) -> None:
    file = clerk.workspace / "hook.py"
    line = HookCommand("/usr/bin/python3", file, "claude-code", Path("/SOCKET"), 120).line()
    order = f"hook('ls', {line!r}.replace('/SOCKET', os.environ['WATCHFLOOR_AGENT_SOCKET']))"
    file.write_bytes(SOURCE.read_bytes())
    file.chmod(0o644)
    assert clerk.does(order) == 0
    file.chmod(0)
    assert clerk.does(order) == 2
    file.chmod(0o644)
    file.write_text("import os; (")
    assert clerk.does(order) == 2
    file.unlink()
    assert clerk.does(order) == 2
    holds(clerk, outside)


def test_a_program_that_nobody_judges_is_held_by_all_the_others(it: Broken, clerk: Clerk, outside: socket.socket) -> None:
    """The worst of a broken hook: no call is asked about any more."""
    with halted_in_the_end(it, "spends-unjudged", ExitStack()):
        holds(clerk, outside, "policy", "hook")


def test_z_whatever_was_broken_the_kill_is_proven(it: Broken, clerk: Clerk) -> None:
    it.places.policy_file.write_text(json.dumps({"permissions": {"allow": EVERYTHING, "unconfined": EVERYTHING}}))
    it.arm("ledger.commit:raise")
    os.kill(envoy_of(it), signal.SIGKILL)
    kill_id = it.press_guard()
    until(lambda: not living(it.places), words="nobody is left")
    it.arm("")
    assert it.receipt_of(kill_id).verified_zero
    check_invariants(it.places, killed=True)
    with pytest.raises(ConsoleError, match="stopped|killed"):
        it.launch("sleep", "300")
