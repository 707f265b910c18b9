"""What no adapter can start is refused before anything is made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.agent import AgentId
from console.domain.errors import UsageProblem
from console.domain.network import NetworkMode
from console.sandbox.interface import LaunchSpec

SPEC = LaunchSpec(
    AgentId("a1"), ("/bin/true",), {"A": "b"}, Path("/w"), Path("/run/agents/a1.sock"), Path("/out"), NetworkMode.NONE, uid=1000, gid=1000
)


def test_a_plain_launch_passes() -> None:
    SPEC.check()
    replace(SPEC, argv=("x", "\u202e", "a\nb", "\udcff", "x" * 100_000)).check()


@pytest.mark.parametrize(
    "change",
    [
        {"argv": ()},
        {"argv": ("",)},
        {"argv": ("a", "b\0")},
        {"argv": ("a", "x" * 131_072)},
        {"argv": ("a", *["x" * 130_000] * 8)},
        {"argv": ("a", "\ud800")},
        {"env": {"A": "\0"}},
        {"env": {"": "x"}},
        {"env": {"A=B": "x"}},
        {"env": {"A\0": "x"}},
        {"agent_id": AgentId("../x")},
        {"agent_id": AgentId("")},
    ],
)
def test_what_cannot_be_started_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UsageProblem):
        replace(SPEC, **change).check()  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"uid": 0}, {"gid": 0}])
def test_root_never_starts_an_agent_as_root(change: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UsageProblem):
        replace(SPEC, **change).check()  # type: ignore[arg-type]
