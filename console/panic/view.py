"""What the panic window shows in each state: the one place that decides it, without any widget."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from time import time

from console.domain.amounts import clock, span, took
from console.domain.errors import ExitCode, code_words
from console.domain.guard import HOLD_S
from console.domain.words import counted
from console.panic.guard_state import GuardState
from console.panic.machine import AGAIN_S, ARMED_S, PanicMachine, PanicState, progress


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
    strip, mark, role = ("Guard answers", "dot", "ok") if machine.guard_alive else ("Guard not answering", "triangle", "warn")
    match machine.state:
        case PanicState.READY:
            return _ready(machine, facts, now)
        case PanicState.ARMED:
            return PanicViewState(
                strip,
                mark,
                role,
                "HOLD TO KILL",
                f"{counted(guard.agents, 'agent')} · hold {HOLD_S:g} s",
                "Or press twice within 2 s",
                "pause",
                "text",
                f"{ceil(machine.left_s)} s",
                machine.left_s / ARMED_S,
            )
        case PanicState.HOLDING:
            band = f"Frozen {guard.frozen}; release to resume" if guard.frozen else "Freeze sent; release to resume"
            if not machine.guard_alive:
                band = "No guard: not frozen yet"
            spent = f"{progress(machine) * HOLD_S:.1f} s"
            return PanicViewState(
                strip,
                mark,
                role,
                "HOLD TO KILL",
                f"{counted(guard.agents, 'agent')} · keep holding",
                band,
                "pause",
                "text",
                spent,
                progress(machine),
            )
        case PanicState.AGAIN:
            strip = f"Resumed {clock(time())}" if machine.note.endswith(": resumed") else strip
            left, share = f"{ceil(machine.left_s)} s", machine.left_s / AGAIN_S
            return PanicViewState(strip, mark, role, "PRESS AGAIN", "A second press kills", machine.note, "ring", "text", left, share)
        case PanicState.KILLING:
            share = guard.proven / guard.total if guard.total else 0.0
            band = f"{guard.proven} of {guard.total} confirmed dead" if guard.total else facts.said or "SIGKILL is sent"
            return PanicViewState(
                "Killing", "pause", "warn", "KILLING", "Cannot be undone", band, "alert", "text", took(guard.ms) if guard.ms else "", share
            )
        case PanicState.KILLED:
            return _killed(facts)


def _ready(machine: PanicMachine, facts: Facts, now: float) -> PanicViewState:
    if not machine.guard_alive:
        silent = f"Silent {span(now - facts.heard_at)}: Panic still works" if facts.heard_at else "Panic still works without it"
        line = machine.note or "Click to unlock"
        return PanicViewState("Guard not answering", "triangle", "warn", "PANIC", line, silent, "triangle", "warn", "", 0)
    if machine.note:
        return PanicViewState("Guard answers", "dot", "ok", "PANIC", "Click to unlock", machine.note, "ring", "text", "", 0)
    ms = f"{facts.guard_ms:.1f} ms" if facts.guard_ms is not None else ""
    seen = f"Answered {span(now - facts.heard_at)} ago" if facts.heard_at else "Guard answers"
    return PanicViewState(seen, "dot", "ok", "PANIC", "Click to unlock", "Ready to kill", "check", "ok", ms, 0)


def _killed(facts: Facts) -> PanicViewState:
    """By the verdict alone: the guard's, or, of a kill without it, the exit code."""
    guard = facts.guard
    took_words = f"{guard.ms / 1000:.2f} s" if guard.ms else ""
    line = "Panic from elsewhere" if facts.pressed_elsewhere else "Blocked until you rearm"
    if facts.exit_code is not None and not guard.alive:
        code, words, took_words = facts.exit_code, code_words(facts.exit_code), ""
    elif guard.exit_code is not None and guard.short:
        code, words = guard.exit_code, guard.short
    else:  # it is not over yet, or the guard that killed is gone
        return PanicViewState(
            "New agents blocked", "cross", "text", "STOPPED", line, "Confirmed deaths: see the receipt", "triangle", "warn", "", 1
        )
    if code in (ExitCode.DONE, ExitCode.LATER_STEP):
        return PanicViewState("New agents blocked", "cross", "text", "STOPPED", line, words, "check", "ok", took_words, 1)
    return PanicViewState("New agents blocked", "triangle", "warn", "STOPPED?", line, words, "triangle", "warn", took_words, 1)
