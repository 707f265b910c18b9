"""Bodies as launch requests."""

from __future__ import annotations

import pytest

from console.api.messages import LaunchBody
from console.domain.agent import SandboxKind
from console.domain.budget import Limits
from console.domain.errors import UsageProblem
from console.domain.network import NetworkMode, Sensitivity
from console.services.routes.launch_body import limits_from, request_from


def test_every_field_arrives() -> None:
    body = LaunchBody(
        argv=["x", "y"], name="n", parent_id="p", context_id="c", sandbox="docker", sensitivity="SECRET", network_mode="NONE",
        limits={"cost": 1.5}, tree_limits={"tokens": 9}, env={"A": "b"},
    )  # fmt: skip
    request = request_from(body)
    assert (request.argv, request.name, request.parent_id, request.context_id) == (("x", "y"), "n", "p", "c")
    assert (request.sandbox, request.sensitivity, request.network_mode) == (SandboxKind.DOCKER, Sensitivity.SECRET, NetworkMode.NONE)
    assert (request.limits, request.tree_limits, request.env) == (Limits(cost_usd=1.5), Limits(tokens=9), (("A", "b"),))


@pytest.mark.parametrize("limits", [{"money": 1.0}, {"cost": -1.0}, {"cost": float("nan")}, {"cost": float("inf")}])
def test_limits_that_are_none_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(UsageProblem):
        limits_from(limits)
