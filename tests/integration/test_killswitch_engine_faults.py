"""A real engine that hangs, dies and is started again: the kill neither waits for it nor believes it, and nothing comes back (K3)."""

from __future__ import annotations

import contextlib
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.kill import Outcome, Receipt, StepName, StepStatus
from console.domain.verdict import verdict
from console.killswitch.kernel import processes
from console.killswitch.kill.receipt import read_receipt
from tests.fakes.docker_engine import Docker, shell_tar
from tests.fakes.guard_world import GuardWorld, decoys, ticks, until
from tests.fakes.private_engine import PrivateEngine

pytestmark = pytest.mark.engine
LOOP = "trap '' TERM; while true; do sleep 600; done"
POLITE = "trap 'exit 0' TERM; while true; do sleep 0.2; done"
IMAGE = "watchfloor-faults:1"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateEngine]:
    """One for the module."""
    with contextlib.closing(PrivateEngine()) as made:
        made.start()
        made.docker.ask("POST", "/images/create?fromSrc=-&repo=watchfloor-faults&tag=1", shell_tar(), "application/x-tar")
        yield made


@pytest.fixture
def engine(running: PrivateEngine) -> Iterator[PrivateEngine]:
    yield running
    if processes.state(running.pid) == "T":
        running.signal(signal.SIGCONT)
    if not processes.is_alive(running.pid):
        running.start()
    running.docker.close()
    running.docker.made.clear()


@pytest.fixture
def world(engine: PrivateEngine, state_dir: Path) -> Iterator[GuardWorld]:
    with contextlib.closing(GuardWorld(state_dir, engine_socket=engine.socket)) as made:
        yield made.start()


def box(world: GuardWorld, docker: Docker, agent: str, restart: str = "always") -> tuple[str, int]:
    """An agent in a container, launched as the supervisor does."""
    ticket = world.supervisor.ticket(agent, "container", "contained")
    container, pid = docker.run(IMAGE, world.instance, agent, "/bin/sh", "-c", LOOP, restart=restart)
    world.supervisor.confirm(agent, ticket["generation"], pid, ticks(pid), container)
    return container, pid


def press(world: GuardWorld) -> Receipt:
    return world.pressed("all", secrets.token_hex(2))


def policy(docker: Docker, container: str) -> str:
    return str(docker.ask("GET", f"/containers/{container}/json")["HostConfig"]["RestartPolicy"]["Name"])


def test_nothing_comes_back_after_the_engine_was_started_again(engine: PrivateEngine, world: GuardWorld) -> None:
    """The guard is gone by then, so it is the restart policy that was taken away."""
    docker = engine.docker
    container, pid = box(world, docker, "phoenix")
    stranger, _ = docker.run(IMAGE, "00000000", "other", "/bin/sh", "-c", POLITE, restart="always")
    with decoys():
        receipt = press(world)
        assert receipt.verified_zero and receipt.targets[0].evidence["engine"] == "204" and not processes.is_alive(pid)
        until(lambda: policy(docker, container) == "no", "its restart policy is taken away")
        world.kill_guard()
        engine.signal(signal.SIGTERM)
        engine.start()
        until(lambda: docker.pid(stranger), "what is not ours comes back as it was told to")
        assert docker.pid(container) == 0 and policy(docker, stranger) == "always"


def test_an_engine_killed_before_the_press_brings_its_containers_back_to_their_death(engine: PrivateEngine, world: GuardWorld) -> None:
    docker = engine.docker
    container, pid = box(world, docker, "phoenix")
    engine.signal(signal.SIGKILL)
    assert processes.is_alive(pid), "a container outlives its engine"
    receipt = press(world)
    # Proven dead; but what else came back only the engine could say, and unknown is never verified.
    assert not receipt.verified_zero and verdict(receipt).exit_code == 9 and not processes.is_alive(pid)
    assert [t.outcome for t in receipt.targets] == [Outcome.PROVEN_ZERO]
    assert {s.name: s.status for s in receipt.steps}[StepName.SECOND_LOOK] is StepStatus.UNKNOWN
    engine.start()

    def amended() -> Receipt | None:
        found = read_receipt(world.state / "guard", receipt.kill_id)
        return found if found is not None and found.amended else None

    until(amended, "it came back, and the receipt says so")
    now = amended()
    assert now is not None and not now.verified_zero and "started after the kill" in now.amended[0]
    assert [t.outcome for t in now.targets] == [Outcome.PROVEN_ZERO] * 2 and now.targets[1].evidence["container_id"] == container
    until(lambda: docker.pid(container) == 0 and policy(docker, container) == "no", "and stays dead")


def test_an_engine_that_hangs_delays_no_proof(engine: PrivateEngine, world: GuardWorld) -> None:
    docker = engine.docker
    container, pid = box(world, docker, "boxed")
    engine.signal(signal.SIGSTOP)
    receipt = press(world)
    target = receipt.targets[0]
    assert not receipt.verified_zero and target.outcome is Outcome.PROVEN_ZERO and target.evidence["populated"] == 0
    assert not processes.is_alive(pid)
    zero, look = (next(s for s in receipt.steps if s.name is name) for name in (StepName.ZERO, StepName.SECOND_LOOK))
    assert zero.status is StepStatus.OK and look.status is StepStatus.UNKNOWN and "did not answer" in look.detail
    engine.signal(signal.SIGCONT)
    until(lambda: docker.pid(container) == 0, "it is dead for the engine too, or was killed again")
    late, _ = docker.run(IMAGE, world.instance, "late", "/bin/sh", "-c", LOOP, restart="always")
    until(lambda: docker.pid(late) == 0 and policy(docker, late) == "no", "what starts while killed is killed on its event")
    until(lambda: any("late" in words for words in (read_receipt(world.state / "guard", receipt.kill_id) or receipt).amended), "and told")
