"""The Docker source against a real engine: containers of another instance are seen, our own are left out."""

from __future__ import annotations

import contextlib
import io
import secrets
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from console.sources.docker import LABEL_AGENT, LABEL_INSTANCE, DockerSource

pytestmark = pytest.mark.engine


def files_of(program: Path) -> list[Path]:
    """The program and the libraries it is linked with."""
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return [program, *(Path(word) for word in told.split() if word.startswith("/"))]


@pytest.fixture
def image(engine_socket: Path) -> Iterator[str]:
    """An image with one program, made here since nothing can be pulled."""
    client = docker.DockerClient(base_url=f"unix://{engine_socket}")
    tag = f"watchfloor-test-sources:{secrets.token_hex(4)}"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in files_of(Path("/usr/bin/sleep")):
            tar.add(file.resolve(), str(file))
    client.api.import_image_from_data(packed.getvalue(), repository=tag.partition(":")[0], tag=tag.partition(":")[2])
    try:
        yield tag
    finally:
        client.images.remove(tag, force=True)
        client.close()


@contextlib.contextmanager
def container(engine_socket: Path, image: str, labels: dict[str, str]) -> Iterator[str]:
    client = docker.DockerClient(base_url=f"unix://{engine_socket}")
    made = client.containers.run(image, ["/usr/bin/sleep", "60"], labels=labels, network_mode="none", detach=True)
    try:
        yield str(made.id)
    finally:
        made.remove(force=True)
        client.close()


def test_other_instances_agents_are_seen_with_their_process_and_our_own_are_not(engine_socket: Path, image: str) -> None:
    other = {LABEL_INSTANCE: secrets.token_hex(4), LABEL_AGENT: "visitor-1"}
    own = secrets.token_hex(4)
    with (
        container(engine_socket, image, other) as seen_id,
        container(engine_socket, image, {LABEL_INSTANCE: own, LABEL_AGENT: "mine"}) as own_id,
    ):
        source = DockerSource(engine_socket, own, timeout_s=60)
        report = source.look()
        assert report.available, report.reason
        mine = {s.container_id: s for s in report.sightings}
        assert own_id not in mine
        assert mine[seen_id].name == "visitor-1"
        assert mine[seen_id].status == "running"
        assert mine[seen_id].process is not None
        confined = DockerSource(engine_socket, own, lambda pid: False, timeout_s=60)
        assert confined.look().sightings == ()
    assert seen_id not in {s.container_id for s in source.look().sightings}
