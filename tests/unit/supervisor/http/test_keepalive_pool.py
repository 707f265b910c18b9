"""Connections that rest are bounded, of one door and of all; whoever asks again, or ends, rests no more."""

from __future__ import annotations

import resource

from console.supervisor.http import keepalive_pool
from console.supervisor.http.keepalive_pool import EACH, Resting


def rest(kept: Resting, door: str, name: str, ended: list[str]) -> None:
    kept.begin(door, name, lambda: ended.append(name))


def test_of_one_door_some_rest_and_the_oldest_gives_way() -> None:
    kept, ended = Resting(100), list[str]()
    for n in range(EACH + 2):
        rest(kept, "a", f"a{n}", ended)
    rest(kept, "b", "b0", ended)
    assert ended == ["a0", "a1"] and len(kept) == EACH + 1
    kept.over("a2")  # it asks
    rest(kept, "a", "a2", ended)  # and rests again: the youngest now
    assert kept.make_room("a") and ended[-1] == "a3"
    assert kept.make_room("b") and ended[-1] == "b0"
    assert not kept.make_room("b") and not kept.make_room("c")


def test_of_all_doors_so_many_rest_and_the_oldest_of_all_gives_way() -> None:
    kept, ended = Resting(3), list[str]()
    for door in "abcde":
        rest(kept, door, door, ended)
    assert ended == ["a", "b"] and len(kept) == 3
    kept.over("never")
    for door in "cde":
        kept.over(door)
    assert len(kept) == 0 and not kept._doors  # nothing is kept of those that ended


def test_it_is_never_more_than_a_quarter_of_what_may_be_open() -> None:
    assert Resting()._most <= min(keepalive_pool.ALL, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)


def test_whoever_ends_another_in_turn_is_no_trouble() -> None:
    kept, ended = Resting(2), list[str]()

    def end() -> None:
        ended.append("a")
        kept.over("a")  # as a closed connection tells it

    kept.begin("d", "a", end)
    rest(kept, "d", "b", ended)
    rest(kept, "d", "c", ended)
    assert ended == ["a"] and len(kept) == 2
