"""Containers that died while no supervisor ran, on a real engine: they go once nothing about them is open, and no evidence with them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import APIClient

from tests.fakes.instance import Instance, until

pytestmark = pytest.mark.engine


@pytest.fixture
def engine(engine_socket: Path) -> Iterator[APIClient]:
    client = APIClient(base_url=f"unix://{engine_socket}", version="auto", timeout=60)
    yield client
    client.close()


def boxes(engine: APIClient, it: Instance) -> dict[str, str]:
    """Agent to state of every container of the instance."""
    found = engine.containers(all=True, filters={"label": f"io.watchfloor.instance={it.places.instance_id}"})
    return {c["Labels"]["io.watchfloor.agent"]: c["State"] for c in found}


def test_what_was_killed_while_no_supervisor_ran_goes_at_the_next_start_but_not_while_killed(
    state_dir: Path, engine_socket: Path, engine: APIClient
) -> None:
    from console.killswitch.client.guard_client import GuardClient

    with Instance(state_dir, "--engine-socket", str(engine_socket)) as it:
        one, two = (it.python("print('last words', flush=True); time.sleep(600)", sandbox="docker") for _ in range(2))
        it.says(one, "last words")
        it.says(two, "last words")
        other = engine.create_container_from_config(  # type: ignore[no-untyped-call]
            {
                "Image": engine.inspect_container(it.agent(one).container_id)["Image"],
                "Cmd": ["true"],
                "Labels": {"io.watchfloor.instance": it.places.instance_id, "io.watchfloor.agent": one},
            }
        )["Id"]
        engine.start(other)  # it says that it is an agent's; nobody here started it
        it.stop(signal.SIGKILL)
        guard = GuardClient(it.places.guard_sock, timeout_s=60)
        guard.press([one], "while nobody looked", "test", timeout_s=60)
        until(lambda: boxes(engine, it)[one] == "exited")
        (it.places.output_dir / f"{one}.log").write_text("")
        it.start()
        until(lambda: it.agent(one).container_id not in {c["Id"] for c in engine.containers(all=True)}, words="it is taken away")
        assert "last words" in it.output(one), "what it wrote is kept"
        assert it.agent(one).state in ("killed", "lost") and it.agent(two).state == "running"
        until(lambda: [r.scope for r in it.api.receipts().receipts] == [one])
        assert engine.inspect_container(other)["State"]["Status"] == "exited"
        until(lambda: "container.removed" in [r.kind for r in it.api.audit(limit=50).rows])
        it.stop(signal.SIGKILL)
        guard.press("all", "everything", "test", timeout_s=60)
        until(lambda: boxes(engine, it)[two] == "exited")
        guard.close()
        it.start()
        until(lambda: all(r.complete for r in it.api.receipts().receipts) and it.agent(two).state == "killed")
        assert it.api.fleet().killed and it.agent(two).container_id in {c["Id"] for c in engine.containers(all=True)}
        it.api.rearm("seen")
        until(lambda: it.agent(two).container_id not in {c["Id"] for c in engine.containers(all=True)}, words="it goes after the rearm")
        engine.remove_container(other, force=True)
