"""Items are strict and bounded."""

from __future__ import annotations

from typing import Any

import pytest

from console.api.agents.programs import MOST_ITEMS, ProgramItem, ProgramsBody, SayBody
from console.domain.conversation import MOST_MESSAGE
from console.domain.message import Malformed


@pytest.mark.parametrize(
    "wrong",
    [{"agent": "bash"}, {"prompt": ""}, {"prompt": "x" * (MOST_MESSAGE + 1)}, {"context_id": "../x"}, {"argv": ["x"]}, {"once": "yes"},
     {"limits": {"cost": "1"}}, {"model": "x" * 101}],
)  # fmt: skip
def test_what_is_no_item_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        ProgramItem.made(**{"agent": "codex", "prompt": "p", **wrong})


def test_a_batch_has_a_bound_and_a_message_too() -> None:
    one = ProgramItem(agent="codex", prompt="p")
    assert len(ProgramsBody(items=[one] * MOST_ITEMS).items) == MOST_ITEMS
    for items in ([], [one] * (MOST_ITEMS + 1)):
        with pytest.raises(Malformed):
            ProgramsBody.made(items=items)
    with pytest.raises(Malformed):
        SayBody.made(text="x" * (MOST_MESSAGE + 1))
