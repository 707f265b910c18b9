"""Run the rotations of one supervisor, one at a time: the current plan, our own sockets as verifiers, and the results."""

from __future__ import annotations

import asyncio
import http.client
import secrets
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

from console.api.secrets import RotationItemView, RotationView
from console.credentials.marker import Again, Last, RotationItem, load_last, olds
from console.credentials.old_value_check import LOST, due, keep_result, present_again, stand_in
from console.credentials.plan import OWN_ITEMS, CommandItem, CommandVerifier, FileItem, HttpItem, Item, KeyringItem, Plan, load_plan
from console.credentials.plugs.made import kept_name, plugs_of
from console.credentials.proof import Verifier
from console.credentials.rotation import RotationResult, rotate, unfinished
from console.credentials.tokens import Tokens
from console.domain.errors import ConsoleError, NotFound, UsageProblem

PLAN_ITEM = "plan"
"""The item that stands for a plan that cannot be read."""


def served(operator_sock: Path, token: str) -> bool:
    """Presents a token or key to the running server over its own socket: True when it was accepted. OSError when nothing answered."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(4.0)
        sock.connect(str(operator_sock))
        connection = http.client.HTTPConnection("watchfloor")
        connection.sock = sock
        try:
            connection.request("GET", "/api/token-check", headers={"Authorization": f"Bearer {token}"})
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
    if status not in (200, 401, 403):
        raise OSError(f"the server answered {status}")
    return status == 200


class Rotator:
    """Blocking; call from threads. One rotation at a time: a second one waits for the first."""

    __slots__ = ("verifiers", "_lock", "_turn", "_process", "_has_kept", "raised", "_trouble", "tokens", "plan_file")

    def __init__(self, tokens: Tokens, plan_file: Path, operator_sock: Path) -> None:
        self.tokens, self.plan_file = tokens, plan_file
        self.verifiers: dict[str, Verifier] = {"operator.sock": lambda token: served(operator_sock, token)}
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()
        self._process = secrets.token_hex(8)
        self._has_kept = False
        """Whether this process has written down what a rotation came to; without that record later, it is lost."""
        self.raised = 0
        """Counts what kills do to the epoch of the tokens (services/secrets/rotation_step.py); only read and written on the loop."""
        self._trouble = ""
        """Why the last one could not be written down."""

    async def take_turn(self, only: frozenset[str] = frozenset(), kill_id: str = "", *, left_only: bool = False) -> RotationResult | None:
        """``run`` from the loop. Those who wait for their turn hold no thread: the rotation's verifier needs one to be answered."""
        async with self._turn:
            return await asyncio.to_thread(self.run, only, kill_id, left_only=left_only)

    def unfinished(self) -> bool:
        """Whether a rotation was begun and is not proven."""
        return unfinished(self.tokens)

    def run(self, only: frozenset[str] = frozenset(), kill_id: str = "", *, left_only: bool = False) -> RotationResult | None:
        """Rotates and writes down what it came to. NotFound for a name that is none.

        ``left_only``: nothing (None) unless one is unfinished.
        """
        with self._lock:
            if left_only and not self.unfinished():
                return None
            plan, trouble = self._plan()
            plugs = plugs_of(plan, self.tokens.store)
            known = {*OWN_ITEMS, *(plug.name for plug in plugs)}
            if only - known:
                words = f" ({trouble})" if trouble else ""
                raise NotFound(
                    f"There is no item {min(only - known)[:40]!r} in the rotation plan{words}.", "watchfloor secrets rotation show"
                )
            # A mere resumption adds nothing to what was begun.
            result = rotate(
                self.tokens,
                self.verifiers,
                plugs,
                only=only,
                kill_id=kill_id,
                is_plan_known=not trouble,
                keep=lambda found: self._keep(self._with_trouble(found, trouble)),
            )
            return self._with_trouble(result, trouble)

    def again(self, *, is_expected: bool = False) -> list[RotationItem]:
        """The second presentation of what an earlier process rotated; nothing when none is due. Raises ConsoleError or OSError.

        ``is_expected``: a receipt tells of a rotation; when there is no record of one, it is lost.
        """
        with self._lock:
            plan, _ = self._plan()
            names = [*OWN_ITEMS, *(item.name for item in plan.items)]
            lost = stand_in(self.tokens, names, time.time(), is_expected=is_expected)
            last = lost or load_last(self.tokens.store.folder)
            if last is None or last.process == self._process or not (lost or due(self.tokens)):
                return []
            return present_again(self.tokens, self.verifiers, plugs_of(plan, self.tokens.store), last=last)

    def last(self) -> Last | None:
        """What the last rotation came to."""
        last = load_last(self.tokens.store.folder)
        return Last(time.time(), "", False, f"{LOST} since", [], self._process) if last is None and self._has_kept else last

    def learn(self) -> None:
        """Whatever the plan and the store hold of its values is hidden from now on. Raises ConsoleError when the store cannot be read."""
        plan, _ = self._plan()
        for value in plan.secrets():
            self.tokens.store.redactor.learn(value)
        for name in (*OWN_ITEMS, *(item.name for item in plan.items)):
            olds(self.tokens.store, name)
            for entry in (kept_name(name), f"new.{name}"):
                self.tokens.store.get(entry)  # what is read is learnt

    def tell(self, name: str, value: str) -> None:
        """The value in force of an item that cannot be read back. NotFound, UsageProblem, or ConsoleError of plan and store."""
        item = next((item for item in load_plan(self.plan_file).items if item.name == name), None)
        if item is None:
            raise NotFound(f"There is no item {name!r} in the rotation plan.", "watchfloor secrets rotation show lists them.")
        if not isinstance(item, CommandItem | HttpItem):
            raise UsageProblem(f"{name} is read from where it is kept.", "Only items of kind command and http are told their value.")
        with self._lock:
            self.tokens.store.set(kept_name(name), value)

    def view(self) -> RotationView:
        """The plan without any value, and what the last rotation came to."""
        plan, trouble = self._plan()
        last, store = self.last(), self.tokens.store
        came = {item.name: item for item in last.items} if last else {}
        again = last.again if last else {}
        rows = [(name, "own", "made by Watchfloor, kept by Watchfloor", "operator.sock") for name in OWN_ITEMS]
        rows += [(item.name, item.kind, _how(item), _who(item)) for item in plan.items]
        here = {PLAN_ITEM, *(name for name, *_ in rows)}
        rows += [
            (name, "gone", "no longer in the plan", "not checked")
            for name in again
            if name not in here and again[name] is not Again.REFUSED
        ]
        items = []
        for name, kind, how, who in rows:
            done = came.get(name)
            ok, detail = (done.ok, done.detail) if done else (None, "")
            items.append(
                RotationItemView(name=name, kind=kind, how=how, verifier=who, ok=ok, detail=detail, again=str(again.get(name, "")))
            )
        return RotationView(
            kept_in=store.kind,
            why_not_better=store.why_not_better,
            plan_file=str(self.plan_file),
            plan_error=trouble,
            items=items,
            unfinished=self.unfinished(),
            last_at=last.at if last else time.time() if self._trouble else None,
            last_ok=False if self._trouble else last.ok if last else None,
            last_detail=self._trouble or (_in_whole(last) if last else ""),
            last_kill_id=last.kill_id if last else "",
            again_at=last.again_at if last else None,
        )

    def _plan(self) -> tuple[Plan, str]:
        try:
            return load_plan(self.plan_file), ""
        except ConsoleError as error:
            return Plan(schema_version=1), str(error)

    def _with_trouble(self, result: RotationResult, trouble: str) -> RotationResult:
        if not trouble:
            return result
        item = RotationItem(PLAN_ITEM, False, 0.0, self.tokens.store.redact(f"failed: {trouble}"))
        return replace(result, items=(*result.items, item), ok=False, detail=f"{result.detail}; the plan is broken")

    def _keep(self, result: RotationResult) -> None:
        """Before the marker goes. What cannot be kept is said, and the marker stays: it is all proven again."""
        try:
            keep_result(self.tokens, result, time.time(), self._process)
        except (ConsoleError, OSError) as error:
            self._trouble = self.tokens.store.redact(f"what the last rotation came to cannot be kept: {error}")[:400]
            raise
        self._has_kept, self._trouble = True, ""


def _in_whole(last: Last) -> str:
    return "; ".join([last.detail, *(f"{name}: {why}" for name, why in last.let_go.items())])


def in_words(items: list[RotationItem]) -> str:
    """Names with the same outcome together."""
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(item.detail, []).append(item.name)
    return "; ".join(f"{', '.join(names)}: {detail}" for detail, names in groups.items())


def came_back(items: list[RotationItem]) -> frozenset[str]:
    """Names whose old value was accepted at the second presentation."""
    return frozenset(item.name for item in items if not item.ok and item.detail.startswith("failed"))


def still_due(last: Last | None) -> list[str]:
    """Names that are to be presented a second time."""
    return [name for name, state in last.again.items() if state is Again.DUE] if last else []


def _how(item: Item) -> str:
    if isinstance(item, CommandItem):
        return item.command.argv[0]
    if isinstance(item, HttpItem):
        return f"{item.request.method} {item.request.url.partition('?')[0]}"
    if isinstance(item, KeyringItem):
        return f"keyring entry {item.username} of {item.service}"
    assert isinstance(item, FileItem)
    return item.path


def _who(item: Item) -> str:
    if isinstance(item.verify, CommandVerifier):
        return item.verify.argv[0]
    return f"{item.verify.method} {item.verify.url.partition('?')[0]}"
