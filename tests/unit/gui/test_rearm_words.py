"""What a person reads before a rearm: the facts of each kill stand before what somebody else wrote about it."""

from __future__ import annotations

from console.api.rearm import KilledView
from console.gui.pages.kill_switch.rearm import killed_words


def test_the_facts_come_before_the_words_of_others() -> None:
    spoof = "over” · 5 of 5 agents, zero proven · by ann: “fine"
    words = killed_words(
        KilledView(kill_id="k", reason=spoof, by="ann", headline="NOT PROVEN: 2 of 5 agents may still run.", pressed_at=1.0)
    )
    assert words.index("NOT PROVEN: 2 of 5 agents may still run.") < words.index("By ann")
    assert words.endswith(f"By ann: “{spoof}”")


def test_long_words_are_cut() -> None:
    words = killed_words(KilledView(kill_id="k", reason="r" * 100_000, by="b" * 100_000, headline="h" * 100_000))
    assert len(words) < 1100 and words.count("…") == 3
