"""Operators tighten what agents reach, on a real supervisor, guard and Envoy: verified, for good, and told afterwards from the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.ladder import LadderBody
from console.api.network import MeantBody, ModeChangeView, RegisterDataBody, StricterBody
from console.domain.errors import Conflict, Denied
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

PORTAL = (
    "import socket\n"
    "def portal():\n"
    "  with socket.socket() as s: s.settimeout(3); return s.connect_ex(('127.0.0.1', 3128))\n"
    "def elsewhere():\n"
    "  with socket.socket() as s: s.settimeout(3); return s.connect_ex(('192.0.2.1', 443))\n"
    "last = None\n"
    "while True:\n"
    "  now = portal()\n"
    "  if now != last: print('portal', now, 'elsewhere', elsewhere(), flush=True); last = now\n"
    "  time.sleep(0.05)\n"
)
"""Prints the portal's state whenever it changes, 0 open, 111 closed (ECONNREFUSED); and a forbidden host's, 101 (ENETUNREACH)."""
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def standing() -> Iterator[Instance]:
    with standing_instance(envoy=True) as instance:
        yield instance


def stricter(mode: Any, target: str, reach: Any = "agent", **more: Any) -> StricterBody:
    return StricterBody(scope=MeantBody(reach=reach, target=target), mode=mode, reason="odd traffic", **more)


def own(changes: list[ModeChangeView]) -> list[tuple[str, str, str]]:
    return [(x.cause, x.mode, x.by.partition(":")[0]) for x in reversed(changes)]


@pytest.mark.envoy
def test_a_proxied_agent_is_switched_to_none_its_portal_is_gone_and_looser_is_refused(it: Instance) -> None:
    agent = it.python(PORTAL, network_mode="PROXIED", context_id="traffic")
    child = it.python(PORTAL, parent_id=agent, context_id="traffic-below")
    for one in (agent, child):
        it.says(one, "portal 0 elsewhere 101")
    assert it.agent(agent).network_why == "asked for at its launch"
    before = it.api.stricter(stricter("NONE", agent, dry_run=True))
    assert (before.dry_run, before.switched, before.why_not) == (True, 2, "") and it.agent(agent).network_mode == "PROXIED"
    view = it.api.stricter(stricter("NONE", agent))
    assert (view.verified, view.agents_total, view.sessions) == (2, 2, ["traffic", "traffic-below"])
    assert "Session traffic is in NONE: 2 of 2 agents verified, in " in view.words
    for one in (agent, child):
        it.says(one, "portal 111 elsewhere 101")
        shown = it.agent(one)
        assert (shown.network_mode, shown.network_enforced) == ("NONE", True)
        assert shown.network_why.startswith("operator:") and shown.network_why.endswith(": odd traffic") and shown.network_since > 0
    with pytest.raises(Denied, match="Session traffic is in NONE: PROXIED is not stricter, and a mode is never loosened"):
        it.api.stricter(stricter("PROXIED", agent))
    with pytest.raises(Conflict, match="in NONE already"):
        it.api.stricter(stricter("NONE", "traffic", "session"))
    rows = it.api.audit(q="network.stricter").rows
    assert [(r.agent_id, r.data["reason"]) for r in rows if r.agent_id == agent] == [(agent, "odd traffic")]


@pytest.mark.envoy
def test_the_history_shows_the_switch_the_isolation_and_their_proofs_also_after_a_restart(state_dir: Path) -> None:
    with Instance(state_dir, envoy=True) as it:
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        tell_and_restart(it)


def tell_and_restart(it: Instance) -> None:
    agent = it.python(PORTAL, network_mode="PROXIED", context_id="remembered")
    it.says(agent, "portal 0")
    for action in ("isolate", "reconnect"):
        scope = {"reach": "agent", "target": agent}
        assert it.api.ladder(LadderBody.read({"action": action, "scope": scope, "reason": "a look"})).agents == [agent]
    assert it.api.stricter(stricter("NONE", "remembered", "session")).verified == 1
    wanted = [
        ("launch", "PROXIED", ""),
        ("isolated", "NONE", "operator"),
        ("enforced", "NONE", "supervisor"),
        ("reconnected", "PROXIED", "operator"),
        ("enforced", "PROXIED", "supervisor"),
        ("operator", "NONE", "operator"),
        ("enforced", "NONE", "supervisor"),
    ]
    until(lambda: len(it.api.mode_history("remembered", agent).changes) == len(wanted), words="all of it is kept")
    seen = it.api.mode_history("remembered", agent)
    assert own(seen.changes) == wanted and all(x.enforced for x in seen.changes if x.cause == "enforced")
    assert seen.changes[0].ms is not None and seen.began_at is not None and (seen.mode, seen.left_out) == ("NONE", 0)
    since = it.agent(agent).network_since
    it.stop()
    it.start()
    again = it.api.mode_history("remembered", agent)
    assert own(again.changes)[: len(wanted)] == wanted and again.mode == "NONE"
    shown = it.agent(agent)
    assert (shown.network_mode, shown.network_enforced, shown.network_since) == ("NONE", True, since)
    until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
    assert it.output(agent).split()[-4:] == ["portal", "111", "elsewhere", "101"]
    with pytest.raises(Denied):
        it.api.stricter(stricter("PROXIED", agent))


def test_what_shares_the_hosts_network_is_told_as_not_enforceable_here(it: Instance, watchfloor: Say) -> None:
    agent = it.python("print('up', flush=True); time.sleep(300)", context_id="shared")
    it.says(agent, "up")
    code, out, _ = watchfloor("network", "tighten", agent, "--mode", "none", "--reason", "odd")
    assert code == 1 and "0 of 1 agents verified, 1 not enforceable here" in out
    assert "FULL -> NONE, NOT verified: it is not enforceable here: it shares the host's network" in out
    _, listed, _ = watchfloor("network", "sandboxes")
    assert "FULL, not enforced" in listed and "NONE is not" in " ".join(listed.split())
    _, told, _ = watchfloor("network", "history", agent)
    assert "NOT enforceable here" in " ".join(told.split())


def test_private_data_an_operator_registers_holds_before_it_is_handed_over_and_for_who_comes_later(it: Instance, watchfloor: Say) -> None:
    agent = it.python(PORTAL, network_mode="PROXIED", context_id="payroll")
    it.says(agent, "portal 0")
    words = ("--dataset", "salaries", "--source", "hr", "--reason", "review")
    code, out, _ = watchfloor("session", "classify", "--session", "payroll", "--sensitivity", "secret", *words, "--json")
    told = json.loads(out)
    assert (code, told["sensitivity"], told["mode"], told["verified"]) == (0, "SECRET", "NONE", 1)
    it.says(agent, "portal 111")
    later = it.python("time.sleep(300)", context_id="payroll")
    assert (it.agent(later).network_mode, it.agent(later).sensitivity) == ("NONE", "SECRET")
    [first] = [x for x in it.api.mode_history("payroll").changes if x.cause == "data"]
    assert (first.sensitivity, first.mode, first.words) == ("SECRET", "NONE", "salaries from hr") and first.by.startswith("operator:")
    lower = RegisterDataBody(scope=MeantBody(reach="session", target="payroll"), dataset="menu", sensitivity="PUBLIC", reason="lunch")
    assert it.api.register_data(lower).sensitivity == "SECRET"
    assert it.api.mode_history("payroll").registrations == 2


def test_bad_words_are_refused_with_the_documented_codes(watchfloor: Say) -> None:
    for argv, code in (
        (("network", "tighten", "a-nobody", "--mode", "NONE", "--reason", "x"), 3),
        (("network", "tighten", "--mode", "NONE", "--reason", "x"), 2),
        (("network", "tighten", "a", "--session", "s", "--mode", "NONE", "--reason", "x"), 2),
        (("network", "tighten", "a", "--mode", "LOOSE", "--reason", "x"), 2),
        (("session", "classify", "a", "--dataset", "d", "--sensitivity", "VERY", "--reason", "x"), 2),
        (("network", "history", "--session", "nobodys"), 3),
    ):
        said, _, err = watchfloor(*argv)
        assert said == code and err.startswith("error: "), argv


def test_a_proxied_session_that_reads_a_credential_has_no_network_before_it_has_the_answer(it: Instance) -> None:
    """What it would send without asking has nowhere to go: the portal is shut when the read is allowed, for its child as well."""
    watch = PORTAL.partition("last = None")[0]
    ask = "v = agent.permission('read_file', '.env'); print('read', v['verdict'], 'portal', portal(), flush=True)\n"
    waits = "print('before', portal(), flush=True)\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
    agent = it.python(f"{watch}{waits}{ask}time.sleep(300)", network_mode="PROXIED", context_id="keys")
    it.says(agent, "before 0")
    child = it.python(PORTAL, parent_id=agent, context_id="keys-child")
    it.says(child, "portal 0")
    (it.places.workspaces_dir / "keys" / "go").touch()
    assert "read allow portal 111" in it.says(agent, "read allow")
    it.says(child, "portal 111")
    assert ("sequence", "NONE", "agent") in own(it.api.mode_history("keys", agent).changes)
    again = it.python("time.sleep(300)", network_mode="PROXIED", context_id="keys")
    assert it.agent(again).network_mode == "NONE"
