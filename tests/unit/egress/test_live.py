"""When an edit takes something away, and what an edit writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.domain.network import EVERYTHING, Allowlist, AllowlistEntry, Narrowing
from console.egress.envoy.admin import Taken
from console.egress.envoy.fragments import Slot, Surroundings
from console.egress.live import LiveConfig, shrank

ONE = AllowlistEntry("e1", "a.test", 80, ("GET",), ("/v1",), "reason", "owner", private_networks=("10.0.0.0/8",))
TWO = AllowlistEntry("e2", "b.test", reason="reason", owner="owner")


def test_additions_and_paperwork_take_nothing_away() -> None:
    assert not shrank(Allowlist(), Allowlist(1, (ONE,)))
    assert not shrank(Allowlist(1, (ONE,)), Allowlist(2, (TWO, ONE)))
    assert not shrank(Allowlist(1, (ONE,)), Allowlist(2, (replace(ONE, reason="other", owner="x", review_by="2030-01-01", entry_id="e9"),)))


@pytest.mark.parametrize("change", [{"host": "c.test"}, {"port": 81}, {"methods": ()}, {"paths": ("/v1", "/v2")}, {"private_networks": ()}])
def test_every_other_change_counts_as_a_shrink(change: dict[str, object]) -> None:
    assert shrank(Allowlist(1, (ONE,)), Allowlist(2, (replace(ONE, **change),)))  # type: ignore[arg-type]


def test_removal_is_a_shrink() -> None:
    assert shrank(Allowlist(1, (ONE, TWO)), Allowlist(2, (ONE,)))
    assert shrank(Allowlist(1, (ONE,)), Allowlist())


class Envoy:
    """Files and counters of an Envoy that takes everything at once."""

    def __init__(self) -> None:
        self.taken_of: dict[str, Taken] = {}
        self.writes: list[set[str]] = []
        self.breaks = False

    def write(self, version: str, clusters: object, routes: dict[Slot, object], listeners: object) -> None:
        if self.breaks:
            raise OSError("no space left")
        names = {s.name for s in routes} | ({"cds"} if clusters is not None else set()) | ({"lds"} if listeners is not None else set())
        self.writes.append(names)
        self.taken_of |= dict.fromkeys(names, Taken(version))

    def remove_routes(self, slot: Slot) -> None:
        del self.taken_of[slot.name]

    def taken(self) -> dict[str, Taken]:
        return dict(self.taken_of)

    def envoy_log_size(self) -> int:
        return 0


def test_an_edit_writes_what_it_changes_and_no_more() -> None:
    envoy: Any = Envoy()
    live, around = LiveConfig(envoy, envoy, lambda _entries: None), Surroundings()
    live.add("a1")
    live.add("a2")
    assert envoy.writes == [{"cds", "lds", "s1"}, {"cds", "lds", "s2"}]
    live.put(Allowlist(1, (TWO,)), around)
    assert envoy.writes[-1] == {"s1", "s2"}
    live.put(Allowlist(2, (TWO,)), around)
    assert envoy.writes[-1] == set()
    live.put(Allowlist(3, (TWO, replace(TWO, host="c.test", private_networks=("10.0.0.0/8",)))), around)
    assert envoy.writes[-1] == {"lds", "s1", "s2"}  # the gates judge the networks of tunnels
    live.remove("a1")
    assert envoy.writes[-1] == {"cds", "lds"}
    live.restart()
    live.add("a3")
    assert envoy.writes[-1] == {"cds", "lds", "s3"}


def test_after_a_write_that_failed_nothing_is_taken_for_written() -> None:
    envoy: Any = Envoy()
    live, around = LiveConfig(envoy, envoy, lambda _entries: None), Surroundings()
    live.add("a1")
    envoy.breaks = True
    with pytest.raises(OSError, match="no space"):
        live.put(Allowlist(1, (TWO,)), around)
    assert live.allowlist == Allowlist()
    envoy.breaks = False
    live.put(Allowlist(1, (TWO,)), around)
    assert envoy.writes[-1] == {"cds", "lds", "s1"}


def test_the_name_server_answers_for_a_model_as_long_as_a_sandbox_has_it_and_for_both_lists_of_a_change() -> None:
    envoy: Any = Envoy()
    told: list[list[str]] = []
    live = LiveConfig(envoy, envoy, lambda entries: told.append([entry.host for entry in entries]))
    other = replace(TWO, host="other.test")
    live.put(Allowlist(1, (TWO,)), Surroundings())
    live.add("a1", Narrowing(only=(EVERYTHING,), own=("model.test",)))
    assert told[-1] == [TWO.host, "model.test"]
    live.put(Allowlist(2, (other,)), Surroundings())
    assert told[-2:] == [[TWO.host, "other.test", "model.test"], ["other.test", "model.test"]]
    envoy.breaks = True
    with pytest.raises(OSError, match="no space"):
        live.put(Allowlist(3, (TWO,)), Surroundings())
    assert told[-1] == ["other.test", "model.test"], "the list that stayed"
    envoy.breaks = False
    live.remove("a1")
    assert told[-1] == ["other.test"]
