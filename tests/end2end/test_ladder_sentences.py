"""The ladder over every scope, on a real supervisor, guard and Envoy: each rung at once, verified, and back again."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from console.api.ladder import LadderBody, LadderPreview, ScopeBody
from console.api.messages import ActView
from console.domain.errors import Conflict, ConsoleError, Killed, NotFound, UsageProblem
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

LIVE = ("starting", "running", "waiting", "frozen", "over_budget", "alive_after_kill")
PORTAL = (
    "import socket\n"
    "def portal():\n"
    "  with socket.socket() as s: s.settimeout(3); return s.connect_ex(('127.0.0.1', 3128))\n"
    "last = None\n"
    "while True:\n"
    "  now = portal()\n"
    "  if now != last: print('portal', now, flush=True); last = now\n"
    "  time.sleep(0.05)\n"
)
"""Prints the portal's state whenever it changes: 0 open, 111 closed (ECONNREFUSED)."""


@pytest.fixture(scope="module")
def standing() -> Iterator[Instance]:
    with standing_instance(envoy=True) as instance:
        yield instance


def body(action: str, reach: str, target: str = "", reason: str = "test") -> LadderBody:
    return LadderBody.read({"action": action, "scope": {"reach": reach, "target": target}, "reason": reason})


def act(it: Instance, action: str, reach: str, target: str = "") -> ActView:
    return it.api.ladder(body(action, reach, target))


def preview(it: Instance, action: str, reach: str, target: str = "") -> LadderPreview:
    return it.api.preview(body(action, reach, target))


def portals(it: Instance, agent: str) -> list[str]:
    return [line.split()[1] for line in it.output(agent).splitlines() if line.startswith("portal ")]


def sees(it: Instance, agent: str, *states: str) -> None:
    until(lambda: portals(it, agent) == list(states), words=lambda: f"the portal of {agent} is {states}, was {portals(it, agent)}")


def test_a_session_is_frozen_and_thawed_with_those_who_left_it_for_one_of_their_own(it: Instance) -> None:
    root = it.python("print(agent.spawn(['sleep', '300'], context_id='hide-out')['id'], flush=True); time.sleep(300)", context_id="work")
    child = it.says(root, "a-").strip()
    other = it.launch("sleep", "300", context_id="elsewhere")
    seen = preview(it, "freeze", "session", "work")
    assert {a.id for a in seen.acts} == {root, child} and seen.undone_by == "thaw"
    assert set(act(it, "freeze", "session", "work").agents) == {root, child}
    assert [it.agent(a).state for a in (root, child, other)] == ["frozen", "frozen", "running"]
    assert set(act(it, "thaw", "session", "work").agents) == {root, child}
    assert {it.agent(a).state for a in (root, child)} == {"running"}


def test_everything_is_frozen_and_thawed_and_nothing_is_latched(it: Instance) -> None:
    agents = {it.launch("sleep", "300") for _ in range(4)}
    assert set(act(it, "freeze", "all").agents) == agents
    assert {it.agent(a).state for a in agents} == {"frozen"}
    late = it.launch("sleep", "300")  # a freeze does not latch
    assert set(act(it, "freeze", "host").excluded) == agents
    assert set(act(it, "thaw", "host").agents) == agents | {late}
    assert not it.api.fleet().killed


@pytest.mark.envoy
def test_an_isolated_agent_has_no_portal_at_once_and_has_it_back_after_reconnect(it: Instance) -> None:
    agent = it.python(PORTAL, network_mode="PROXIED")
    sees(it, agent, "0")
    assert preview(it, "isolate", "agent", agent).egress == 1
    assert it.api.isolate(agent, reason="it leaks").agents == [agent]
    view = it.agent(agent)
    assert (view.network_mode, view.network_enforced, "it leaks" in view.isolated) == ("NONE", True, True)
    sees(it, agent, "0", "111")
    with pytest.raises(Conflict, match="isolated already"):
        it.api.isolate(agent)
    assert it.api.reconnect(agent, reason="mended").agents == [agent]
    sees(it, agent, "0", "111", "0")
    view = it.agent(agent)
    assert (view.network_mode, view.network_enforced, view.isolated) == ("PROXIED", True, "")
    kinds = [r.kind for r in it.api.audit(limit=50).rows if r.kind in ("isolate", "reconnect")]
    assert kinds[:2] == ["reconnect", "isolate"]


@pytest.mark.envoy
def test_a_child_of_an_isolated_agent_has_no_network_until_both_are_reconnected(it: Instance) -> None:
    parent = it.python(
        "while not os.path.exists('go'): time.sleep(0.05)\n"
        f"print(agent.spawn(['python3', '-c', 'import os, time\\n' + {PORTAL!r}])['id'], flush=True); time.sleep(300)",
        network_mode="PROXIED",
        context_id="nest",
    )
    act(it, "isolate", "tree", parent)
    (it.places.workspaces_dir / "nest" / "go").touch()
    child = it.says(parent, "a-").strip().splitlines()[-1]
    sees(it, child, "111")
    assert it.agent(child).isolated
    assert set(act(it, "reconnect", "tree", parent).agents) == {parent, child}
    sees(it, child, "111", "0")


@pytest.mark.envoy
def test_whoever_joins_an_isolated_session_has_no_network_and_one_agent_alone_cannot_be_reconnected(it: Instance) -> None:
    first = it.python(PORTAL, network_mode="PROXIED", context_id="quarantine")
    sees(it, first, "0")
    act(it, "isolate", "session", "quarantine")
    late = it.python(PORTAL, network_mode="PROXIED", context_id="quarantine")
    sees(it, late, "111")
    with pytest.raises(Conflict, match="reconnect the session"):
        it.api.reconnect(late)
    assert set(act(it, "reconnect", "session", "quarantine").agents) == {first, late}
    sees(it, late, "111", "0")
    sees(it, first, "0", "111", "0")


@pytest.mark.envoy
def test_a_reconnection_gives_nothing_that_the_sessions_data_forbids(it: Instance) -> None:
    agent = it.python(
        "while not os.path.exists('now'): time.sleep(0.05)\nagent.private_data('payroll', 'SECRET'); print('registered', flush=True)\n"
        + PORTAL,
        network_mode="PROXIED",
        context_id="payroll",
    )
    act(it, "isolate", "agent", agent)
    (it.places.workspaces_dir / "payroll" / "now").touch()
    it.says(agent, "registered")
    assert "without network" in preview(it, "reconnect", "agent", agent).acts[0].why
    act(it, "reconnect", "agent", agent)
    sees(it, agent, "111")
    assert (it.agent(agent).isolated, it.agent(agent).network_mode) == ("", "NONE")


@pytest.mark.envoy
def test_an_isolation_outlives_the_supervisor_and_its_crash(state_dir: Path) -> None:
    with Instance(state_dir, envoy=True) as it:
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        agent = it.python(PORTAL, network_mode="PROXIED", context_id="held")
        sees(it, agent, "0")
        act(it, "isolate", "session", "held")
        it.stop(signal.SIGKILL)
        it.start()
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        assert it.agent(agent).isolated
        until(lambda: it.agent(agent).network_enforced)
        late = it.python(PORTAL, network_mode="PROXIED", context_id="held")
        sees(it, late, "111")
        sees(it, agent, "0", "111")
        assert set(act(it, "reconnect", "session", "held").agents) == {agent, late}
        sees(it, agent, "0", "111", "0")


def test_what_cannot_be_isolated_is_said_and_what_it_starts_has_no_network(it: Instance) -> None:
    agent = it.python(
        "while not os.path.exists('go'): time.sleep(0.05)\n"
        "print(agent.spawn(['python3', '-c', 'import socket; print(sorted(n for _, n in socket.if_nameindex()))'])['id'], flush=True)\n"
        "time.sleep(300)",
        context_id="open",
    )
    seen = preview(it, "isolate", "agent", agent)
    assert "shares the host's network" in seen.best_effort[0].why
    answer = it.api.isolate(agent)
    assert answer.agents == [] and "host's network" in answer.failed[agent]
    assert (it.agent(agent).network_mode, it.agent(agent).network_enforced) == ("FULL", False)
    (it.places.workspaces_dir / "open" / "go").touch()
    child = it.says(agent, "a-").strip().splitlines()[-1]
    assert it.says(child, "]").strip() == "['lo']"


def crowded(it: Instance, session: str) -> bool:
    return len([a for a in it.api.fleet().agents if a.session == session]) > 1


def test_a_kill_of_a_session_in_the_middle_of_its_spawns_leaves_nobody_of_it_and_all_others(it: Instance) -> None:
    spawner = (
        "import threading\n"
        "def go():\n"
        "  try: agent.spawn(['sleep', '300'], context_id='far-%d' % os.getpid() if n % 2 else None)\n"
        "  except client.Refused: pass\n"
        "for n in range(6): threading.Thread(target=go).start(); time.sleep(0.05)\n"
        "time.sleep(300)"
    )
    bystander = it.launch("sleep", "300", context_id="bystander")
    for round_ in range(3):
        session = f"doomed-{round_}"
        root = it.python(spawner, context_id=session)
        threading.Event().wait(0.1 * round_)
        stop = threading.Event()

        def join(session: str = session, stop: threading.Event = stop) -> None:
            while not stop.is_set():
                with suppress(ConsoleError):
                    it.launch("sleep", "300", context_id=session)
                stop.wait(0.05)

        joiner = threading.Thread(target=join)
        joiner.start()
        until(partial(crowded, it, session))
        receipt = it.api.kill_scope(ScopeBody(reach="session", target=session), "race")
        stop.set()
        joiner.join()
        assert receipt.verified_zero and receipt.complete
        struck = {t.agent_id for t in receipt.targets}
        assert root in struck
        agents = it.api.fleet().agents
        assert {a.state for a in agents if a.id in struck} <= {"killed"}
        assert {a.state for a in agents if a.parent_id == root and a.state in LIVE} == set()
        with suppress(NotFound):  # those who joined after the receipt
            it.api.kill_scope(ScopeBody(reach="session", target=session), "rest")
    assert it.agent(bystander).state == "running"
    assert not it.api.fleet().killed


def test_a_kill_of_the_host_ends_everything_here_and_latches_nothing(it: Instance) -> None:
    agents = {it.launch("sleep", "300") for _ in range(5)}
    receipt = it.api.kill_scope(ScopeBody(reach="host"), "clean")
    assert receipt.verified_zero and {t.agent_id for t in receipt.targets} == agents
    assert not it.api.fleet().killed
    it.state_becomes(it.launch("sleep", "300"), "running")


def test_a_preview_does_nothing_and_names_what_the_act_then_does(it: Instance) -> None:
    agents = {it.launch("sleep", "300", context_id="seen") for _ in range(3)}
    before = it.api.audit(limit=1).rows[0].seq
    seen = preview(it, "kill", "session", "seen")
    assert {it.agent(a).state for a in agents} == {"running"}
    # What the guard did for the sentence before is folded in a moment later; nothing else may speak of these agents.
    since = [r for r in it.api.audit(limit=100).rows if r.seq > before and not r.kind.startswith("guard.")]
    assert not [r for r in since if any(a in r.to_json() for a in agents)]
    assert {a.id for a in seen.acts} == agents
    assert seen.counts == {"managed": {"certain": 3}} and seen.undone_by == "" and not seen.latches
    receipt = it.api.kill_scope(ScopeBody(reach="session", target="seen"), "as shown")
    assert {t.agent_id for t in receipt.targets} == agents
    assert preview(it, "kill", "all").latches


@pytest.mark.parametrize("target", ["../x", "S1", "a b", "x\n", "", "é"])
def test_a_hostile_session_id_is_refused_and_an_empty_session_is_not_found(it: Instance, target: str) -> None:
    with pytest.raises(UsageProblem):
        it.api.kill_scope(ScopeBody(reach="session", target=target))
    for action in ("freeze", "thaw", "isolate", "reconnect"):
        with pytest.raises(NotFound):
            act(it, action, "session", "nobody-here")


def raw(it: Instance, method: str, path: str, **headers: str) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("localhost")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(it.places.operator_sock))
        connection.sock = sock
        connection.request(method, path, None if method == "GET" else b"{}", headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def slipping(it: Instance, path: str, body: bytes) -> socket.socket:
    """A request that has passed the gate's time already: its head is sent, its body is still to come."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(90)
    sock.connect(str(it.places.operator_sock))
    sock.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:5])
    return sock


def test_while_killed_only_reads_and_the_ways_out_stay_up_and_what_slipped_past_is_stopped_again(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        agent = it.launch("sleep", "300", context_id="s1")
        launch = b'{"argv": ["sleep", "300"]}'
        slipped = slipping(it, "/api/agents", launch)
        assert it.api.kill_scope(ScopeBody(reach="all"), "everything").verified_zero
        slipped.sendall(launch[5:])
        assert slipped.recv(4096).startswith(b"HTTP/1.1 503")
        slipped.close()
        assert [a.id for a in it.api.fleet().agents] == [agent]
        for action in ("freeze", "thaw", "isolate", "reconnect"):
            with pytest.raises(Killed):
                act(it, action, "all")
        refused = (
            ("POST", "/api/agents"),
            ("POST", f"/api/agents/{agent}/freeze"),
            ("POST", "/api/allowlist"),
            ("DELETE", "/api/allowlist/e1"),
        )
        for method, path in refused:
            status, words = raw(it, method, path)
            assert (status, words["exit_code"], "stopped" in str(words["error"]), "rearm" in str(words["remedy"])) == (503, 4, True, True)
        up = "fleet", "status", "kill-switch", "receipts", "audit", "rollback", "allowlist", "egress", f"agents/{agent}"
        assert {path: raw(it, "GET", f"/api/{path}")[0] for path in up} == dict.fromkeys(up, 200)
        assert preview(it, "kill", "all").latches
        for token in ("Bearer x.y.z", "Bearer " + "e30.e30.e30", "Basic b3BlcmF0b3I6"):
            for path in ("/api/kill-switch", "/api/agents"):
                assert raw(it, "POST", path, Authorization=token)[0] == 403
        assert it.api.kill_switch().killed
        until(lambda: [r for r in it.api.audit(limit=50).rows if r.kind == "route.refused"])
        it.api.rearm("seen")
        it.state_becomes(it.launch("sleep", "300"), "running")


@pytest.mark.engine
def test_a_container_is_cut_off_its_bridge_and_given_it_back(state_dir: Path, engine_socket: Path) -> None:
    look = (
        "import socket\nlast = None\nwhile True:\n  now = len(socket.if_nameindex())\n"
        "  if now != last: print('portal', now, flush=True); last = now\n  time.sleep(0.05)\n"
    )
    with Instance(state_dir, "--engine-socket", str(engine_socket), envoy=True) as it:
        agent = it.python(look, sandbox="docker", context_id="boxed")
        sees(it, agent, "2")
        assert preview(it, "isolate", "session", "boxed").containers == 1
        assert act(it, "isolate", "session", "boxed").agents == [agent]
        sees(it, agent, "2", "1")
        assert (it.agent(agent).network_mode, it.agent(agent).network_enforced) == ("NONE", True)
        late = it.python(look, sandbox="docker", context_id="boxed")
        sees(it, late, "1")
        assert act(it, "reconnect", "session", "boxed").failed == {}
        sees(it, agent, "2", "1", "2")
        assert (it.agent(agent).network_mode, it.agent(late).network_mode) == ("FULL", "NONE")  # born without one: said, and stays so
        assert "start it again" in it.agent(late).network_note
