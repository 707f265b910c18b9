"""Anchors: what is printed comes back, what is none is refused in words."""

from __future__ import annotations

from contextlib import closing

import pytest

from console.audit.anchors import Anchor, anchor_of, broken
from console.audit.database import open_reader
from console.audit.log import AuditLog
from console.audit.record import GENESIS
from console.domain.errors import UsageProblem


def test_what_is_printed_comes_back_and_holds(log: AuditLog) -> None:
    first = log.append("ann", "k", "one")
    log.append("ann", "k", "two")
    with closing(open_reader(log.path)) as connection:
        assert broken(connection, anchor_of(f" {Anchor(1, first.hash, '')}\n".upper())) == ""
        assert broken(connection, Anchor(0, GENESIS, "x")) == ""
        assert "record 2 is not the one that x names" in broken(connection, Anchor(2, first.hash, "x"))
        assert "record 3, which x names, is missing" in broken(connection, Anchor(3, first.hash, "x"))


@pytest.mark.parametrize(
    "text", ["", "1", "1:abc", f"-1:{'a' * 32}", f"1:{'a' * 31}", f"1:{'a' * 65}", f"1:{'g' * 32}", f"{'9' * 19}:{'a' * 32}", "\0"]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageProblem):
        anchor_of(text)
