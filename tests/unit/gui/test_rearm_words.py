"""What a person reads before a rearm: the facts of each kill stand before what somebody else wrote about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from console.api.rearm import KilledView
from console.gui.models.switch import Switch
from console.gui.pages.kill_switch.rearm import killed_words, still_open


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


def test_a_remote_order_is_named_by_its_numbers_and_says_what_to_do_first() -> None:
    view = SimpleNamespace(remote_latched=["1/1795720056166792:sha256:cd857868f2a4ff"])
    words = still_open(cast(Switch, SimpleNamespace(receipt=None, view=view)))[-1]
    assert words == (
        "New agents are blocked by remote order 1/1795720056166792. End it in a terminal: "
        "watchfloor remote release --reason … Then rearm here."
    )
