"""An agent is bounded, and a person is told what it is bounded by, how hard its sandbox is, and which limit ended it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

EAT = "x = []\nwhile True: x.append(b'x' * (1 << 20))\n"
BURN = "print('burning', flush=True)\nimport subprocess\nwhile True: subprocess.run(['/bin/sh', '-c', ':'])\n"


@pytest.fixture(scope="module")
def it() -> Iterator[Instance]:
    with standing_instance(prepare=lambda f: (f / "settings.json").write_text('{"agents": {"memory_max_mib": 96}}')) as instance:
        yield instance


@pytest.mark.parametrize("sandbox", ["none", "bubblewrap"])
def test_memory_is_bounded_and_the_reason_of_its_end_names_the_limit(it: Instance, sandbox: str) -> None:
    view = it.state_becomes(it.python(EAT, sandbox=sandbox), "failed", "ended")
    assert view.state == "failed" and view.state_reason.startswith("memory limit 96 MiB; exit code")


@pytest.mark.engine
def test_memory_is_bounded_inside_a_container_and_tree_and_audit_name_the_limit(engine_socket: Path, state_dir: Path) -> None:
    (state_dir / "settings.json").write_text('{"agents": {"memory_max_mib": 96}}')
    with Instance(state_dir, "--engine-socket", str(engine_socket)) as it:
        eat = f"import subprocess\nsys.exit(subprocess.call(['python3', '-c', {EAT!r}]) and 7)"
        agent = it.python(eat, sandbox="docker", network_mode="NONE")
        view = it.state_becomes(agent, "failed", "ended")
        assert view.state_reason == "memory limit 96 MiB; exit code 7"
        (line,) = until(lambda: [r for r in it.api.audit(q=agent).rows if r.kind == "agent.ended"])
        assert line.what == f"{agent} ended: {view.state_reason}"
        fine = it.launch("python3", "-c", "import sys; sys.exit(7)", sandbox="docker", network_mode="NONE")
        assert it.state_becomes(fine, "failed").state_reason == "exit code 7"


def test_processor_time_of_everything_it_starts_is_bounded(it: Instance) -> None:
    agent = it.python(BURN, limits={"cpu_s": 1.0})
    view = it.state_becomes(agent, "halted")
    assert view.state_reason.startswith("agent limit cpu_s: 1") and view.usage["cpu_s"] >= 1.0
    assert view.limits["cpu_s"] == 1.0


def test_wall_time_is_bounded(it: Instance) -> None:
    view = it.state_becomes(it.launch("sleep", "300", limits={"wall_s": 1.0}), "halted")
    assert view.state_reason.startswith("agent limit wall_s")


def test_how_hard_a_sandbox_is_was_read_back_and_outlives_a_restart(state_dir: Path) -> None:
    with Instance(state_dir) as it:
        agent = it.launch("sleep", "300", sandbox="bubblewrap", network_mode="NONE")
        before = it.api.agent(agent).hardening
        states = {h.name: h.state for h in before}
        assert set(states.values()) == {"given", "not_available"}
        assert states["read-only root"] == states["/tmp without programs"] == states["no capabilities"] == "given"
        assert states["system call filter"] == states["memory bounded"] == states["processes bounded"] == "given"
        assert "kernel of its own: not available, because it shares this machine's kernel" in [h.line for h in before]
        it.stop()
        it.start()
        assert it.api.agent(agent).hardening == before
