"""The hardened set of a container, as data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.errors import UsageProblem
from console.domain.network import NetworkMode
from console.sandbox.containers.config import container_config
from console.sandbox.interface import LaunchSpec

SPEC = LaunchSpec(
    AgentId("a1"),
    ("/bin/agent", "--canary-argument"),
    {"AGENT_AUTH_TOKEN": "canary"},
    Path("/w"),
    Path("/run/agents/a1.sock"),
    Path("/out"),
    NetworkMode.PROXIED,
    labels={"io.watchfloor.instance": "12345678", "io.watchfloor.agent": "somebody-else"},
)


def test_every_part_of_the_hardened_set_is_there() -> None:
    config = container_config(SPEC, "image:1", Path("/control"))
    host = config["HostConfig"]
    assert config["User"] == "65534:65534"
    assert config["Labels"]["io.watchfloor.agent"] == "a1"
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] is True and host["Privileged"] is False
    assert host["CapDrop"] == ["ALL"] and "CapAdd" not in host
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["RestartPolicy"]["Name"] == "no"
    assert host["PidsLimit"] > 0 and host["Memory"] > 0 and host["MemorySwap"] == host["Memory"]
    assert set(host["Tmpfs"]["/tmp"].split(",")) >= {"noexec", "nosuid", "nodev"}
    writable = [mount["Target"] for mount in host["Mounts"] if not mount["ReadOnly"]]
    assert writable == ["/w"]


def test_neither_secrets_nor_arguments_stand_in_the_configuration() -> None:
    assert "canary" not in str(container_config(SPEC, "image:1", Path("/control")))


def test_full_is_the_default_bridge() -> None:
    config = container_config(replace(SPEC, network_mode=NetworkMode.FULL), "image:1", Path("/control"))
    assert config["HostConfig"]["NetworkMode"] == "bridge"


def test_an_unlabelled_container_and_an_engines_socket_are_refused() -> None:
    with pytest.raises(UsageProblem):
        container_config(replace(SPEC, labels={}), "image:1", Path("/control"))
    for name in ("docker.sock", "containerd.sock", "podman.sock"):
        with pytest.raises(UsageProblem):
            container_config(replace(SPEC, extra_binds=((Path("/run") / name, "/x"),)), "image:1", Path("/control"))
