"""What is open and what is over can be told apart by a row on disk alone."""

from __future__ import annotations

from console.domain.engine.event import LOOKED_OVER, NOT_ANSWERED, NOT_IN_RECORD, OPEN_END, STILL_RUNS, STOPPED, WENT


def test_reasons_of_an_open_end_begin_alike_and_no_other_does() -> None:
    assert all(why.startswith(OPEN_END) for why in (NOT_ANSWERED, STILL_RUNS, NOT_IN_RECORD))
    assert not any(why.startswith(OPEN_END) for why in (WENT, STOPPED, LOOKED_OVER))
