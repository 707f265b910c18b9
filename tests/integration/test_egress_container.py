"""Envoy in a container of a real engine: what it holds, and that a sandbox has no network whenever it does not serve."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient

from console.domain.errors import ConsoleError, Unavailable
from console.domain.network import Allowlist
from console.egress import live
from console.egress.envoy import config
from console.egress.envoy import process as envoy_process
from console.egress.envoy.container import FILE, LABEL, WHERE, find_image, note, noted
from console.egress.service import Egress
from console.sandbox.containers.image import ensure_image
from tests.fakes.egress_box import Box
from tests.fakes.egress_stage import entry
from tests.fakes.instance import ROOT, until

pytestmark = [pytest.mark.envoy, pytest.mark.engine]

BRIDGE = "172.16.0.0/12"
SITE = """
import socket, threading
def one(peer):
    with peer:
        while b"slow" in peer.recv(65536):
            peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 100000\\r\\n\\r\\n")
            while True:
                peer.sendall(b".")
                threading.Event().wait(0.05)
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 19\\r\\nConnection: close\\r\\n\\r\\nhello from upstream")
with socket.create_server(("", 80)) as server:
    while True:
        threading.Thread(target=one, args=(server.accept()[0],), daemon=True).start()
"""


@dataclass
class World:
    """An Egress whose Envoy is a container, and a site in another container that it reaches over the engine's bridge."""

    egress: Egress
    engine: APIClient
    folder: Path
    socket: str
    web: str

    def envoy(self) -> dict[str, Any]:
        """The engine's word on the container that serves."""
        (one,) = (c for c in self.engine.containers(filters={"label": LABEL}) if str(self.folder) in str(c["Mounts"]))
        return dict(self.engine.inspect_container(one["Id"]))


@pytest.fixture(scope="module")
def none_installed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envoy_process, "find_envoy", lambda: (None, "there is no envoy"))
        yield


def engine_network(engine: APIClient) -> Path:
    """Where containers with the host's network are: an engine of the tests has a network namespace of its own. Its docker0 keeps it."""
    host: dict[str, Any] = {"host_config": engine.create_host_config(network_mode="host"), "labels": {LABEL + ".test": "host"}}
    one = engine.create_container(ensure_image(engine), ["python3", "-I", "-c", "import time; time.sleep(600)"], **host)["Id"]
    engine.start(one)
    try:
        inode = os.stat(f"/proc/{engine.inspect_container(one)['State']['Pid']}/ns/net").st_ino  # noqa: PTH116
        for pid in (name for name in os.listdir("/proc") if name.isdigit()):
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/net").st_ino == inode and pid != str(engine.inspect_container(one)["State"]["Pid"]):  # noqa: PTH116
                    return Path(f"/proc/{pid}/ns/net")
    finally:
        engine.remove_container(one, force=True, v=True)
    raise AssertionError("the engine's own network is not to be seen from here")


@pytest.fixture(scope="module")
def world(none_installed: None, engine_socket: Path) -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="pytest-of-envoy-"))
    words = [str(ROOT / "envoy" / "build_image.py"), "--engine", f"unix://{engine_socket}", "--state-dir", str(folder)]
    built = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    engine = APIClient(base_url=f"unix://{engine_socket}", version="1.41", timeout=120)
    config: dict[str, Any] = {"labels": {LABEL + ".test": "site"}, "host_config": engine.create_host_config(network_mode="bridge")}
    web = engine.create_container(ensure_image(engine), ["python3", "-I", "-c", SITE], name=f"site-{secrets.token_hex(4)}", **config)["Id"]
    engine.start(web)
    address = engine.inspect_container(web)["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
    hosts = {"site.test": [address], "own.test": ["127.0.0.1"]}
    netns = engine_network(engine)
    egress = Egress(
        folder / "egress", folder / "run", lambda _: None, hosts=hosts, netns=netns, engine=str(engine_socket), state_dir=folder
    )
    try:
        egress.start()
        listed = Allowlist(1, (entry("e1", "site.test", 80, networks=BRIDGE), entry("e2", "own.test", 80)))
        applied = egress.apply(listed)
        assert applied.ok, applied.words
        yield World(egress, engine, folder / "egress", str(engine_socket), web)
    finally:
        egress.stop()
        left = engine.containers(all=True, filters={"label": LABEL})
        engine.remove_container(web, force=True, v=True)
        engine.close()
        shutil.rmtree(folder)
        assert not [c for c in left if str(folder) in str(c["Mounts"])]


@pytest.fixture
def box(world: World) -> Iterator[Box]:
    made = Box()
    try:
        world.egress.attach("a1", made.pid, made.start_ticks, False)
        yield made
    finally:
        made.stop()
        world.egress.detach("a1")


def test_it_serves_and_holds_nothing_but_the_egress_folder(world: World, box: Box) -> None:
    assert box.get("http://site.test/").endswith("hello from upstream")
    assert "Destination not in allowlist" in box.get("http://evil.test/")
    assert "private, own or metadata" in box.get("http://own.test/")
    state, words = world.egress.health()
    assert state == "healthy" and "image watchfloor-envoy" in words
    seen = world.envoy()
    host = seen["HostConfig"]
    mounts = {m["Destination"]: (m["Source"], m["RW"]) for m in seen["Mounts"]}
    writable = {f"{WHERE}/{name}": (str(world.folder / name), True) for name in ("sock", "admin", "log")}
    assert mounts == {WHERE: (str(world.folder), False)} | writable
    assert (host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"], host["RestartPolicy"]["Name"]) == (True, ["ALL"], False, "no")
    assert "no-new-privileges:true" in host["SecurityOpt"] and seen["Config"]["User"] == "65532:65532"
    status = Path(f"/proc/{seen['State']['Pid']}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert [fields[f] for f in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp")] == ["0" * 16, "0" * 16, "1", "2"]
    assert fields["Uid"].split() == ["65532"] * 4


def test_no_image_counts_but_the_one_that_was_built_for_this_instance(world: World, state_dir: Path) -> None:
    ours, words = find_image(world.socket, world.folder.parent)
    assert ours == world.envoy()["Image"] and words.endswith("built for this instance")
    assert find_image(world.socket, state_dir) == ("", f"no image was built for this instance (there is no {FILE} in {state_dir})")
    assert find_image(world.socket, None)[0] == ""
    built, _ = noted(world.folder.parent)
    assert built is not None
    with io.BytesIO() as empty:
        tarfile.open(fileobj=empty, mode="w").close()
        changes = [f"LABEL {LABEL}={built.envoy}"]
        world.engine.import_image_from_data(empty.getvalue(), repository="watchfloor-envoy", tag="newest", changes=changes)
    (fake,) = (image["Id"] for image in world.engine.images("watchfloor-envoy:newest"))
    try:
        assert find_image(world.socket, world.folder.parent)[0] == ours
        note(state_dir, replace(built, image=fake))
        assert "is not the one that was built" in find_image(world.socket, state_dir)[1]
        note(state_dir, replace(built, recipe="0" * 64))
        assert find_image(world.socket, state_dir) == ("", "its image was built by another recipe than the one that is here")
        note(state_dir, replace(built, image="sha256:" + "0" * 64))
        assert "does not have the image" in find_image(world.socket, state_dir)[1]
    finally:
        world.engine.remove_image(fake, force=True)


def test_its_own_validation_has_the_last_word(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Allowlist(9, (entry("e1", "site.test", 80), entry("e9", "site.test", 80, "GET")))
    assert world.egress.validate(twice).ok
    monkeypatch.setattr("console.egress.envoy.config._destinations", lambda a: [(e.host, e.port) for e in a.entries])
    said = world.egress.validate(twice)
    assert not said.ok and "domain" in said.words.lower()


def test_killed_in_the_middle_the_sandbox_has_no_network_until_it_serves_again(world: World, box: Box) -> None:
    assert box.hold(host="site.test") == "streaming"
    first = world.envoy()
    envoy = world.egress._envoy._kept.process
    assert envoy is not None and envoy.pid == first["State"]["Pid"]
    envoy.kill()
    assert box.held() == [False]
    until(lambda: box.raw(b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n").endswith("upstream"), 90, "it serves again")
    assert world.envoy()["Id"] != first["Id"]
    assert "Destination not in allowlist" in box.get("http://evil.test/")
    until(lambda: world.egress.health()[0] == "healthy", 90, "it is said to be healthy")
    applied = world.egress.apply(Allowlist(10, (entry("e1", "site.test", 80, networks=BRIDGE),)))
    assert applied.ok, applied.words


def test_stopped_in_the_middle_nothing_passes_and_it_is_not_called_healthy(world: World, box: Box) -> None:
    seen = world.envoy()
    world.engine.pause(seen["Id"])
    try:
        assert "hello" not in box.raw(b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", wait=2)
        until(lambda: world.egress.health()[0] != "healthy", 90, "it is not called healthy")
    finally:
        world.engine.unpause(seen["Id"])
    until(lambda: box.raw(b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n").endswith("upstream"), 90, "it goes on")


def test_what_it_says_is_kept_where_it_cannot_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "route_config", lambda *given: config.route_config(*given) | {"virtual_hots": []})
    monkeypatch.setattr(live, "CONFIRM_S", 5.0)
    made = Box()
    try:
        with pytest.raises(ConsoleError, match="virtual_hots"):
            world.egress.attach("a2", made.pid, made.start_ticks, False)
    finally:
        made.stop()
    log = world.folder / "envoy.log"
    assert "virtual_hots" in log.read_text() and log.stat().st_uid == os.geteuid() and not log.stat().st_mode & 0o022


def test_a_container_of_a_supervisor_that_was_killed_is_replaced(world: World) -> None:
    seen = world.envoy()
    world.egress._envoy.stop()
    stale = world.engine.create_container(seen["Image"], ["/envoy", "--version"], name=seen["Name"].lstrip("/"), labels={LABEL: "stale"})[
        "Id"
    ]
    assert world.egress._envoy.start()
    assert world.envoy()["Id"] != stale
    assert stale not in {c["Id"] for c in world.engine.containers(all=True)}


def test_an_engine_in_another_network_serves_nothing_and_it_is_said(world: World, box: Box) -> None:
    containers = world.egress._envoy._containers
    assert containers is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envoy_process, "_READY_S", 2.0)
        patch.setattr(containers, "_netns", Path(f"/proc/{box.pid}/ns/net"))
        world.egress._envoy.stop()
        try:
            assert not world.egress._envoy.start()
            until(lambda: "another network namespace" in world.egress.health()[1], 90, "it is said")
            assert world.egress.health()[0] == "failed"
        finally:
            world.egress._envoy.stop()
    assert world.egress._envoy.start()


def test_without_an_image_it_is_said_what_is_missing(none_installed: None, state_dir: Path, engine_socket: Path) -> None:
    for engine in (str(engine_socket), str(state_dir / "nosuch.sock"), "tcp://elsewhere:2375"):
        egress = Egress(state_dir / "egress", state_dir / "run", lambda _: None, engine=engine, state_dir=state_dir)
        assert not egress.available().ok and "envoy/build_image.py" in egress.available().remedy
        assert not egress.validate(Allowlist()).ok
        with pytest.raises(Unavailable):
            egress.start()
