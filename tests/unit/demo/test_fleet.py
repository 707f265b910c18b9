"""The demo's cast."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.demo import fleet as demo_fleet
from console.demo import web as demo_web
from console.demo.fleet import Toy, allowlist_entry, box_launch, root_launch, trees
from console.domain.network import AllowlistEntry
from console.integrations import client


def depth(toy: Toy) -> int:
    return 1 + max((depth(child) for child in toy.children), default=0)


def every(toy: Toy) -> list[Toy]:
    return [toy, *(below for child in toy.children for below in every(child))]


@pytest.mark.parametrize("agents", [1, 16, 40, 150, 500])
def test_trees_stay_within_depth_and_children_and_grow_to_what_was_asked(agents: int) -> None:
    cast = [tree for tree, _ in trees(agents)]
    assert [tree.name for tree in cast[:3]] == list(demo_fleet.ROOTS)
    for tree in cast:
        assert all(len(toy.children) <= demo_fleet.MAX_CHILDREN for toy in every(tree))
        assert depth(tree) <= (4 if tree.name == demo_fleet.ROOTS[0] else 3)  # never-born would be at depth 4
    assert all(len(tree.children) < demo_fleet.MAX_CHILDREN for tree in cast[:3])  # its box is a child too
    assert sum(tree.count() for tree in cast) - 1 + len(demo_fleet.BOXES) == max(agents, 15)


def test_every_toy_exists_and_every_name_is_its_own() -> None:
    cast = [toy for tree, _ in trees(200) for toy in every(tree)]
    assert len({toy.name for toy in cast}) == len(cast)
    folder = Path(client.__file__).parent / "toys"
    assert all((folder / f"{toy.toy}.py").is_file() for toy in cast)
    assert {level for _, level in trees(1)} == {"PUBLIC", "CONFIDENTIAL", "SECRET"}


def test_children_travel_inside_their_parents_command_line() -> None:
    leaf = Toy("leaf", "spender", limits={"cost_usd": 0.5})
    argv = Toy("root", "planner", ("--step", "2"), children=[Toy("mid", "planner", children=[leaf])]).argv("/t", 30)
    assert argv[:5] == ["python3", "/t/toys/planner.py", "--seconds", "30", "--step"]
    mid = json.loads(argv[-1])
    assert (mid["name"], mid["toy"]) == ("mid", "planner")
    told = json.loads(mid["args"][-1])
    assert told == {"toy": "spender", "args": ["--seconds", "30"], "name": "leaf", "limits": {"cost_usd": 0.5}}


def test_launches_are_bodies_the_supervisor_takes() -> None:
    for tree, level in trees(120):
        body = root_launch(tree, level, Path("/tmp/toys"), 600)
        assert body.sensitivity == level
        assert sum(len(word) for word in body.argv) < 100_000
    box = box_launch("box-none", "NONE", "docker", "a-1", 60)
    assert (box.parent_id, box.sandbox, box.network_mode) == ("a-1", "docker", "NONE")
    assert "$WATCHFLOOR_TOYS/toys/reacher.py" in box.argv[2]


def test_the_allowlist_entry_is_acceptable_and_covers_the_one_host_only() -> None:
    body = allowlist_entry()
    entry = AllowlistEntry(
        "e1",
        body.host,
        body.port,
        tuple(body.methods),
        tuple(body.paths),
        body.reason,
        body.owner,
        private_networks=tuple(body.private_networks),
    )
    entry.check()
    assert entry.covers_host(demo_web.ALLOWED)
    assert not entry.covers_host(demo_web.FORBIDDEN)
