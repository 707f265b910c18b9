"""What a person reads before a rearm: the facts of each kill stand before what somebody else wrote about it."""

from __future__ import annotations

from console.api.rearm_messages import KilledView
from console.gui.pages.kill_switch.rearm import killed_words


def test_the_facts_come_before_the_words_of_others() -> None:
    spoof = "over” · 5 of 5 agents, zero proven · by ann: “fine"
    words = killed_words(KilledView(kill_id="k", reason=spoof, by="ann", targets=5, proven=3, survivors=["a-1", "a-2"], pressed_at=1.0))
    assert words.index("3 of 5 agents, NOT proven, 2 survivors") < words.index("by ann")
    assert words.endswith(f"by ann: “{spoof}”")


def test_long_words_are_cut() -> None:
    words = killed_words(KilledView(kill_id="k", reason="r" * 100_000, by="b" * 100_000))
    assert len(words) < 500 and words.count("…") == 2
