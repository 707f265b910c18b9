"""What an agent reaches: nothing, what the allowlist names through the real Envoy, or what a container's bridge reaches."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.messages import AllowlistEntryBody, UrlTestBody
from console.api.network import MeantBody, RegisterDataBody, StricterBody
from console.domain.errors import Conflict, ConsoleError, UsageProblem
from tests.fakes.instance import Instance, until
from tests.fakes.standing import end_all, standing_instance

LOOK = "import socket; print('interfaces', sorted(n for _, n in socket.if_nameindex()), flush=True)\n"
FETCH = (
    "import urllib.request, urllib.error\n"
    "def get(url):\n"
    "  try: r = urllib.request.urlopen(url, timeout=60); return r.status, r.read(500)\n"
    "  except urllib.error.HTTPError as e: return e.code, e.read(500)\n"
    "  except OSError as e: return 0, str(e).encode()\n"
)


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance(envoy=True) as instance:
        yield instance


@pytest.fixture
def calm(it: Instance) -> Iterator[Instance]:
    yield it
    end_all(it)


def entry(host: str = "api.example.com", **fields: object) -> AllowlistEntryBody:
    return AllowlistEntryBody.read({"host": host, "reason": "tests", "owner": "tests", **fields})


@pytest.mark.envoy
@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_a_proxied_agent_has_only_lo_and_an_unlisted_host_is_refused_in_words(calm: Instance, sandbox: str) -> None:
    agent = calm.python(
        LOOK + FETCH + "print('answer', get('http://paste.example.com/x'), flush=True); time.sleep(300)",
        sandbox=sandbox,
        network_mode="PROXIED",
    )
    out = calm.says(agent, "answer")
    assert "interfaces ['lo']" in out
    assert "answer (403" in out
    assert "Destination not in allowlist" in out
    view = calm.agent(agent)
    assert (view.network_mode, view.network_enforced) == ("PROXIED", True)
    until(lambda: [e for e in calm.api.egress().egress if e.agent_id == agent and not e.allowed and e.host == "paste.example.com"])


@pytest.mark.envoy
def test_an_agent_without_network_reaches_not_even_the_portal(calm: Instance) -> None:
    code = LOOK + "s = socket.socket(); s.settimeout(3)\nprint('portal', s.connect_ex(('127.0.0.1', 3128)), flush=True)\ntime.sleep(300)"
    agent = calm.python(code, network_mode="NONE")
    out = calm.says(agent, "portal")
    assert "interfaces ['lo']" in out
    assert "portal 111" in out  # ECONNREFUSED


@pytest.mark.envoy
def test_secret_data_closes_the_portal_before_the_agent_is_answered(calm: Instance) -> None:
    code = "import socket\ndef portal():\n  with socket.socket() as s: s.settimeout(3); return s.connect_ex(('127.0.0.1', 3128))\n"
    code += "print('before', portal(), flush=True); m = agent.private_data('x', 'SECRET')['network_mode']\n"
    code += "print('after', portal(), m, flush=True)\n"
    agent = calm.python(code + "time.sleep(300)", network_mode="PROXIED", context_id="secretive")
    out = calm.says(agent, "after")
    assert "before 0" in out
    assert "after 111 NONE" in out


@pytest.mark.envoy
def test_confidential_data_takes_away_every_destination_that_may_not_receive_it(calm: Instance) -> None:
    ids = [calm.api.add_entry(entry("low.example.com", port=80)).entry_id]
    ids.append(calm.api.add_entry(entry("high.example.com", port=80, may_receive="CONFIDENTIAL")).entry_id)
    both = "get('http://low.example.com/')[0], get('http://high.example.com/')[0]"
    code = FETCH + f"print('before', {both}, flush=True); m = agent.private_data('letters', 'CONFIDENTIAL')['network_mode']\n"
    code += f"print('after', {both}, m, flush=True); time.sleep(300)"
    agent = calm.python(code, network_mode="PROXIED", context_id="letters-of-customers")
    before, after = (line.split() for line in calm.says(agent, "after", 90).splitlines()[-2:])
    assert "403" not in before[1:3]
    assert after[1] == "403" and after[2] != "403" and after[3] == "PROXIED"
    view = calm.agent(agent)
    assert (view.network_mode, view.network_enforced, view.sensitivity) == ("PROXIED", True, "CONFIDENTIAL")
    until(
        lambda: [r for r in calm.api.egress().egress if not r.allowed and r.host == "low.example.com" and r.sensitivity == view.sensitivity]
    )
    for entry_id in ids:
        calm.api.remove_entry(entry_id, reason="tests are over")


@pytest.mark.envoy
def test_an_entry_is_validated_by_envoy_applied_live_and_a_bad_one_keeps_the_old_list(calm: Instance) -> None:
    added = calm.api.add_entry(entry("api.example.com", base_version=calm.api.allowlist().version))
    assert "validated by Envoy" in added.words
    listed = calm.api.allowlist()
    assert [e.host for e in listed.entries] == ["api.example.com"]
    assert calm.api.test_url(UrlTestBody(url="https://api.example.com/v1")).allowed
    assert not calm.api.test_url(UrlTestBody(url="https://api.example.com.evil.test/")).allowed
    assert "api.example.com" in calm.api.envoy_config().text
    for bad in ("EVIL.example.com", "10.0.0.1", "a b.example.com", "*", "x" * 70 + ".example.com"):
        with pytest.raises(UsageProblem):
            calm.api.add_entry(entry(bad))
    with pytest.raises(Conflict):
        calm.api.add_entry(entry("other.example.com", base_version=listed.version - 1))
    assert calm.api.allowlist().version == listed.version
    gone = calm.api.remove_entry(added.entry_id, reason="tests are over")
    assert gone.version == listed.version + 1
    assert calm.api.allowlist().entries == []


@pytest.mark.envoy
def test_a_private_address_is_refused_even_where_the_name_is_listed(calm: Instance) -> None:
    added = calm.api.add_entry(entry("localhost.example.com", port=80))
    agent = calm.python(FETCH + "print('answer', get('http://localhost.example.com/')[0], flush=True)", network_mode="PROXIED")
    answer = calm.says(agent, "answer")
    assert "answer 200" not in answer
    calm.api.remove_entry(added.entry_id, reason="tests are over")


@pytest.fixture(scope="module")
def boxed(engine_socket: Path) -> Iterator[Instance]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    with Instance(folder, "--engine-socket", str(engine_socket), envoy=True) as instance:
        until(lambda: instance.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        yield instance
    shutil.rmtree(folder)


@pytest.mark.engine
@pytest.mark.envoy
def test_containers_have_each_network_mode_a_live_cut_and_a_proven_end(boxed: Instance) -> None:
    sleep = "time.sleep(300)"
    none = boxed.python(LOOK + sleep, sandbox="docker", network_mode="NONE")
    fetch = "print('answer', get('http://x.example.com/')[0], flush=True)\n"
    proxied = boxed.python(LOOK + FETCH + fetch + sleep, sandbox="docker", network_mode="PROXIED")
    cut = "print('mode', agent.private_data('x', 'SECRET')['network_mode'], flush=True)\n"
    full = boxed.python(LOOK + cut + LOOK.replace("interfaces", "then") + sleep, sandbox="docker")
    stubborn = boxed.launch("sh", "-c", "trap '' TERM; while true; do sleep 1; done", sandbox="docker")
    assert "interfaces ['lo']" in boxed.says(none, "interfaces")
    assert "answer 403" in boxed.says(proxied, "answer")
    out = boxed.says(full, "then")
    assert "eth0" in out.split("mode")[0]
    assert "mode NONE" in out
    assert "then ['lo']" in out
    assert {boxed.agent(a).control_level for a in (none, proxied, full)} == {"contained"}
    receipt = boxed.api.activate("the test")
    assert receipt.verified_zero
    assert {t.agent_id for t in receipt.targets if t.outcome == "proven_zero"} == {none, proxied, full, stubborn}
    until(lambda: not list(boxed.places.agents_dir.iterdir()))
    boxed.api.rearm("go on")
    assert {boxed.agent(a).state for a in (none, proxied, full, stubborn)} == {"killed"}


@pytest.mark.engine
@pytest.mark.envoy
def test_a_container_with_a_bridge_that_becomes_proxied_reaches_the_allowlist_alone_through_its_portal(boxed: Instance) -> None:
    ask = "import http.client\ndef ask():\n  try:\n    c = http.client.HTTPConnection('127.0.0.1', 3128, timeout=60)\n"
    ask += "    c.request('GET', 'http://x.example.com/'); return c.getresponse().status\n  except OSError as e: return e.errno\n"
    wait = "while sorted(n for _, n in socket.if_nameindex()) != ['lo'] or ask() == 111: time.sleep(0.05)\n"
    then = LOOK.replace("interfaces", "then") + "print('answer', ask(), flush=True); time.sleep(300)"
    agent = boxed.python(LOOK + ask + wait + then, sandbox="docker", context_id="letters")
    assert "eth0" in boxed.says(agent, "interfaces")
    scope = MeantBody(reach="agent", target=agent)
    body = RegisterDataBody(scope=scope, dataset="letters", sensitivity="CONFIDENTIAL", source="crm", reason="review")
    view = boxed.api.register_data(body)
    assert (view.mode, view.verified, view.agents[0].before) == ("PROXIED", 1, "FULL")
    out = boxed.says(agent, "answer")
    assert "then ['lo']" in out and "answer 403" in out
    shown = boxed.agent(agent)
    assert (shown.network_mode, shown.network_enforced) == ("PROXIED", True) and "http://127.0.0.1:3128" in shown.network_note
    assert boxed.api.stricter(StricterBody(scope=scope, mode="NONE", reason="enough")).verified == 1
    assert boxed.api.kill(agent).verified_zero


def test_a_wrong_launch_leaves_nothing(calm: Instance) -> None:
    with pytest.raises(ConsoleError):
        calm.launch("true", sandbox="gvisor")
    until(lambda: not list(calm.places.agents_dir.iterdir()))
