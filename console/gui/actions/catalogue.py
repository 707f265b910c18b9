"""One action as data, and the search of the command palette."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from console.domain.roles.rights import Right, refusal


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """What can be done. The page (or window) that lists it carries it out and says when it cannot."""

    id: str
    """``page.verb``, for example ``fleet.stop-tree``."""
    title: str
    key: str = ""
    """A QKeySequence in portable text; a letter acts only when no field has the focus."""
    hint: str = ""
    """Words of the status bar; empty: not shown there."""
    cap: str = ""
    """How the key is written, when not as in ``key``."""

    @property
    def shown_key(self) -> str:
        return self.cap or self.key.replace("+", " ").replace("Return", "Enter")


_NEEDS = {
    Right.KILL: "budgets.pause budgets.stop-tree console.panic fleet.freeze fleet.isolate fleet.kill fleet.ladder fleet.pause "
    "fleet.stop-tree receipt.suspects switch.freeze switch.isolate switch.kill switch.panic",
    Right.OPERATE: "activity.interrupt activity.say approvals.deny approvals.once approvals.rule approvals.session budgets.limits "
    "console.new-agent fleet.adopt fleet.data fleet.reconnect fleet.run fleet.switch fleet.thaw network.allow network.data network.edit "
    "network.new network.remove network.save network.stricter policy.profiles policy.remove policy.save switch.reconnect switch.thaw",
    Right.REARM: "receipt.rearm switch.rearm",
    Right.SETTINGS: "settings.change settings.reset switch.rotation",
    Right.ADMINISTER: "audit.acknowledge fleet.hook rollback.restore switch.passphrase",
}
NEEDS = {action: right for right, actions in _NEEDS.items() for action in actions.split()}
"""What an action asks of the supervisor, by the rights of roles. The others only look."""


def why_not_by_role(action_id: str, rights: Collection[str] | None) -> str:
    """Return why the role of this account does not allow the action; empty: it does. ``rights``: as the status says; None: all."""
    needed = NEEDS.get(action_id) or NEEDS.get(action_id.partition("-")[0])
    return "" if rights is None or needed is None or needed in rights else str(refusal(needed, "sudo watchfloor"))


SYNONYMS: dict[str, tuple[str, ...]] = {
    "allow": ("approve", "allowlist"),
    "block": ("deny", "isolate"),
    "budget": ("limit", "forecast"),
    "burn": ("budget", "forecast"),
    "cap": ("limit", "forecast"),
    "colour": ("dark",),
    "column": ("columns",),
    "cost": ("limit", "budget", "forecast"),
    "cut": ("isolate",),
    "daily": ("limits", "budget", "forecast"),
    "document": ("help",),
    "end": ("stop", "kill"),
    "evidence": ("receipt",),
    "export": ("copy", "receipt", "audit"),
    "find": ("filter", "search"),
    "first": ("set up",),
    "halt": ("stop", "kill", "freeze"),
    "hide": ("columns",),
    "history": ("versions", "audit", "receipt"),
    "host": ("allowlist", "host"),
    "inbox": ("approvals",),
    "key": ("keys", "rotation", "passphrase"),
    "launch": ("new agent",),
    "log": ("audit", "record"),
    "manual": ("help",),
    "message": ("write to", "interrupt"),
    "money": ("limit", "budget", "forecast"),
    "offline": ("isolate",),
    "output": ("wrote",),
    "password": ("passphrase",),
    "pause": ("freeze",),
    "permission": ("approve", "rules", "scopes"),
    "quarantine": ("isolate",),
    "record": ("audit", "record"),
    "refresh": ("again",),
    "reject": ("deny",),
    "resume": ("resume", "thaw"),
    "revert": ("go back", "restore"),
    "run": ("new agent", "set up"),
    "save": ("save", "copy"),
    "search": ("filter", "find"),
    "secret": ("secrets", "private data"),
    "resize": ("columns", "wider", "narrower"),
    "set-up": ("set up",),
    "sort": ("order", "first", "arrange", "columns"),
    "spend": ("limit", "budget", "forecast"),
    "start": ("new agent", "resume"),
    "stop": ("stop", "kill", "panic", "freeze"),
    "terminate": ("stop", "kill"),
    "theme": ("dark",),
    "token": ("rotation", "limits"),
    "undo": ("restore", "rollback"),
    "unfreeze": ("resume",),
    "unlock": ("rearm", "panic"),
    "url": ("url", "allowlist"),
    "violation": ("denied", "blocked", "verdicts"),
    "width": ("columns", "wider", "narrower"),
    "website": ("url", "allowlist"),
}
"""Words that a person may type -> words of titles. The typed word itself is looked for too."""


def search(actions: Sequence[ActionSpec], text: str) -> list[ActionSpec]:
    """Actions of which title or id holds each typed word or a synonym: first those that begin with the text, then the page that does, then
    those with its words.
    """
    words = text.lower().split()

    def fits(action: ActionSpec, meant: bool) -> bool:
        hay = f"{action.title} {action.id}".lower()
        return all(word in hay or (meant and any(other in hay for other in _synonyms(word))) for word in words)

    found = [a for a in actions if fits(a, meant=True)]
    begun = text.lower().strip()

    def place(action: ActionSpec) -> tuple[bool, ...]:
        title = action.title.lower()
        name = title.rpartition(": ")[2]  # without the page that it is on
        begins = (name.startswith(begun), name.removeprefix("go to ").startswith(begun), title.startswith(begun))
        return *(not one for one in begins), not fits(action, meant=False)

    return sorted(found, key=place)


def _synonyms(word: str) -> tuple[str, ...]:
    """Of the word, or of the one that it begins, once three letters are typed: ``dai`` finds what ``daily`` finds."""
    if word in SYNONYMS or len(word) < 3:
        return SYNONYMS.get(word, ())
    return tuple(other for name, others in SYNONYMS.items() if name.startswith(word) for other in others)
