"""Exit codes of kills, on machines that are too busy to list all sockets within the 10 ms that a kill gives it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console.domain.errors import ExitCode
from console.domain.kill import Receipt, receipt_from_json
from console.domain.verdict import verdict


def code_in_time(receipt: Receipt | dict[str, Any]) -> ExitCode:
    """The exit code that this kill has when the list came in time. Whatever else the receipt holds counts as it does."""
    made = receipt if isinstance(receipt, Receipt) else receipt_from_json(receipt)
    return verdict(replace(made, connections_state="recorded")).exit_code


def is_done(code: int, said: str) -> bool:
    """Whether a verb that printed a receipt ended with 0, or with 8 for connections that were not recorded."""
    return code == ExitCode.DONE or (code == ExitCode.BEST_EFFORT and "connections not recorded" in said)
