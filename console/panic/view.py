"""What the panic window shows in each state: the one place that decides it, without any widget."""

from __future__ import annotations

from dataclasses import dataclass
from time import time

from console.domain.errors import ExitCode
from console.domain.guard import HOLD_S
from console.domain.verdict import code_words
from console.domain.words import clock, counted, span, took
from console.panic.guard_state import GuardState
from console.panic.machine import PanicMachine, PanicState


@dataclass(frozen=True, slots=True)
class PanicViewState:
    """Every word and shape of the window in one state."""

    strip: str
    strip_mark: str
    strip_role: str
    """ok, warn or text: the colour of mark and words."""
    head: str
    line: str
    band: str
    band_mark: str
    band_role: str
    right: str
    share: float
    """How far the ring and the bar are, 0 to 1."""


@dataclass(slots=True)
class Facts:
    """What the window knows besides the machine's state."""

    guard: GuardState
    guard_ms: float | None = None
    heard_at: float | None = None
    """monotonic() of the guard's last answer."""
    exit_code: int | None = None
    """How a kill without the guard ended."""
    survivor: str = ""
    said: str = ""
    """The last line of that kill while its later steps are seen through."""
    pressed_elsewhere: bool = False


def view_state(machine: PanicMachine, facts: Facts, now: float) -> PanicViewState:
    """The one place that decides what is shown; green needs a verified zero."""
    guard = facts.guard
    match machine.state:
        case PanicState.READY:
            return _ready(machine, facts, now)
        case PanicState.ARMED:
            return PanicViewState(
                "Guard up",
                "dot",
                "ok",
                "HOLD TO KILL",
                f"{counted(guard.agents, 'agent')} · hold {HOLD_S:g} s",
                "Or press twice within 2 s",
                "pause",
                "text",
                "5 s",
                0,
            )
        case PanicState.HOLDING:
            band = f"Frozen {guard.frozen}; let go = thaw" if guard.frozen else "Freeze is out; let go = thaw"
            if not machine.guard_alive:
                band = "No guard: nothing frozen yet"
            spent = f"{machine.progress * HOLD_S:.1f} s"
            return PanicViewState(
                "Guard up",
                "dot",
                "ok",
                "HOLD TO KILL",
                f"{counted(guard.agents, 'agent')} · keep on",
                band,
                "pause",
                "text",
                spent,
                machine.progress,
            )
        case PanicState.AGAIN:
            strip = f"Thawed {clock(time())}" if machine.note.endswith(": thawed") else "Guard up"
            return PanicViewState(strip, "dot", "ok", "PRESS AGAIN", "A second press kills", machine.note, "ring", "text", "2 s", 0)
        case PanicState.KILLING:
            share = guard.proven / guard.total if guard.total else 0.0
            band = f"{guard.proven} of {guard.total} confirmed dead" if guard.total else facts.said or "SIGKILL is on its way"
            return PanicViewState(
                "Killing", "pause", "warn", "KILLING", "No way back now", band, "alert", "text", took(guard.ms) if guard.ms else "", share
            )
        case PanicState.KILLED:
            return _killed(facts)


def _ready(machine: PanicMachine, facts: Facts, now: float) -> PanicViewState:
    if not machine.guard_alive:
        silent = f"Silent {span(now - facts.heard_at)}: kills by itself" if facts.heard_at else "Kills by itself, from disk"
        line = machine.note or "Lift guard to arm"
        return PanicViewState("No guard", "triangle", "warn", "PANIC", line, silent, "triangle", "warn", "", 0)
    if machine.note:
        return PanicViewState("Armed", "dot", "ok", "PANIC", "Lift guard to arm", machine.note, "ring", "text", "", 0)
    ms = f"{facts.guard_ms:.1f} ms" if facts.guard_ms is not None else ""
    seen = f"Armed {span(now - facts.heard_at)} ago" if facts.heard_at else "Armed"
    return PanicViewState(seen, "dot", "ok", "PANIC", "Lift guard to arm", "Own path answers", "check", "ok", ms, 0)


def _killed(facts: Facts) -> PanicViewState:
    """By the verdict alone: the guard's, or, of a kill without it, the exit code."""
    guard = facts.guard
    took_words = f"{guard.ms / 1000:.2f} s" if guard.ms else ""
    line = "From elsewhere, latched" if facts.pressed_elsewhere else "Latched until rearmed"
    if facts.exit_code is not None and not guard.alive:
        code, words, took_words = facts.exit_code, code_words(facts.exit_code), ""
    elif guard.exit_code is not None and guard.short:
        code, words = guard.exit_code, guard.short
    else:  # it is not over yet, or the guard that killed is gone
        return PanicViewState("Latched", "cross", "text", "STOPPED", line, "What is confirmed is in the receipt", "triangle", "warn", "", 1)
    if code in (ExitCode.DONE, ExitCode.LATER_STEP):
        return PanicViewState("Latched", "cross", "text", "STOPPED", line, words, "check", "ok", took_words, 1)
    return PanicViewState("Latched", "triangle", "warn", "STOPPED?", line, words, "triangle", "warn", took_words, 1)
