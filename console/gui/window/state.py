"""What the frame of the window says of the instance: armed light, banner, plate, notices, seal, person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import time

from PySide6.QtCore import QObject

from console.api.messages import StatusView
from console.domain.errors import ExitCode, code_words
from console.domain.kill import StepName
from console.domain.words import mode_words
from console.gui.actions.catalogue import why_not_by_role
from console.gui.models.operators import person
from console.gui.models.switch import STEP_TITLES, Switch, step_of
from console.gui.notices import Notice, Notices
from console.gui.pages.audit.chain import Known, is_overdue
from console.gui.timers import once
from console.gui.widgets.banner import BannerStep, KillBanner
from console.gui.widgets.safe_text import tooltip
from console.gui.widgets.words import age, clock, long_span, plural, took
from console.gui.window.bars import NoticeStrip, StatusBar, TopBar
from console.gui.window.nav import Nav
from console.gui.window.old import OldStrip, old_words
from console.gui.window.sync import Sync
from console.panic.control import PanicControl
from console.panic.guard_link import GuardLink
from console.panic.guard_state import GuardState
from console.panic.machine import PanicMachine, PanicState
from console.panic.orders import GuardPort

_INFO_MS = 6_000
_SETTLED = 30.0
"""Seconds after the press from which the banner is small, even if a late step never ends."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts of the window this speaks to, and what it reads."""

    top: TopBar
    banner: KillBanner
    strip: NoticeStrip
    old: OldStrip
    nav: Nav
    status: StatusBar
    plate: PanicControl
    machine: PanicMachine
    port: GuardPort
    guard: GuardLink
    switch: Switch
    notices: Notices
    sync: Sync
    goto: Callable[[str, str], None]


class StateView(QObject):
    """Reads the models and tells the widgets of the frame."""

    def __init__(self, window: Frame, parent: QObject) -> None:
        super().__init__(parent)
        self._window = window
        self._fade = once(self, 0, self._fade_info)
        self._covered: Notice | None = None
        """A warning below the result of a stop; it comes back when that has gone."""
        window.notices.said.connect(self._said)
        window.notices.withdrawn.connect(self._withdrawn)
        window.strip.receipt_asked.connect(lambda kill_id: window.goto("receipt", kill_id))
        window.banner.opened.connect(self._open_receipt)
        window.sync.follower.kill_began.connect(lambda kill_id: window.goto("receipt", kill_id))
        window.plate.changed.connect(self._hurry)
        window.port.finished.connect(self._ended_without_guard)
        window.port.refused.connect(window.notices.fail)
        window.port.said.connect(lambda words: window.notices.say("info", f"Without the guard: {words}"))
        self.refresh()

    def refresh(self) -> None:
        """Refresh the whole frame; cheap, and called at every change and every second."""
        window, switch, now = self._window, self._window.switch, time()
        window.machine.set_guard(switch.guard.alive)
        window.machine.set_kill(switch.is_killing, switch.is_killed)
        guard = switch.guard
        window.plate.show_counts(guard.agents or switch.agents_live, guard.proven, guard.total)
        self._light(switch, now)
        window.old.say(old_words(switch, now))
        self._banner(switch, now)
        status = switch.status
        window.top.brand.say(status.host if status else "no supervisor")
        window.nav.person.say(
            status.operator if status else "",
            _standing_words(status) if status else "not connected",
        )
        why_not = why_not_by_role("console.panic", switch.rights)
        window.plate.setEnabled(not why_not)
        window.plate.setToolTip(tooltip(why_not) if why_not else "")
        self._seal(switch, now)

    def _light(self, switch: Switch, now: float) -> None:
        state, words = switch.light(now)
        if state == "armed":
            words = f"Kill switch ready · tested {age(switch.verified_at(), now)}"
        elif state == "killed" and switch.view is not None and switch.view.since:
            words = f"Everything stopped {clock(switch.view.since)}"
        ago = max(0.0, now - switch.heard_at) if switch.heard_at else None
        fresh = "Never heard" if ago is None else f"Updated {f'{ago:.1f} s' if ago < 60 else long_span(ago)} ago"
        if not switch.guard.alive:
            fresh += " · guard not answering: Panic still works"
        if self._window.machine.state is PanicState.HOLDING:
            state, words = "killing", "Frozen. Keep holding to kill, release to resume"
        if state == "killed":
            fresh += " · nothing can start until you rearm"
        self._window.top.light.show_light(state, words, fresh)

    def _banner(self, switch: Switch, now: float) -> None:
        banner = self._window.banner
        receipt, guard = switch.receipt, switch.guard
        if not switch.is_killed and not switch.is_killing:
            banner.clear()
            return
        since = switch.view.since if switch.view and switch.view.since else receipt.pressed_at if receipt else None
        by = person(receipt.by if receipt else switch.view.by if switch.view else "")
        settled = bool(receipt and receipt.complete) or (since is not None and now - since > _SETTLED)
        if settled and not switch.is_killing:
            scope = "Panic" if not receipt or receipt.scope == "all" else "Part"
            line = " · ".join(p for p in (scope, by, clock(since) if since else "") if p)
            banner.show_latched(line, f"{long_span(now - since)} ago" if since else "")
            return
        elapsed = f"{guard.ms / 1000:.2f} s" if guard.ms else "…"
        line = " · ".join(p for p in ("All agents", by, clock(since) if since else "") if p)
        banner.show_killing("Kill active", line, self._steps(switch), elapsed)

    def _steps(self, switch: Switch) -> tuple[BannerStep, ...]:
        steps, running = [], True
        for name in StepName:
            step = step_of(switch.receipt, name)
            known = (step.status.value, step.detail or took(step.ms)) if step else _from_guard(switch.guard, name)
            if known is None:
                known = ("running" if running else "waiting", _so_far(switch.guard, name))
                running = False
            steps.append(BannerStep(STEP_TITLES[name], known[1], known[0]))
        return tuple(steps)

    def _seal(self, switch: Switch, now: float) -> None:
        status = switch.status
        if status is None:
            self._window.status.show_seal("Audit not known", True)
            return
        records = plural(status.audit_records, "record")
        if status.audit_whole is None:
            self._window.status.show_seal(f"Audit log {records} · log not checked", True)
        elif not status.audit_whole:
            self._window.status.show_seal(f"Audit log {records} · {'records lost' if status.audit_lost else 'log BROKEN'}", True)
        else:
            verified = f" up to record {status.audit_verified:,}" if status.audit_verified else ""
            seal = f"Audit log {records} · log intact{verified}, {age(status.audit_checked_at, now)}"
            known = Known(True, status.audit_verified, at=status.audit_checked_at)
            self._window.status.show_seal(seal, switch.is_old(now) or is_overdue(known, status.audit_records, now))

    def _hurry(self) -> None:
        """While something is held or dying the guard is asked ten times a second."""
        busy = self._window.machine.state in (PanicState.HOLDING, PanicState.KILLING)
        if busy:
            self._window.guard.poll_every(100)

    def _said(self, notice: Notice) -> None:
        shown = self._window.strip.notice
        if notice.level != "info":
            self._covered = None
        elif shown is not None and shown.level != "info":
            if not notice.receipt:
                return  # a hint never covers a warning; what a person's own stop came to does, for its time
            self._covered = shown
        self._window.strip.show_notice(notice)
        self._fade.start(_INFO_MS)

    def _withdrawn(self, text: str) -> None:
        shown = self._window.strip.notice
        if self._covered is not None and self._covered.text == text:
            self._covered = None
        if shown is not None and shown.text == text:
            self._window.strip.dismiss()

    def _fade_info(self) -> None:
        shown = self._window.strip.notice
        if shown is None or shown.level == "info":
            self._window.strip.dismiss()
            if self._covered is not None:
                self._window.strip.show_notice(self._covered)
                self._covered = None

    def _open_receipt(self) -> None:
        switch = self._window.switch
        kill_id = switch.receipt.kill_id if switch.receipt else switch.guard.kill_id
        self._window.goto("receipt", kill_id)

    def _ended_without_guard(self, code: int, words: str) -> None:
        """``panic`` ended in a process of its own: what it told last, under the words of its exit code."""
        last = (words.strip().splitlines() or ["no output"])[-1]
        what = f"{code_words(code)}. Without the guard: {last}"
        if code in (ExitCode.DONE, ExitCode.LATER_STEP, ExitCode.BEST_EFFORT):
            self._window.notices.say("amber", what, "Start a supervisor to see the receipt.")
        else:
            self._window.machine.gave_up(code_words(code))
            self._window.notices.say("red", what, "Run: watchfloor panic --reason REASON")


def _standing_words(status: StatusView) -> str:
    """Return what this account may do on the instance: its roles, or how much the instance's own account holds."""
    if status.your_roles:
        return f"role on this host: {', '.join(status.your_roles)}"
    return "full control of this host" if status.mode == "root" else mode_words(status.mode)


def _from_guard(guard: GuardState, name: StepName) -> tuple[str, str] | None:
    """What the guard's status alone proves of a step before the receipt has it."""
    if name in (StepName.LATCH, StepName.REFUSE) and guard.alive and guard.latched:
        return "ok", "blocked" if name is StepName.LATCH else "starts blocked"
    if name is StepName.SIGNAL and guard.alive and guard.proven > 0:
        return "ok", "SIGKILL is out"
    return None


def _so_far(guard: GuardState, name: StepName) -> str:
    return f"{guard.proven} of {guard.total}" if name is StepName.ZERO and guard.total else ""
