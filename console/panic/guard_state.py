"""What the guard's status line says, each field judged before it is believed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class GuardState:
    """The last status line of guard.sock; every field is judged before it is believed."""

    alive: bool = False
    latched: bool = False
    agents: int = 0
    frozen: int = 0
    phase: str = ""
    """killing, second_look, done, or empty."""
    kill_id: str = ""
    proven: int = 0
    total: int = 0
    ms: float = 0.0
    exit_code: int | None = None
    """Of the kill that is over, as its receipt has it; None before that, and of a guard that does not tell."""
    short: str = ""
    """The same in words."""
    notices: list[str] = field(default_factory=list)

    def take(self, answer: dict[str, Any]) -> None:
        """One status answer."""
        kill = answer.get("kill")
        kills = answer.get("kills")
        latched = answer.get("latched") is not False  # unreadable counts as killed
        # A canary or one agent's kill is in ``kill`` too, but latches nothing: only a kill the latch covers is one of everything.
        covered = isinstance(kill, dict) and latched and _covers(kills, answer.get("kills_n"), kill.get("kill_id"))
        kill = kill if covered and isinstance(kill, dict) else {}
        frozen = answer.get("frozen")
        notices = answer.get("notices")
        self.alive = True
        self.latched = latched
        self.agents = _number(answer.get("agents"))
        self.frozen = len(frozen) if isinstance(frozen, dict) else 0
        self.frozen = max(self.frozen, _number(answer.get("frozen_n")))  # the list itself is cut to fit a line
        self.phase = str(kill.get("phase", ""))[:40]
        self.kill_id = str(kill.get("kill_id", ""))[:80]
        self.proven, self.total, self.ms = _number(kill.get("proven")), _number(kill.get("total")), float(_number(kill.get("ms")))
        code, short = kill.get("exit_code"), str(kill.get("short", ""))[:80]
        self.exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
        self.short = "".join(letter if letter.isprintable() else "?" for letter in short)
        self.notices = [str(n)[:300] for n in notices[:10]] if isinstance(notices, list) else []

    @property
    def is_killing(self) -> bool:
        return self.phase in ("killing", "second_look")


def _covers(kills: object, total: object, kill_id: object) -> bool:
    """Whether the latch covers this kill; a list that is missing or was cut to fit the line speaks against nothing."""
    if not isinstance(kills, list) or not kills or _number(total) > len(kills):
        # A button that shows "not killed" during a kill does more harm than the reverse, so doubt counts as covered.
        return True
    return kill_id in kills


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 1e15 else 0
