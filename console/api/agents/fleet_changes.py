"""What an ``agents`` delta says, read once: whole agents, and of known ones only the fields that changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

import msgspec
from msgspec.structs import fields

from console.api.messages import AgentView
from console.domain.message import prepare

CHUNK = 500
"""Agents in one message at most, so that reading one never takes long."""
QUIET = frozenset(
    (
        "cost_usd", "usage", "limits", "tree_usage", "tree_limits", "budget_share", "burn_usd_per_h", "burn", "pids", "last_action",
        "last_action_at", "children_live",
    )
)  # fmt: skip
"""Fields that move all the time and change neither the place of a row nor what it is counted under, as long as it is not near a cap."""
NEAR = 0.75
"""From this share of a cap on an agent is near it, and wants attention."""

_Fields: Any = cast(Any, TypedDict)("_Fields", {one.name: one.type for one in fields(AgentView) if one.name != "id"}, total=False)


class _Data(TypedDict, total=False):
    upsert: list[AgentView]
    patch: list[tuple[str, _Fields]]
    remove: list[str]
    spend_today_usd: float
    burn_usd_per_h: float


Patch = tuple[str, dict[str, Any]]


@dataclass(slots=True)
class FleetChanges:
    """One ``agents`` delta, checked. A patch only speaks of an agent whose whole view came before."""

    seq: int
    upsert: list[AgentView] = field(default_factory=list)
    quiet: list[Patch] = field(default_factory=list)
    """Only fields of QUIET, and not near a cap."""
    loud: list[Patch] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    spend_today_usd: float | None = None
    burn_usd_per_h: float | None = None


def read_changes(seq: int, text: bytes | str) -> FleetChanges:
    """Of a delta's data as it came. Raises ValueError."""
    prepare(_Data)
    return _sorted_out(seq, msgspec.json.decode(text, type=_Data))


def changes_of(seq: int, data: dict[str, Any]) -> FleetChanges:
    """The same of what was read already."""
    prepare(_Data)
    return _sorted_out(seq, msgspec.convert(data, _Data))


def _sorted_out(seq: int, data: _Data) -> FleetChanges:
    found = FleetChanges(
        seq,
        data.get("upsert", []),
        remove=data.get("remove", []),
        spend_today_usd=data.get("spend_today_usd"),
        burn_usd_per_h=data.get("burn_usd_per_h"),
    )
    for patch in data.get("patch", ()):
        changed = patch[1]
        is_quiet = changed.keys() <= QUIET and not changed.get("budget_share", 0.0) >= NEAR
        (found.quiet if is_quiet else found.loud).append(patch)
    return found
