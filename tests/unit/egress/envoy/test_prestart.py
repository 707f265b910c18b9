"""One spare is kept, handed out once, renewed behind whoever took it, and ended when nobody wants one any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from console.domain.errors import ConsoleError
from console.egress.envoy import prestart as warm
from console.egress.envoy.prestart import Warm


class Made:
    """A spare that says what became of it."""

    def __init__(self) -> None:
        self.lives, self.discarded = True, False

    def waits(self) -> bool:
        return self.lives

    def discard(self) -> None:
        self.discarded = True


def ready(kept: Warm[Made]) -> Made:
    until = time.monotonic() + 30
    while (spare := kept._spare) is None:
        assert time.monotonic() < until
        time.sleep(0.005)
    return spare


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "REFILL_S", 0.0)


def test_whoever_comes_first_has_it_at_once_and_the_next_is_another() -> None:
    kept = Warm("it", Made)
    kept.open()
    first = ready(kept)
    assert kept.take() is first
    second = ready(kept)
    assert second is not first and kept.take() is second
    kept.close()
    assert not first.discarded and not second.discarded


def test_a_dead_spare_is_never_handed_out() -> None:
    kept = Warm("it", Made)
    kept.open()
    dead = ready(kept)
    dead.lives = False
    assert kept.take() is not dead and dead.discarded
    kept.close()


def test_closed_it_keeps_none_and_still_makes_one_for_who_asks() -> None:
    kept = Warm("it", Made)
    kept.open()
    spare = ready(kept)
    kept.close()
    assert spare.discarded and kept._spare is None
    assert kept.take().lives
    assert kept._spare is None and kept._filler is None


def test_one_that_is_made_while_it_closes_is_ended() -> None:
    begun, go_on = threading.Event(), threading.Event()
    made: list[Made] = []

    def slowly() -> Made:
        begun.set()
        assert go_on.wait(30)
        made.append(Made())
        return made[0]

    kept = Warm("it", slowly)
    kept.open()
    assert begun.wait(30)
    closing = threading.Thread(target=kept.close)
    closing.start()
    go_on.set()
    closing.join()
    assert made[0].discarded


def test_who_needs_one_is_told_why_there_is_none() -> None:
    def fails() -> Made:
        raise ConsoleError("No process can be started.", "Wait.")

    kept = Warm[Made]("it", fails)
    kept.open()
    take: Callable[[], Made] = kept.take
    with pytest.raises(ConsoleError, match="No process"):
        take()
    kept.close()
