"""Values of the wire: what an operator writes is checked where it comes in."""

from __future__ import annotations

import pytest

from console.api.messages import AllowlistEntryBody
from console.domain.errors import UsageProblem
from console.supervisor.views import entry_from_body


def body(review_by: str) -> AllowlistEntryBody:
    return AllowlistEntryBody(host="api.example.com", reason="x", owner="me", review_by=review_by)


@pytest.mark.parametrize("review_by", ["2020-13-40", "soon", "2027-02-30"])
def test_a_review_date_that_is_none_is_refused(review_by: str) -> None:
    with pytest.raises(UsageProblem, match="not a date"):
        entry_from_body("e1", body(review_by))


def test_a_review_date_is_kept_and_may_be_left_out() -> None:
    assert [entry_from_body("e1", body(words)).review_by for words in ("2027-02-19", "")] == ["2027-02-19", ""]
