"""A stand-in for the guard's operator socket: hold, let_go, press, freeze, thaw, status in the line format of console/domain/guard.py."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Protocol

from console.domain.guard import HELD_GRACE_S, HOLD_S, decode, encode


class Desk(Protocol):
    """The supervisor beside it."""

    def live(self) -> int: ...

    def killing(self, kill_id: str) -> None: ...

    def killed(self, kill_id: str, proven: bool) -> None: ...


class FakeGuard:
    """guard.sock: hold, let_go, press, freeze, thaw, status, progress."""

    def __init__(self, kill_s: float = 0.6, proven: bool = True) -> None:
        self.desk: Desk | None = None
        self.ops: list[dict[str, Any]] = []
        self.latched = False
        self.frozen = 0
        self.notices: list[str] = []
        self.kill: dict[str, Any] | None = None
        self.suspects_asked: list[tuple[str, list[int]]] = []
        self.suspects_answer: dict[str, Any] = {"ok": False, "error": "There is no kill 'k-0': nothing was killed.", "remedy": ""}
        self.kill_s = kill_s
        self.proven = proven
        self.lasting = False
        """The kill is not over before this is False again, with one agent left to prove."""
        self.mute = False
        """Reads and never answers: a hung guard."""
        self._holds: dict[str, asyncio.TimerHandle] = {}
        self._count = 100
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(ConnectionError, ValueError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                message = decode(line)
                self.ops.append({**message, "at": time.monotonic()})
                if not self.mute:
                    writer.write(encode(self._answer(message)))
                    await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def close(self) -> None:
        """Ends every connection."""
        for writer in list(self._writers):
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        op = message.get("op")
        if op == "status":
            return self._state()
        if op == "hold":
            return self._hold(float(message.get("held_s", 0.0)))
        if op == "let_go":
            timer = self._holds.pop(str(message.get("hold_id")), None)
            if timer is None:
                return {"ok": False, "error": "That hold is over.", "remedy": ""}
            timer.cancel()
            self.frozen = 0
            return {"ok": True, "thawed": self._agents()}
        if op == "press":
            return {"ok": True, "kill_id": self._press()}
        if op in ("freeze", "thaw"):
            self.frozen = self._agents() if op == "freeze" else 0
            return {"ok": True, "agents": self._agents()}
        if op == "suspects":
            self.suspects_asked.append((str(message.get("kill_id")), list(message.get("pids", []))))
            return self.suspects_answer
        return {"ok": False, "error": "Unknown op.", "remedy": ""}

    def _hold(self, held_s: float) -> dict[str, Any]:
        self._count += 1
        hold_id = f"h-{self._count}"
        self.frozen = self._agents()
        self._holds[hold_id] = asyncio.get_running_loop().call_later(max(HELD_GRACE_S, HOLD_S - held_s), self._fire, hold_id)
        return {"ok": True, "hold_id": hold_id}

    def _fire(self, hold_id: str) -> None:
        if self._holds.pop(hold_id, None):
            self._press()

    def press_now(self) -> None:
        """A press from elsewhere (call it on the server's loop)."""
        self._press()

    def _press(self) -> str:
        if self.latched and self.kill:
            return str(self.kill["kill_id"])
        self._count += 1
        kill_id = f"k-{self._count:04d}"
        self.latched = True
        self.kill = {"kill_id": kill_id, "phase": "killing", "proven": 0, "total": self._agents(), "ms": 0.0}
        task = asyncio.get_running_loop().create_task(self._kill())
        self._tasks.add(task)
        return kill_id

    async def _kill(self) -> None:
        started = time.monotonic()
        kill = self.kill or {}
        total = int(kill["total"]) - (0 if self.proven else 1)
        if self.desk is not None:
            self.desk.killing(str(kill["kill_id"]))
        while (spent := time.monotonic() - started) < self.kill_s or self.lasting:
            kill.update(proven=min(int(total * spent / self.kill_s), max(0, total - 1)), ms=spent * 1000)
            await asyncio.sleep(0.05)
        kill.update(proven=total, ms=self.kill_s * 1000, phase="second_look")
        await asyncio.sleep(0.05)
        left = int(kill["total"]) - total
        words = f"NOT PROVEN: {left} of {kill['total']} agents may still run" if left else f"{total} of {total} confirmed dead"
        kill.update(phase="done", exit_code=9 if left else 0, short=words)
        if self.desk is not None:
            self.desk.killed(str(kill["kill_id"]), self.proven)

    def _agents(self) -> int:
        return self.desk.live() if self.desk else 0

    def _state(self) -> dict[str, Any]:
        return {
            "ok": True,
            "pid": 2,
            "instance": "0badcafe",
            "latched": self.latched,
            "generation": 1,
            "kills": [self.kill["kill_id"]] if self.kill else [],
            "agents": self._agents(),
            "frozen": {},
            "frozen_n": self.frozen,
            "notices": self.notices,
            "kill": self.kill,
            "heartbeat_age_s": 0.4,
            "lease_left_s": None,
        }
