"""The guard's socket for members of Watchfloor's groups: responders and operators kill, and nobody does anything else."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.domain.roles.rights import Right
from console.killswitch.guard.operations import MEMBERS_MAY
from tests.fakes.guard_world import NOBODY, SLEEP, GuardWorld, until
from tests.fakes.members import GROUPS, OTHER, UID, as_member, group_lines

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="accounts and groups are changed: this needs root")
GUARD = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x20000) == 0  # CLONE_NEWNS: the group file of the test is nobody else's
assert libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) == 0
assert libc.mount({file!r}, b"/etc/group", None, 0x1000, None) == 0
from console.killswitch.__main__ import main
sys.exit(main([*sys.argv[1:], "--members-dir={folder}"]))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GuardWorld, Path]]:
    home = tmp_path_factory.mktemp("g")
    folder = Path(tempfile.mkdtemp(prefix="wf-members-"))
    folder.chmod(0o755)
    (home / "group").write_text(group_lines())
    with contextlib.closing(GuardWorld(home / "w", heartbeat_s=600.0)) as world:
        world.state.mkdir()
        yield world.start_by(GUARD.format(file=str(home / "group").encode(), folder=folder)), folder / "guard.sock"
    shutil.rmtree(folder)


@pytest.fixture
def sock(made: tuple[GuardWorld, Path]) -> Iterator[Path]:
    yield made[1]
    made[0].clear()


@pytest.fixture
def world(made: tuple[GuardWorld, Path], sock: Path) -> GuardWorld:
    return made[0]


def said(sock: Path, **message: Any) -> Any:
    """The guard's answer to one line."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(60)
        one.connect(str(sock))
        with contextlib.suppress(BrokenPipeError):
            one.sendall(json.dumps(message).encode() + b"\n")
        return json.loads(one.makefile().readline())


@pytest.mark.parametrize("role", ["responder", "operator"])
def test_a_responder_and_an_operator_kill_with_no_supervisor_and_the_guard_names_the_account(
    world: GuardWorld, sock: Path, role: str
) -> None:
    world.agent("a-1", *SLEEP, env={**os.environ, **NOBODY})
    answer = as_member(lambda: said(sock, op="press", scope=["a-1"], reason="r", by="root (uid 0)"), role)
    assert answer["ok"], answer
    assert world.receipt(answer["kill_id"])["verified_zero"]
    assert world.receipt(answer["kill_id"])["by"] == f"uid {UID}"


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_who_only_reads_sees_the_guard_and_kills_nothing(world: GuardWorld, sock: Path, role: str) -> None:
    world.agent("a-1", *SLEEP, env={**os.environ, **NOBODY})
    assert as_member(lambda: said(sock, op="status"), role)["agents"] == 1
    answer = as_member(lambda: said(sock, op="press", scope="all", reason="r"), role)
    assert (answer["ok"], answer["kind"]) == (False, "Denied") and "the role responder" in answer["error"]
    assert said(sock, op="status")["agents"] == 1 and not said(sock, op="status")["latched"]


@pytest.mark.parametrize("op", sorted({*MEMBERS_MAY, "freeze", "thaw", "freezing", "unlatch", "prove", "quit", "adopt", "passphrase"}))
def test_nothing_of_the_guard_but_the_kill_is_open_to_members(sock: Path, op: str) -> None:
    answer = as_member(lambda: said(sock, op=op, scope=["a-none"], kill_id="k-none", hold_id="none"), *_roles_below(op))
    if op in MEMBERS_MAY and MEMBERS_MAY[op] is Right.READ:
        assert answer["ok"] or answer["kind"] == "NotFound", answer
    elif op in MEMBERS_MAY:
        assert answer["kind"] == "Denied" and "the role responder" in answer["error"], answer
    else:  # with every role there is
        assert answer["kind"] in ("Denied", "UsageProblem") and ("Only root" in answer["error"] or "no operation" in answer["error"]), (
            answer
        )


def test_an_account_in_no_group_and_a_set_group_id_program_are_turned_away(sock: Path) -> None:
    for gid, groups in ((None, []), (None, [OTHER, 0]), (GROUPS["operator"], [OTHER])):
        answer = as_member(lambda: said(sock, op="press", scope="all"), gid=gid, groups=groups)  # noqa: B023
        assert answer["kind"] == "Denied" and "watchfloor-responder" in answer["error"]


def test_a_process_in_an_agents_cgroup_is_refused_whatever_its_groups_are(world: GuardWorld, sock: Path) -> None:
    agent = world.agent("a-1", *SLEEP, env={**os.environ, **NOBODY})
    leaf = Path("/sys/fs/cgroup") / Path(f"/proc/{agent.pid}/cgroup").read_text().rpartition(":")[2].strip().lstrip("/")
    leaf = next(p / leaf.relative_to("/sys/fs/cgroup") for p in _cgroup2() if (p / leaf.relative_to("/sys/fs/cgroup")).is_dir())
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
            os.setgroups([GROUPS["operator"]])
            os.setresuid(UID, UID, UID)
            os.write(write, json.dumps(said(sock, op="press", scope="all")).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert answer["error"] == "An agent has no say here."


def test_a_responder_thaws_nothing_that_another_account_holds(world: GuardWorld, sock: Path) -> None:
    world.agent("a-1", *SLEEP, env={**os.environ, **NOBODY})
    roots = said(world.run / "guard.sock", op="hold", by="root")["hold_id"]  # its connection ends: the agents stay frozen
    other = as_member(lambda: said(sock, op="hold"), "responder", uid=UID + 1)["hold_id"]
    for hold_id in (roots, other):
        answer = as_member(lambda: said(sock, op="let_go", hold_id=hold_id, by="uid 0"), "responder")  # noqa: B023
        assert (answer["ok"], answer["kind"]) == (False, "Denied") and "the role operator" in answer["error"], answer
    seen = said(sock, op="status")
    assert {one["hold_id"] for one in seen["holds"]} == {roots, other} and seen["frozen"] == {"a-1": ["hold"]}
    own = as_member(lambda: said(sock, op="hold"), "responder")["hold_id"]
    assert as_member(lambda: said(sock, op="let_go", hold_id=own), "responder") == {"ok": True, "thawed": 0}
    assert as_member(lambda: said(sock, op="let_go", hold_id=roots), "operator")["ok"], "who may thaw may let go"
    assert as_member(lambda: said(sock, op="let_go", hold_id=other), "responder", uid=UID + 1) == {"ok": True, "thawed": 1}


def test_a_responder_does_not_stop_the_clock_of_roots_hold(world: GuardWorld, sock: Path) -> None:
    world.agent("a-1", *SLEEP, env={**os.environ, **NOBODY})
    held = world.operator.call("hold", by="root")
    answer = as_member(lambda: said(sock, op="let_go", hold_id=held["hold_id"]), "responder")
    assert answer["kind"] == "Denied" or "it ended in a kill" in answer["error"]
    until(lambda: world.operator.status()["latched"], "the hold ends in a kill")
    assert world.receipt(held["kill_id"])["by"] == "root"


def test_the_account_of_agents_is_refused_whatever_its_groups_are(sock: Path) -> None:
    """A process of that account that left its cgroup: it is no member."""
    for op in ("press", "status", "hold"):
        answer = as_member(lambda: said(sock, op=op, scope="all"), *GROUPS, uid=65534)  # noqa: B023
        assert (answer["ok"], answer["error"]) == (False, "An agent has no say here."), answer
    assert not said(sock, op="status")["latched"]


def test_a_person_whose_own_agent_is_held_here_may_stop_and_releases_no_hold_of_others(world: GuardWorld, sock: Path) -> None:
    person = UID + 5
    world.supervisor.call("ticket", agent_id="a-1", kind="process", control_level="managed", uid=person)
    roots = said(world.run / "guard.sock", op="hold", by="root")["hold_id"]
    answer = as_member(lambda: said(sock, op="let_go", hold_id=roots), *GROUPS, uid=person)
    assert answer["kind"] == "Denied" and {one["hold_id"] for one in said(sock, op="status")["holds"]} == {roots}
    assert as_member(lambda: said(sock, op="press", scope="all"), *GROUPS, uid=person)["ok"]
    assert said(sock, op="status")["latched"]


def test_one_account_cannot_take_the_room_of_another(sock: Path) -> None:
    def crowd() -> Any:
        kept = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for one in kept:
            one.connect(str(sock))
        return said(sock, op="status") | {"n": len(kept)}

    assert as_member(crowd, "viewer")["kind"] == "TooMany"
    assert as_member(lambda: said(sock, op="status"), "viewer", uid=UID + 1)["ok"]


def _roles_below(op: str) -> tuple[str, ...]:
    """Roles that do not kill; for what no role may, all of them."""
    return ("viewer", "auditor") if op in MEMBERS_MAY else tuple(GROUPS)


def _cgroup2() -> list[Path]:
    return [Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
