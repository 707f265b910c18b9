"""Members of Watchfloor's groups at a real supervisor: what each role may, by the kernel's word on the peer, over raw HTTP."""

from __future__ import annotations

import array
import contextlib
import http.client
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.endpoints import ENDPOINTS
from console.domain.roles.rights import ALLOWS, Right, Role
from tests.fakes.instance import until
from tests.fakes.members import GROUPS, OTHER, UID, HostInstance, as_member, asked

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="accounts and groups are changed: this needs root")
ROLES = [role.value for role in Role]
LADDER = {"scope": {"reach": "all"}, "reason": "test"}
BODIES: dict[str, list[tuple[Right, str, Any]]] = {
    "POST /api/kill-switch": [
        (Right.KILL, "/api/kill-switch", {"action": "activate", "scope": {"reach": "agent", "target": "a-none"}, "reason": "test"}),
        (Right.REARM, "/api/kill-switch", {"action": "rearm", "reason": "test"}),
        (Right.REARM, "/api/kill-switch", {"action": "deactivate", "reason": "test"}),
    ],
    "POST /api/ladder": [
        *((Right.KILL, "/api/ladder", {**LADDER, "action": word}) for word in ("freeze", "isolate")),
        *((Right.OPERATE, "/api/ladder", {**LADDER, "action": word}) for word in ("thaw", "reconnect")),
    ],
    "POST /api/agents/{id}/{verb:str}": [
        *((Right.KILL, f"/api/agents/a-none/{word}", {}) for word in ("freeze", "isolate")),
        *((Right.OPERATE, f"/api/agents/a-none/{word}", {}) for word in ("thaw", "reconnect")),
        (Right.ADMINISTER, "/api/agents/a-none/anything", {}),
    ],
    "POST /api/contexts/{id}/{verb:str}": [
        (Right.OPERATE, "/api/contexts/c-none/hold", {}),
        (Right.RELEASE, "/api/contexts/c-none/release", {}),
        (Right.ADMINISTER, "/api/contexts/c-none/anything", {}),
    ],
}
"""Of routes that do several things: what each body needs."""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostInstance]:
    with HostInstance(tmp_path_factory.mktemp("m") / "state") as made:
        assert isinstance(made, HostInstance)
        yield made


@pytest.fixture
def host(lasting: HostInstance) -> Iterator[HostInstance]:
    """The instance of the module; agents that a test started end with it."""
    yield lasting
    for agent in [a.id for a in lasting.api.fleet().agents if a.state in ("running", "frozen", "starting")]:
        lasting.api.kill(agent, reason="end of the test")


def requests() -> list[tuple[str, Right, str, str, Any]]:
    found: list[tuple[str, Right, str, str, Any]] = []
    for row in ENDPOINTS:
        name, right, method, path = row.name, row.right, row.method, row.path
        if isinstance(right, Right):
            filled = path
            for part in ("{id}", "{seq}", "{agent}", "{program}"):
                filled = filled.replace(part, "none")
            found.append((name, right, method, filled, None if method == "GET" else {}))
        else:
            found += [(name, needs, method, filled, body) for needs, filled, body in BODIES[name]]
    return found


def is_refused(answer: tuple[int, Any]) -> bool:
    status, said = answer
    return status == 403 and isinstance(said, dict) and ("This needs the role" in said["error"] or "Only root may" in said["error"])


@pytest.mark.parametrize("role", ROLES)
def test_every_route_that_a_role_does_not_allow_is_refused_in_one_sentence(host: HostInstance, role: str) -> None:
    forbidden = [row for row in requests() if row[1] not in ALLOWS[Role(role)]]
    assert len(forbidden) > 10
    answers = as_member(lambda: [asked(host.sock, method, path, body) for _, _, method, path, body in forbidden], role)
    served = [name for (name, *_), answer in zip(forbidden, answers, strict=True) if not is_refused(answer)]
    assert not served
    assert all(said["exit_code"] == 4 and said["remedy"] for _, said in answers)


@pytest.mark.parametrize("role", ROLES)
def test_every_read_is_served_to_every_role(host: HostInstance, role: str) -> None:
    reads = [row for row in requests() if row[1] is Right.READ and row[3] != "/api/events"]
    answers = as_member(lambda: [asked(host.sock, method, path, body) for _, _, method, path, body in reads], role)
    assert not [name for (name, *_), answer in zip(reads, answers, strict=True) if is_refused(tuple(answer))]


def test_status_names_the_roles_and_rights_of_the_caller(host: HostInstance) -> None:
    def look() -> Any:
        return asked(host.sock, "GET", "/api/status")[1]

    seen = as_member(look, "responder", "auditor")
    assert (seen["your_roles"], seen["your_rights"]) == (["auditor", "responder"], ["export", "kill", "read"])
    assert (look()["your_roles"], "administer" in look()["your_rights"]) == ([], True)  # root, through the same socket


def test_the_command_line_of_a_member_names_the_instance_and_the_files_that_it_could_not_check(host: HostInstance) -> None:
    said = host.told("status", roles=("viewer",))
    assert f"instance {host.places.instance_id}" in said.stdout and "your role: viewer" in said.stdout
    assert json.loads(host.told("status", "--json", roles=("viewer",)).stdout)["instance"] == host.places.instance_id
    said = host.told("config", "check", roles=("viewer",))
    assert said.returncode == 0 and said.stdout == "No fault was found in the files that this account can read.\n"
    assert "only root reads it: /var/lib/watchfloor/settings.json" in said.stderr and "sudo watchfloor config check" in said.stderr
    told = json.loads(host.told("config", "check", "--json", roles=("viewer",)).stdout)
    assert told == {"schema_version": 1, "ok": True, "faults": [], "unread": ["/var/lib/watchfloor/settings.json"]}


def test_an_account_in_no_group_is_told_which_groups_there_are(host: HostInstance) -> None:
    for groups in ([], [OTHER], [0], [65534]):
        status, said = as_member(lambda: asked(host.sock, "GET", "/api/status"), groups=groups)
        assert status == 403 and "watchfloor-operator" in said["error"] and said["exit_code"] == 4


def test_roots_own_socket_stays_roots(host: HostInstance) -> None:
    def knock() -> str:
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(str(host.places.operator_sock))
            except PermissionError:
                return "refused"
        return "connected"

    assert as_member(knock, "operator") == "refused"


def test_a_responder_kills_and_freezes_and_starts_nothing(host: HostInstance) -> None:
    agent = host.launch("sleep", "1000")

    def act() -> list[Any]:
        launch = asked(host.sock, "POST", "/api/agents", {"argv": ["sleep", "1"]})
        frozen = asked(host.sock, "POST", f"/api/agents/{agent}/freeze", {"reason": "r"})
        thawed = asked(host.sock, "POST", f"/api/agents/{agent}/thaw", {"reason": "r"})
        killed = asked(host.sock, "POST", f"/api/agents/{agent}/kill", {"reason": "r"})
        return [launch, frozen, thawed, killed]

    launch, frozen, thawed, killed = as_member(act, "responder")
    assert is_refused(tuple(launch)) and is_refused(tuple(thawed))
    assert frozen[0] == 200 and frozen[1]["agents"] == [agent]
    assert killed[0] == 200 and killed[1]["verified_zero"] is True


def test_what_an_operator_starts_runs_under_the_agents_account_never_as_root_or_as_the_operator(host: HostInstance) -> None:
    status, said = as_member(
        lambda: asked(host.sock, "POST", "/api/agents", {"argv": ["sh", "-c", "id -u; id -G; echo over; sleep 1000"]}), "operator"
    )
    assert status == 200
    uid, groups = host.says(said["id"], "over").splitlines()[:2]
    assert int(uid) == 65534 and not {0, *GROUPS.values()} & {int(one) for one in groups.split()}


@pytest.mark.parametrize("claim", [{"uid": 0}, {"user": "root"}, {"gid": 0}])
def test_no_field_of_a_launch_names_an_account(host: HostInstance, claim: dict[str, object]) -> None:
    body = {"argv": ["sh", "-c", "id -u; sleep 1000"], **claim}
    status, said = as_member(lambda: asked(host.sock, "POST", "/api/agents", body), "operator")
    assert status == 400 or host.says(said["id"], "\n").splitlines()[0] == "65534"


def test_each_refused_change_is_a_record_of_the_account_and_accepted_ones_name_it(host: HostInstance) -> None:
    who = UID + 1

    def act() -> list[Any]:
        return [
            asked(host.sock, "POST", "/api/approvals", {"id": "x", "verdict": "approve"}),
            asked(host.sock, "POST", "/api/kill-switch", {"action": "rearm", "reason": "me"}),
            asked(host.sock, "POST", "/api/agents/a-none/kill", {"reason": "r"}),
        ]

    as_member(act, "responder", uid=who)

    def rows() -> list[Any]:
        return [row for row in host.api.audit().rows if row.actor == f"operator:{who}" and row.kind == "route.refused"]

    until(lambda: len(rows()) == 2, words="two records")
    data = [row.data for row in rows()]
    assert {one["needs"] for one in data} == {"operate", "rearm"}
    assert all((one["uid"], one["login"], one["login_uid"]) == (who, "", -1) and one["exe"] for one in data)


CLAIMS = {
    "x-watchfloor-uid": "0",
    "x-watchfloor-groups": "61302",
    "x-forwarded-user": "root",
    "watchfloor.uid": "0",
    "cookie": "role=operator",
}


def test_what_a_caller_says_of_itself_gives_no_role(host: HostInstance) -> None:
    body = {"argv": ["true"], "role": "operator", "uid": 0, "groups": [GROUPS["operator"]], "by": "root"}
    assert is_refused(tuple(as_member(lambda: asked(host.sock, "POST", "/api/agents", body, CLAIMS), "viewer")))
    assert as_member(lambda: asked(host.sock, "GET", "/api/status", None, CLAIMS), "viewer")[1]["your_roles"] == ["viewer"]


def test_an_operators_token_gives_a_viewer_nothing(host: HostInstance) -> None:
    token = asked(host.places.operator_sock, "POST", "/api/tokens", {"name": "test", "reason": "test"})[1]
    claim = {"authorization": f"Bearer {token.get('token', 'x')}"}
    assert is_refused(tuple(as_member(lambda: asked(host.sock, "POST", "/api/agents", {"argv": ["true"]}, claim), "viewer")))


@pytest.mark.parametrize(
    "body",
    [
        b'{"action": "kill", "action": "thaw", "scope": {"reach": "all"}, "reason": "r"}',
        b'{"action": "thaw", "action": "kill", "scope": {"reach": "host"}, "reason": ""}',
        b'{"action": "kill ", "scope": {"reach": "all"}}',
        b'{"ACTION": "thaw", "action": "thaw", "scope": {"reach": "all"}}',
        b"[]",
        b"\xff",
    ],
)
def test_a_body_that_says_two_things_is_read_once_the_same_way(host: HostInstance, body: bytes) -> None:
    """A responder who hides a thaw behind a kill: the right is judged on the message that the handler gets."""
    agent = host.launch("sleep", "1000")
    asked(host.places.operator_sock, "POST", f"/api/agents/{agent}/freeze", {"reason": "r"})
    as_member(lambda: asked(host.sock, "POST", "/api/ladder", body), "responder")
    assert host.agent(agent).state != "running"  # still frozen, or killed: never thawed


def test_a_set_group_id_program_gives_no_role(host: HostInstance) -> None:
    """The group of a set-group-ID program is the process's own group, not one of its supplementary ones."""
    status, _ = as_member(lambda: asked(host.sock, "GET", "/api/status"), gid=GROUPS["operator"], groups=[OTHER])
    assert status == 403


def test_the_agents_account_is_refused_whatever_its_groups_are(host: HostInstance) -> None:
    assert as_member(lambda: asked(host.sock, "GET", "/api/status"), "operator", uid=65534)[0] == 403


def test_a_process_in_an_agents_cgroup_is_refused_whatever_its_groups_are(host: HostInstance) -> None:
    agent = host.launch("sleep", "1000")
    line = Path(f"/proc/{host.agent_pid(agent)}/cgroup").read_text()
    folder = next(Path(p) for p in _mounts() if (Path(p) / line.rpartition(":")[2].strip().lstrip("/") / "cgroup.procs").exists())
    procs = folder / line.rpartition(":")[2].strip().lstrip("/") / "cgroup.procs"
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            procs.write_text(str(os.getpid()))
            os.setgroups([GROUPS["operator"]])
            os.setresuid(UID, UID, UID)
            os.write(write, str(asked(host.sock, "GET", "/api/status")[0]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"403"
    os.waitpid(child, 0)


def _mounts() -> list[str]:
    return [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]


def test_a_connection_that_a_member_hands_to_another_process_is_cut(host: HostInstance) -> None:
    """An operator opens the socket and passes it on: the kernel names the writer, who has no role by it."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setgroups([GROUPS["operator"]])
            os.setresuid(UID, UID, UID)
            made = socket.socket(socket.AF_UNIX)
            made.connect(str(host.sock))
            theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [made.fileno()]))])
            time.sleep(60)
        os._exit(0)

    def use() -> str:
        _, told, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
        [(_, _, data)] = told
        connection = http.client.HTTPConnection("watchfloor", timeout=30)
        connection.sock = socket.socket(fileno=array.array("i", data)[0])
        try:
            connection.request("POST", "/api/agents", json.dumps({"argv": ["true"]}))
            return str(connection.getresponse().status)
        except (http.client.HTTPException, OSError) as error:
            return type(error).__name__

    said = as_member(use, "viewer")
    os.kill(child, 9)
    os.waitpid(child, 0)
    ours.close()
    theirs.close()
    assert said in ("RemoteDisconnected", "ConnectionResetError", "BrokenPipeError")


def test_what_a_program_of_root_writes_into_a_members_connection_is_not_roots(host: HostInstance) -> None:
    """A viewer begins a request and hands the connection to a set-user-ID program, which is made to write the rest of it."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setgroups([GROUPS["viewer"]])
            os.setresuid(UID, UID, UID)
            made = socket.socket(socket.AF_UNIX)
            made.connect(str(host.sock))
            made.sendall(b"GET /api/status HTTP/1.1\r\nHost: watchfloor\r\n")
            theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [made.fileno()]))])
            time.sleep(60)
        os._exit(0)
    _, told, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    [(_, _, data)] = told
    with socket.socket(fileno=array.array("i", data)[0]) as held:
        held.settimeout(30)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            held.sendall(b"\r\n")  # this process is root
        try:
            said = held.recv(100)
        except ConnectionResetError:
            said = b""
    os.kill(child, 9)
    os.waitpid(child, 0)
    ours.close()
    theirs.close()
    assert said == b"", "it was cut, not answered"


def test_one_account_cannot_take_all_connections(host: HostInstance) -> None:
    def crowd() -> list[int]:
        kept = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for one in kept:
            one.connect(str(host.sock))
        return [asked(host.sock, "GET", "/api/status")[0], len(kept)]

    def crowd_and_other() -> int:
        return asked(host.sock, "GET", "/api/status")[0]

    assert as_member(crowd, "viewer", uid=UID + 2)[0] == 429
    assert as_member(crowd_and_other, "viewer", uid=UID + 3) == 200
