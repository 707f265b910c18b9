"""Containers: the real engine, and engines that hang, lie or are away. They neither delay a kill nor fool its proof."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.domain.errors import Denied, Killed
from console.domain.kill import Outcome, StepName, StepStatus
from console.domain.verdict import verdict
from console.killswitch.client.kill import press_and_wait, press_without_guard
from console.killswitch.kernel import processes
from tests.fakes.docker_engine import Docker, shell_tar
from tests.fakes.engine_stub import EngineStub
from tests.fakes.guard_world import SLEEP, GuardWorld, decoys, end, ticks, until
from tests.fakes.stuck_file import StuckFile

FAKE_ID = "ab" * 32


class FakeContainer:
    """A process in a cgroup named as an engine names it, with a PID namespace of its own."""

    def __init__(self, world: GuardWorld, *argv: str) -> None:
        self.folder = Path(f"/sys/fs/cgroup/unified/watchfloor-test-{world.instance}/{FAKE_ID}")
        self.folder.mkdir(parents=True)
        code = (
            "import os,sys\nopen(sys.argv[1]+'/cgroup.procs','w').write('0')\n"
            "os.execv('/usr/bin/unshare',['unshare','--pid','--fork','--kill-child',*sys.argv[2:]])"
        )
        outer = world.popen(sys.executable, "-S", "-c", code, str(self.folder), *(argv or SLEEP))
        self.outer = outer
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        until(lambda: children.read_text().split(), "its init runs")
        self.pid = int(children.read_text().split()[0])
        until(lambda: processes.command_line(self.pid).startswith((argv or SLEEP)[0]), "it runs its own program")

    def remove(self) -> None:
        for pid in (self.folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):  # --kill-child was faster
                end(int(pid))
        until(lambda: not (self.folder / "cgroup.procs").read_text().split(), "it is empty")
        self.folder.rmdir()
        self.folder.parent.rmdir()


@pytest.fixture
def world(state_dir: Path) -> Iterator[GuardWorld]:
    made = GuardWorld(state_dir, engine_socket=state_dir / "engine.sock")
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("mood", ["lies", "hangs", "nonsense", "down"])
def test_a_bad_engine_neither_delays_nor_fools(world: GuardWorld, mood: str) -> None:
    stub = EngineStub(world.state / "engine.sock", mood) if mood != "down" else None
    container = None
    try:
        world.start()
        container = FakeContainer(world)
        ticket = world.supervisor.ticket("boxed", "container", "contained")
        answer = world.supervisor.confirm("boxed", ticket["generation"], container.pid, ticks(container.pid), FAKE_ID)
        assert answer["container_cgroup"] == str(container.folder) and answer["pid_namespace"]
        receipt = press_and_wait(world.state, world.run, world.instance, "all", mood, "tester", timeout_s=90)
        target = receipt.targets[0]
        # Without the engine's word on what came back the second look is unknown, and unknown is never verified.
        assert receipt.verified_zero == (mood == "lies")
        assert target.outcome is Outcome.PROVEN_ZERO and not processes.is_alive(container.pid)
        assert target.ms is not None and target.ms < 2000
        look = next(s for s in receipt.steps if s.name is StepName.SECOND_LOOK)
        assert look.status is (StepStatus.OK if mood == "lies" else StepStatus.UNKNOWN), look
        if stub is not None:
            assert any(f"POST /containers/{FAKE_ID}/kill" in line for line in stub.asked)
    finally:
        if stub is not None:
            stub.close()
        if container is not None:
            container.remove()


def test_an_engine_that_says_204_while_the_container_lives_is_not_believed(world: GuardWorld) -> None:
    """The container waits in the kernel, so that nothing can kill it; the engine says that it is dead."""
    stuck = StuckFile()
    stub, container = EngineStub(world.state / "engine.sock", "lies"), None
    try:
        world.start_impatient()
        container = FakeContainer(world, "/bin/cat", str(stuck.path))
        until(stuck.asked.is_set, "it waits")
        ticket = world.supervisor.ticket("boxed", "container", "contained")
        world.supervisor.confirm("boxed", ticket["generation"], container.pid, ticks(container.pid), FAKE_ID)
        receipt = world.pressed("all", "lie")
        assert not receipt.verified_zero and receipt.targets[0].outcome is Outcome.NOT_PROVEN
        assert receipt.targets[0].evidence["engine"] == "204" and container.pid in [s.pid for s in receipt.survivors]
    finally:
        stuck.close()
        stub.close()
        if container is not None:
            container.remove()


def test_a_container_never_confirmed_is_proven_only_by_an_answering_engine(world: GuardWorld) -> None:
    stub = EngineStub(world.state / "engine.sock", "lies")
    try:
        world.start_impatient()
        world.supervisor.ticket("pending", "container", "contained")
        receipt = world.pressed()
        assert receipt.verified_zero
        stub.mood = "hangs"
        receipt = world.pressed()
        assert not receipt.verified_zero and "engine" in receipt.targets[0].evidence["why"]
    finally:
        stub.close()


def test_a_container_of_ours_that_starts_while_killed_is_killed(world: GuardWorld) -> None:
    """Listed by the engine at a reconnect, unknown to the registry."""
    stub, container = EngineStub(world.state / "engine.sock", "lies"), None
    try:
        world.start()
        press_and_wait(world.state, world.run, world.instance, "all", "x", "tester", timeout_s=90)
        container = FakeContainer(world)
        stub.containers[FAKE_ID] = {"pid": container.pid, "agent": "back", "instance": world.instance}
        world.kill_guard()
        assert processes.is_alive(container.pid)
        world.start()
        until(lambda: not processes.is_alive(container.pid), "it was killed")
    finally:
        stub.close()
        if container is not None:
            container.remove()


def test_a_container_must_be_in_a_cgroup_that_names_it(world: GuardWorld) -> None:
    world.start()
    container = FakeContainer(world)
    try:
        world.supervisor.ticket("boxed", "container", "contained")
        with pytest.raises(Denied):  # an ordinary process of the host, passed off as a container
            bystander = world.popen("/bin/sleep", "600")
            world.supervisor.confirm("boxed", 0, bystander.pid, ticks(bystander.pid), FAKE_ID)
    finally:
        container.remove()


# --- the real engine ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image_tar() -> bytes:
    return shell_tar()


@pytest.fixture
def docker(engine_socket: Path, image_tar: bytes) -> Iterator[tuple[Docker, str]]:
    engine, image = Docker(engine_socket), f"watchfloor-test-{secrets.token_hex(4)}"
    engine.ask("POST", f"/images/create?fromSrc=-&repo={image}&tag=1", image_tar, "application/x-tar")
    try:
        yield engine, f"{image}:1"
    finally:
        engine.close()
        engine.ask("DELETE", f"/images/{image}:1?force=1")


@pytest.mark.engine
def test_real_containers_are_killed_frozen_and_do_not_come_back(docker: tuple[Docker, str], engine_socket: Path, state_dir: Path) -> None:
    engine, image = docker
    world = GuardWorld(state_dir, engine_socket=engine_socket)
    tree = "trap '' TERM; while true; do (sleep 600 &); (sleep 600 &); sleep 600; done"
    try:
        world.start()
        with decoys():
            stranger, stranger_pid = engine.run(image, "00000000", "other", "/bin/sleep", "600")
            held = {}
            for agent, restart in (("plain", "no"), ("always", "always")):
                ticket = world.supervisor.ticket(agent, "container", "contained")
                container, pid = engine.run(image, world.instance, agent, "/bin/sh", "-c", tree, restart=restart)
                world.supervisor.confirm(agent, ticket["generation"], pid, ticks(pid), container)
                held[agent] = container
            until(lambda: world.supervisor.call("procs", agent_id="plain")["count"] >= 4, "the tree has grown")

            world.operator.freeze(["plain"])
            events = next(Path("/sys/fs/cgroup/unified/docker").glob(f"{held['plain']}/cgroup.events"))
            until(lambda: "frozen 1" in events.read_text(), "frozen in its v2 cgroup")
            world.operator.thaw(["plain"])
            until(lambda: "frozen 0" in events.read_text(), "thawed")

            receipt = press_and_wait(world.state, world.run, world.instance, "all", "real", "tester", timeout_s=60)
            assert receipt.verified_zero and {t.outcome for t in receipt.targets} == {Outcome.PROVEN_ZERO}, receipt
            for container in held.values():
                until(lambda c=container: engine.pid(c) == 0, "the engine says so too")  # type: ignore[misc]
                gone = Path(f"/sys/fs/cgroup/unified/docker/{container}")
                until(lambda g=gone: not g.exists(), "its cgroup is removed")  # type: ignore[misc]
            time.sleep(1)  # whoever would come back by its restart policy would have
            assert not any(
                engine.pid(container) or Path(f"/sys/fs/cgroup/unified/docker/{container}").exists() for container in held.values()
            )
            assert engine.pid(stranger) == stranger_pid and processes.is_alive(stranger_pid)

            late, _ = engine.run(image, world.instance, "late", "/bin/sleep", "600")
            until(lambda: engine.pid(late) == 0, "what starts while killed is killed on its event")
            with pytest.raises(Killed):
                world.supervisor.ticket("late", "container", "contained")
    finally:
        engine.close()
        engine.made.clear()
        world.close()


@pytest.mark.engine
def test_processes_executed_into_a_container_die_with_it(docker: tuple[Docker, str], engine_socket: Path, state_dir: Path) -> None:
    engine, image = docker
    world = GuardWorld(state_dir, engine_socket=engine_socket)
    try:
        world.start()
        ticket = world.supervisor.ticket("boxed", "container", "contained")
        container, pid = engine.run(image, world.instance, "boxed", "/bin/sleep", "600")
        world.supervisor.confirm("boxed", ticket["generation"], pid, ticks(pid), container)
        mark = f"6{os.getpid()}"
        run = engine.ask("POST", f"/containers/{container}/exec", {"Cmd": ["/bin/sleep", mark], "AttachStdout": False})["Id"]
        engine.ask("POST", f"/exec/{run}/start", {"Detach": True})

        def inside() -> list[int]:
            return [p for p in processes.every_pid() if processes.command_line(p) == f"/bin/sleep {mark}"]

        until(inside, "it runs")
        receipt = press_and_wait(world.state, world.run, world.instance, ["boxed"], "exec", "tester", timeout_s=60)
        assert receipt.verified_zero and not [p for p in inside() if processes.is_alive(p)]
    finally:
        engine.close()
        engine.made.clear()
        world.close()


@pytest.mark.parametrize("mood", ["lies", "hangs"])
def test_a_lost_registry_never_hides_a_container(world: GuardWorld, mood: str) -> None:
    """Only the engine knows of it then. It is killed when the engine says so, and never called zero."""
    stub, container = EngineStub(world.state / "engine.sock", mood), None
    try:
        world.start()
        container = FakeContainer(world)
        ticket = world.supervisor.ticket("boxed", "container", "contained")
        world.supervisor.confirm("boxed", ticket["generation"], container.pid, ticks(container.pid), FAKE_ID)
        stub.containers[FAKE_ID] = {"pid": container.pid, "agent": "boxed", "instance": world.instance}
        world.kill_guard()
        (world.state / "guard" / "registry.json").unlink()
        receipt = press_without_guard(world.state, world.run, world.instance, "all", "lost", "t")
        assert not receipt.verified_zero and verdict(receipt).exit_code == 9
        assert processes.is_alive(container.pid) is (mood == "hangs")
    finally:
        stub.close()
        if container is not None:
            container.remove()
