"""The drawer that adds and changes entries: each edit is validated by Envoy, and only what was validated can be saved."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from console.api import endpoints as ep
from console.api.allowlist_review import BacktestBody, BacktestView
from console.api.messages import AllowlistChangedView, AllowlistEntryBody, AllowlistEntryView, MarkView, UrlTestBody, UrlTestView
from console.domain.errors import Conflict, ConsoleError, UsageProblem
from console.gui.kit.layout import PANE, column, row, scrolled
from console.gui.pages.interface import Desk
from console.gui.pages.network.backtest import BacktestCard
from console.gui.pages.network.draft import probe_url
from console.gui.pages.network.entries import mark_words
from console.gui.pages.network.form import EntryForm, Written, written
from console.gui.theme import fonts
from console.gui.timers import once
from console.gui.widgets.buttons import Button
from console.gui.widgets.facts import Chips, ChipSpec, Rule
from console.gui.widgets.side_pane import SidePane
from console.gui.widgets.text import Text
from console.gui.widgets.words import clock, plural, took

WIDTH = 356
AFTER_MS = 150
"""After the last key, before Envoy is asked again."""


class Judged(Enum):
    """What is known of exactly the text that stands in the fields."""

    NOTHING = "nothing"
    ASKING = "asking"
    VALID = "valid"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Draft:
    """What the drawer works on."""

    entry_id: str = ""
    """Empty: a new entry."""
    base_version: int | None = None
    original: Written = Written()
    source: str = ""
    """Where the draft came from, in words."""


class Drawer(SidePane):
    """``saved`` after the list changed; ``closed`` when it went away; ``remove_asked`` with the entry id; ``stale`` on a 409."""

    saved = Signal(object)
    closed = Signal()
    remove_asked = Signal(str)
    stale = Signal()
    draft_changed = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._desk = desk
        self.draft = Draft()
        self.judged = Judged.NOTHING
        self.sandboxes = 0
        self._checked: Written | None = None
        self._tested: Written | None = None
        """The text that the backtest on show was answered for (or that it failed for)."""
        self._saving = False
        self._base_known = True
        self.form = EntryForm(self)
        self._late = once(self, AFTER_MS, self._validate)
        self._build()
        self.form.changed.connect(self._edited)

    def _build(self) -> None:
        self._crumb = Text("", 11, fonts.REGULAR, "text2")
        self._name = Text("", 15, fonts.MEDIUM, mono=True)
        self._chips = Chips()
        self.verdict = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.outcome = Text("", 12, fonts.REGULAR, "text2", wrap=True)
        self.marks = Text("", 12, fonts.MEDIUM, "warn", wrap=True, mark="triangle")
        self.marks.hide()
        self.test = BacktestCard(self)
        head = (self._crumb, 5, self._name, 8, self._chips, Rule(9), self.marks)
        rest = (self.form, 12, self.test, 8, self.verdict, 4, self.outcome)
        body = scrolled(self, *head, *rest, margins=(19, 13, 20, 12))
        self.discard = Button("Close", keys="Esc", parent=self)
        self.discard.clicked.connect(self.close_draft)
        self.remove = Button("Remove…", kind="danger", parent=self)
        self.remove.clicked.connect(lambda: self.remove_asked.emit(self.draft.entry_id))
        self.save = Button("Save", kind="primary", keys="Ctrl S", parent=self)
        self.save.clicked.connect(self.save_draft)
        foot = row(self.discard, self.remove, (self.save, 1), margins=PANE, spacing=8)
        column((body, 1), foot, margins=(1, 0, 0, 0), on=self)

    # --- opening and closing -----------------------------------------------------------------------------------------

    def open_new(self, version: int, view: AllowlistEntryView | None = None, source: str = "") -> None:
        """A new entry, empty or filled with the narrowest one for a request."""
        self._open(Draft("", version, Written(), source))
        self.form.fill(written(view) if view else Written())
        (self.form.owner if view else self.form.host).setFocus()

    def open_entry(self, view: AllowlistEntryView, version: int) -> None:
        """An entry of the live list."""
        self._open(Draft(view.entry_id, version, written(view)), view)
        self.form.fill(written(view))
        self.form.host.setFocus()

    def _open(self, draft: Draft, view: AllowlistEntryView | None = None) -> None:
        self.draft = draft
        self.test.hide()
        self._show_marks(view.marks if view is not None else [])
        self.outcome.say("", "text2", "")
        self.show()

    def _show_marks(self, marks: list[MarkView]) -> None:
        """What a reviewer should see, of a draft before it can be saved too."""
        danger = any(mark.danger for mark in marks)
        self.marks.say(mark_words(marks), "danger" if danger else "warn", "alert" if danger else "triangle")
        self.marks.setVisible(bool(marks))

    def close_draft(self) -> None:
        """Discards what was not saved."""
        self._late.stop()
        self.draft = Draft()
        self.judged, self._checked, self._tested = Judged.NOTHING, None, None
        self.hide()
        self.closed.emit()

    @property
    def is_dirty(self) -> bool:
        """Something stands in the fields that is not saved."""
        return self.isVisible() and self.form.now() != self.draft.original

    def list_came(self, version: int, view: AllowlistEntryView | None) -> None:
        """The live list was read again; ``view`` is the entry in hand, None when it is not in it (any more)."""
        if not self.isVisible() or self._saving or version == self.draft.base_version:
            return
        if not self.draft.entry_id:
            self.draft = Draft("", version, self.draft.original, self.draft.source)
        elif view is None:
            self.outcome.say(f"Entry {self.draft.entry_id} was removed from the list meanwhile.", "warn", "triangle")
        elif not self.is_dirty:
            self.draft = Draft(view.entry_id, version, written(view), self.draft.source)
            self.form.fill(self.draft.original)
        elif written(view) == self.draft.original or not self._base_known:
            # Other entries changed, or this one did and the person was told: the draft now stands on the newer list.
            self.draft = Draft(view.entry_id, version, written(view), self.draft.source)
            self._base_known = True
            self._edited()
        else:
            self._base_known = False
            self.outcome.say(f"Another operator changed this entry (v{version}). Check it, then save again or discard.", "warn", "triangle")

    # --- validation --------------------------------------------------------------------------------------------------

    def _edited(self) -> None:
        if self.isVisible() or self.draft.base_version is not None:
            self.judged, self._checked = (Judged.ASKING if self.is_dirty else Judged.NOTHING), None
            self._tested = None
            if self.judged is Judged.ASKING:
                self._late.start()
            else:
                self.test.hide()
                self._late.stop()
            self._say()
            self.draft_changed.emit()

    def _validate(self) -> None:
        text = self.form.now()
        try:
            body = text.body(None)
        except UsageProblem as problem:
            self._judge(Judged.REFUSED, text, str(problem))
            self.test.hide()
            return
        url = probe_url(body.host, body.port, body.paths)
        network, replaces = self._desk.requests, self.draft.entry_id or None
        asked = network.ask(ep.TEST_URL, body=UrlTestBody(url=url, entry=body, replaces=replaces, validate_with_envoy=True))
        began = self._desk.clock()
        asked.while_alive(self).then(lambda view: self._answered(text, view, (self._desk.clock() - began) * 1000))
        asked.failed(lambda error: self._judge(Judged.REFUSED, text, str(error)))
        self.test.asking()
        tested = network.ask(ep.BACKTEST, body=BacktestBody(entry=body, replaces=replaces)).while_alive(self)
        tested.then(lambda view: self._backtested(text, view)).failed(lambda error: self._backtested(text, error))

    def _backtested(self, text: Written, answer: BacktestView | ConsoleError) -> None:
        """An answer for other text than what stands there now is none. One that failed is told, and holds nothing up."""
        if text != self.form.now() or not self.isVisible():
            return
        self._tested = text
        if isinstance(answer, BacktestView):
            self.test.say(answer)
        else:
            self.test.fail(answer)
        self._say()

    def _answered(self, text: Written, view: UrlTestView, ms: float) -> None:
        if text == self.form.now() and self.isVisible():
            self._show_marks(view.marks)
        if view.envoy_valid:
            self._judge(Judged.VALID, text, f"Draft validated by Envoy in {took(ms)}")
        elif view.envoy_valid is None:
            self._judge(Judged.REFUSED, text, view.envoy_words or "Envoy could not be asked, so nothing can be saved.")
        else:
            self._judge(Judged.REFUSED, text, f"Envoy refuses this draft: {view.envoy_words}")

    def _judge(self, judged: Judged, text: Written, words: str) -> None:
        if text != self.form.now() or not self.isVisible():
            return  # the answer is for another text than what stands there now
        self.judged, self._checked = judged, text
        if judged is Judged.VALID:
            self.verdict.say(words, "text2", "check")
        else:
            self.verdict.say(words, "warn", "triangle")
        self._say()

    def why_not_save(self) -> str:
        """Empty when exactly this text can be saved now."""
        if not self.isVisible():
            return "No entry is open."
        if self._saving:
            return "It is being saved."
        if self._desk.switch.is_killed:
            return "Killed: nothing changes until you rearm."
        if not self.is_dirty:
            return "Nothing is changed."
        if self.judged is Judged.ASKING or self._checked != self.form.now():
            return "Envoy is asked about exactly this text first."
        if self.judged is not Judged.VALID:
            return "This draft is not valid."
        return "" if self._tested == self._checked else "What it would have changed is asked first."

    # --- saving ------------------------------------------------------------------------------------------------------

    def save_draft(self) -> None:
        """Sends what was validated; the outcome stands under the fields."""
        if self.why_not_save():
            return
        body = self.form.now().body(self.draft.base_version)
        network = self._desk.requests
        self._saving = True
        self._say()
        sent = network.ask(ep.CHANGE_ENTRY, self.draft.entry_id, body=body) if self.draft.entry_id else network.ask(ep.ADD_ENTRY, body=body)
        sent.while_alive(self).then(lambda view: self._saved(body, view)).failed(self._refused)

    def _saved(self, body: AllowlistEntryBody, view: AllowlistChangedView) -> None:
        self._saving = False
        text = self.form.now()
        self.draft = Draft(view.entry_id, view.version, text)
        self.judged, self._checked, self._tested = Judged.NOTHING, None, None
        self.test.hide()
        self.outcome.say(f"v{view.version}: {view.words} · {clock(self._desk.clock())}", "text2", "check")
        self._say()
        self.saved.emit(view)

    def _refused(self, error: ConsoleError) -> None:
        self._saving = False
        kept = "" if "old list" in str(error) else " The old list is still live."
        self.outcome.say(f"{error}{kept}", "warn", "triangle")
        if isinstance(error, Conflict):
            self._base_known = False
            self.stale.emit()
        self._say()

    # --- words -------------------------------------------------------------------------------------------------------

    def _say(self) -> None:
        draft, dirty = self.draft, self.is_dirty
        on = f"draft of v{(draft.base_version or 0) + 1}" if dirty else f"v{draft.base_version or 0}"
        self._crumb.setText(f"Allowlist  ›  {f'entry {draft.entry_id}' if draft.entry_id else 'new entry'}  ›  {on}")
        self._name.setText(self.form.host.text() or "new entry")
        self._chips.say(self._chips_now(dirty))
        self.discard.setText("Discard" if dirty else "Close")
        self.remove.setVisible(bool(draft.entry_id) and not dirty)
        self.save.setText("Saving…" if self._saving else f"Save, apply to {self.sandboxes}")
        self.save.allow(self.why_not_save())
        if self.judged is Judged.NOTHING:
            self.verdict.say("" if not dirty else "Not checked yet.", "text2", "")
        elif self.judged is Judged.ASKING:
            self.verdict.say("Envoy is asked about this draft…", "text2", "ring")

    def _chips_now(self, dirty: bool) -> list[ChipSpec]:
        if not dirty:
            return [ChipSpec("Live", "check")] if self.draft.entry_id else [ChipSpec("Empty draft", "pencil")]
        old, new = self.draft.original, self.form.now()
        changed = sum(getattr(old, name) != getattr(new, name) for name in Written.__slots__)
        chips = [ChipSpec(f"Draft, {plural(changed, 'change')}" if self.draft.entry_id else "Draft", "pencil", "accent")]
        return [*chips, ChipSpec(self.draft.source)] if self.draft.source else chips
