"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """``1 agent``, ``2 agents``, ``1,000 agents``; ``many`` where an s does not make it (``process``, ``processes``)."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
