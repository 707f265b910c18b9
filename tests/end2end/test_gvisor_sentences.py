"""An agent on a kernel of its own: what it reaches, what it does not, and that a press ends all of it. Real runsc, real Envoy."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import APIClient

from console.domain.errors import Unavailable
from console.sandbox.containers.gvisor import Gvisor
from console.sandbox.containers.image import ensure_tag
from tests.fakes.instance import Instance, until
from tests.fakes.private_engine import PrivateEngine
from tests.fakes.standing import standing_instance

pytestmark = [pytest.mark.engine, pytest.mark.envoy]
RUNSC = shutil.which("runsc")
RUNTIMES = {"runsc": {"path": RUNSC, "runtimeArgs": ["--network=none", "--host-uds=open"]}} if RUNSC else {}
LOOK = "import os, socket; print('kernel', os.uname().release, sorted(n for _, n in socket.if_nameindex()), flush=True)\n"
REACH = (
    "import urllib.request, urllib.error\n"
    "def get():\n"
    "  try: r = urllib.request.urlopen('http://paste.example.com/x', timeout=60); return r.status, b''\n"
    "  except urllib.error.HTTPError as e: return e.code, e.read(500)\n"
    "  except OSError as e: return 0, str(e).encode()\n"
    "def direct(host):\n"
    "  with socket.socket() as s: s.settimeout(3); return s.connect_ex((host, 80))\n"
)


@pytest.fixture(scope="module")
def engine(engine_socket: Path) -> Iterator[Path]:
    """The engine at hand when it knows runsc (packaging/engine), else one of its own."""
    if not RUNSC or Gvisor(str(engine_socket)).available().ok:
        yield engine_socket
        return
    with contextlib.closing(PrivateEngine(runtimes=RUNTIMES)) as made:
        made.start()
        _carry_image(engine_socket, made.socket)
        yield made.socket


@pytest.fixture(scope="module")
def it(engine: Path) -> Iterator[Instance]:
    with standing_instance("--engine-socket", str(engine), envoy=True) as instance:
        yield instance


def _carry_image(source: Path, target: Path) -> None:
    """The agent image of one engine into another: built once is enough."""
    clients = [APIClient(base_url=f"unix://{path}", version="auto", timeout=120) for path in (source, target)]
    with contextlib.closing(clients[0]) as one, contextlib.closing(clients[1]) as other:
        tag = ensure_tag(one)
        list(other.load_image(b"".join(one.get_image(tag))))  # type: ignore[no-untyped-call]


def test_an_agent_on_its_own_kernel_has_the_portal_and_nothing_else_until_it_is_cut_and_then_killed(it: Instance) -> None:
    if not RUNSC:
        with pytest.raises(Unavailable, match="no runtime named runsc"):
            it.launch("true", sandbox="gvisor", network_mode="NONE")
        return
    code = LOOK + REACH + "print('answer', get(), direct('172.17.0.1'), direct('169.254.169.254'), flush=True)\n"
    code += "print('mode', agent.private_data('x', 'SECRET')['network_mode'], get()[0], flush=True)\ntime.sleep(300)"
    proxied = it.python(code, sandbox="gvisor", network_mode="PROXIED")
    bare = it.python(LOOK + REACH + "print('answer', get()[0], flush=True)\ntime.sleep(300)", sandbox="gvisor", network_mode="NONE")
    said = it.says(proxied, "mode")
    assert f"kernel {os.uname().release}" not in said and "['lo']" in said
    assert "answer ((403" not in said and "answer (403" in said and "Destination not in allowlist" in said
    assert " 113 113" in said  # EHOSTUNREACH: no way but the portal
    assert "mode NONE 0" in said  # the data is told of once the portal is closed
    assert "answer 0" in it.says(bare, "answer")
    assert os.stat(os.devnull).st_uid == 0  # noqa: PTH116 - runsc gives what stands at a process's start to its user
    given = {h.name: h.state for h in it.api.agent(proxied).hardening}
    assert set(given.values()) == {"given"} and "kernel of its own" in given
    with pytest.raises(Unavailable, match="FULL is not available"):
        it.launch("true", sandbox="gvisor")
    inside = [it.agent(a).pid for a in (proxied, bare)]
    receipt = it.api.activate("the test")
    assert receipt.verified_zero
    outcomes = {t.agent_id: t.outcome for t in receipt.targets}
    assert outcomes[proxied] == outcomes[bare] == "proven_zero"
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
    until(lambda: not list(it.places.agents_dir.iterdir()))


def test_an_agent_on_its_own_kernel_outlives_a_supervisor_that_is_killed_keeps_its_mode_and_dies_proven(
    engine: Path, state_dir: Path
) -> None:
    if not RUNSC:
        return  # test above: without runsc no such agent starts
    code = LOOK + REACH + "import itertools\nfor n in itertools.count():\n  print(f'look {n}:', get()[0], flush=True); time.sleep(0.2)"
    with Instance(state_dir, "--engine-socket", str(engine), envoy=True) as it:
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy")
        proxied = it.python(code, sandbox="gvisor", network_mode="PROXIED")
        bare = it.python(code, sandbox="gvisor", network_mode="NONE")
        it.says(proxied, ": 403")
        it.says(bare, ": 0")
        inside = [it.agent(a).pid for a in (proxied, bare)]
        it.stop(signal.SIGKILL)
        lines = it.output(proxied).count("\n")
        it.start()
        until(lambda: it.api.allowlist().envoy == "healthy", words="Envoy is healthy again")
        assert [it.agent(a).pid for a in (proxied, bare)] == inside
        for agent_id, mode in ((proxied, "PROXIED"), (bare, "NONE")):
            view = it.agent(agent_id)
            assert (view.state, view.network_mode, view.network_enforced) == ("running", mode, True)
        until(lambda: ": 403" in "".join(it.output(proxied).splitlines(keepends=True)[lines:]), words="its portal refuses in words again")
        assert not {": 403", ": 200"} & {line.partition(":")[1] + line.partition(":")[2] for line in it.output(bare).splitlines()}
        receipt = it.api.activate("the test")
        assert receipt.verified_zero
        assert {t.agent_id for t in receipt.targets if t.outcome == "proven_zero"} == {proxied, bare}
        assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
        until(lambda: not list(it.places.agents_dir.iterdir()))


@pytest.mark.long
def test_memory_is_bounded_on_its_own_kernel_too_and_the_end_names_the_limit(engine: Path, state_dir: Path) -> None:
    if not RUNSC:
        return
    (state_dir / "settings.json").write_text('{"agents": {"memory_max_mib": 256}}')
    with Instance(state_dir, "--engine-socket", str(engine), envoy=True) as it:
        agent = it.python("x = []\nwhile True: x.append(b'x' * (1 << 20))\n", sandbox="gvisor", network_mode="NONE")
        view = it.state_becomes(agent, "failed", "ended", seconds=90)
        assert view.state == "failed" and view.state_reason.startswith("memory limit 256 MiB")
