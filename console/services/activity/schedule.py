"""Choose whose files are read in a turn.

Read are:

* agents of which a watch reported a change;
* agents that no watch covers;
* now and then every agent, because watches can lose events.
"""

from __future__ import annotations

from collections.abc import Iterable

from console.sources.activity.files import AgentFiles, Whereabouts
from console.sources.change_tracker import Freshness

LOST_S = 2.0
"""Between two turns in which everybody is looked at because watches lapsed."""
Followed = tuple[str, Whereabouts]
"""(agent id, where its files are); one agent may have had several sessions."""


class Turns:
    """For one thread."""

    __slots__ = ("_fresh", "_untold", "_rests", "_places", "_by_place", "_number", "_lapsed", "_all_at")

    def __init__(self, fresh: Freshness) -> None:
        self._fresh = fresh
        self._number, self._lapsed, self._all_at = 0, fresh.lapsed, -1e9
        """Up to where the watches were heard, how often they had lapsed, and when everybody was looked at because of that."""
        self._untold: set[Followed] = set()
        """Those who are looked at in the next turn."""
        self._rests: dict[Followed, float] = {}
        """Until when the others are not, unless a watch tells of them, in monotonic seconds; who rests longest comes last."""
        self._places: dict[Followed, tuple[str, ...]] = {}
        self._by_place: dict[str, set[Followed]] = {}
        """Where a watch would tell of them, and the same by place."""

    def due(self, tick: float) -> list[Followed]:
        """Who may have something new."""
        self._number, changed = self._fresh.since(self._number)
        for place in changed & self._by_place.keys():
            self._untold |= self._by_place[place]
        if self._lapsed != self._fresh.lapsed and tick - self._all_at >= LOST_S:
            self._lapsed, self._all_at = self._fresh.lapsed, tick
            self._untold.update(self._rests)
        for one, until in self._rests.items():
            if until > tick:
                break
            self._untold.add(one)
        return list(self._untold)

    def begin(self, new: Iterable[Followed]) -> None:
        """Follow these agents from now on, or read them again in the next turn."""
        self._untold.update(new)

    def rest(self, one: Followed, files: AgentFiles) -> None:
        """Nothing of the agent is new. Where a watch covers its files, they are not read before the watch reports a change."""
        if not files.is_told:
            return
        self._untold.discard(one)
        if self._rests.get(one) != files.told_until:
            self._rests.pop(one, None)
            self._rests[one] = files.told_until
        places = files.places()
        if self._places.get(one) is not places:
            self._forget_places(one)
            self._places[one] = places
            for place in places:
                self._by_place.setdefault(place, set()).add(one)

    def end(self, one: Followed) -> None:
        """It is followed no more."""
        self._untold.discard(one)
        self._rests.pop(one, None)
        self._forget_places(one)

    def _forget_places(self, one: Followed) -> None:
        for place in self._places.pop(one, ()):
            there = self._by_place[place]
            there.discard(one)
            if not there:
                del self._by_place[place]
