"""The plan's items as plugs: one object per item, each joined to its verifier."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from console.credentials.keyring_store import Store
from console.credentials.plan import CommandItem, CommandVerifier, FileItem, HttpItem, HttpVerifier, Item, KeyringItem, Plan
from console.credentials.plugs.command import Ran, run_command
from console.credentials.plugs.file import read_secret, write_secret
from console.credentials.plugs.http import ask, field_of
from console.credentials.plugs.interface import Plug
from console.credentials.plugs.keyring import open_entry
from console.domain.errors import ConsoleError, Unavailable


def plugs_of(plan: Plan, store: Store) -> list[Plug]:
    """One for each item, in the plan's order."""
    return [_plug(item, store) for item in plan.items]


def kept_name(item: str) -> str:
    """Where the store keeps the value of an item whose own place cannot be read back."""
    return f"value.{item}"


def _plug(item: Item, store: Store) -> Plug:
    verifier = _Verifier(item.name, item.verify)
    if isinstance(item, CommandItem):
        return _CommandPlug(item, store, verifier)
    if isinstance(item, HttpItem):
        return _HttpPlug(item, store, verifier)
    if isinstance(item, KeyringItem):
        return _KeyringPlug(item, verifier)
    return _FilePlug(item, verifier)


@dataclass(frozen=True, slots=True)
class _Verifier:
    item: str
    spec: CommandVerifier | HttpVerifier

    def present(self, value: str) -> bool | None:
        """By exit code or status; what is in neither list is no answer."""
        if isinstance(self.spec, CommandVerifier):
            answer = run_command(self.spec, value.encode() + b"\n", self.item).code
        else:
            answer, _ = ask(self.spec, {"value": value})
        if answer in self.spec.accepted:
            return True
        return False if answer in self.spec.refused else None


class _KeptPlug:
    """A value that only the other side holds: the store remembers the one that was set last."""

    def __init__(self, name: str, store: Store, verifier: _Verifier) -> None:
        self.name, self._store, self._verifier = name, store, verifier

    def old(self) -> str | None:
        return self._store.get(kept_name(self.name))

    def present(self, value: str) -> bool | None:
        return self._verifier.present(value)

    def _keep(self, value: str) -> str:
        self._store.set(kept_name(self.name), value)
        return value


class _CommandPlug(_KeptPlug):
    def __init__(self, item: CommandItem, store: Store, verifier: _Verifier) -> None:
        super().__init__(item.name, store, verifier)
        self._item, self.issues = item, item.prints_value

    def change(self, old: str, new: str) -> str:
        given = json.dumps({"item": self.name, "old": old, "new": new}).encode() + b"\n"
        ran = run_command(self._item.command, given, self.name)
        if ran.code != 0:
            raise ConsoleError(f"{self._item.command.argv[0]} ended with {ran.code}: {self._said(ran)}", "Fix it, then rotate again.")
        if not self.issues:
            return self._keep(new)
        try:
            value = ran.out.decode().strip()
        except UnicodeDecodeError:
            value = ""
        if not value or "\n" in value:
            raise ConsoleError(f"{self._item.command.argv[0]} did not print one value.", "prints_value wants it alone on standard output.")
        return self._keep(value)

    def _said(self, ran: Ran) -> str:
        """Its words without any value: hidden first and cut then, so that no half of one is left at the end."""
        if self.issues:
            return "what it said is not shown, for it may hold the value that it made"
        return self._store.redact(ran.err.decode("utf-8", "replace").strip())[:4096]


class _HttpPlug(_KeptPlug):
    def __init__(self, item: HttpItem, store: Store, verifier: _Verifier) -> None:
        super().__init__(item.name, store, verifier)
        self._item, self.issues = item, bool(item.answer_field)

    def change(self, old: str, new: str) -> str:
        status, body = ask(self._item.request, {"old": old, "new": new})
        if not 200 <= status < 300:
            raise Unavailable(f"{self._item.request.url.partition('?')[0]} answered {status}.", "Fix it, then rotate again.")
        return self._keep(field_of(body, self._item.answer_field) if self.issues else new)


class _KeyringPlug:
    issues = False

    def __init__(self, item: KeyringItem, verifier: _Verifier) -> None:
        self.name, self._item, self._verifier = item.name, item, verifier

    def old(self) -> str | None:
        return open_entry(self._item.service).get(self._item.username)

    def change(self, old: str, new: str) -> str:
        place = open_entry(self._item.service)
        place.set(self._item.username, new)
        if place.get(self._item.username) != new:
            raise ConsoleError("What was read back from the keyring is not what was written.", "Look at that entry.")
        return new

    def present(self, value: str) -> bool | None:
        return self._verifier.present(value)


class _FilePlug:
    issues = False

    def __init__(self, item: FileItem, verifier: _Verifier) -> None:
        self.name, self._path, self._verifier = item.name, Path(item.path), verifier

    def old(self) -> str | None:
        held = read_secret(self._path)
        return held.value if held is not None else None

    def change(self, old: str, new: str) -> str:
        write_secret(self._path, new)
        held = read_secret(self._path)
        if held is None or held.value != new:
            raise ConsoleError(f"What was read back from {self._path} is not what was written.", "See who else writes it.")
        return new

    def present(self, value: str) -> bool | None:
        return self._verifier.present(value)
