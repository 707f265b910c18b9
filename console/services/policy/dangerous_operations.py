"""Dangerous operations in what agents are created with and told: an operator confirms them, an agent is refused, and both are on record.

A warning layer over words. What an agent does then is judged call by call, whatever was confirmed here.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path

from console.api.policy import policy_data
from console.domain.agent import AgentId, LaunchRequest
from console.domain.conversation import started_as
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, Denied, Unconfirmed
from console.policy.dangers import Danger, read_dangers
from console.policy.free_text_dangers import Named, dangers_in
from console.policy.rules.loading import MAX_BYTES, read_json
from console.services.notices.shown import Notice
from console.services.policy.config_fallback import LastGood
from console.services.records.record_writer import Scribe
from console.settings.places import Places

OWN_FILE = "dangers.json"
"""Beside ``policy.json``: an operator's own list, added to the product's."""
TOLD_MAX = 12


class OwnList:
    """The product's list and an operator's own. A broken file takes nothing away: what was good last stays, and everybody is told."""

    __slots__ = ("_notice", "_file", "_name", "_kept", "_lock", "_stamp", "_all", "problem")

    def __init__(self, places: Places, notice: Notice) -> None:
        self._notice = notice
        self._file = places.policy_file.with_name(OWN_FILE)
        self._name = str(self._file)
        self._kept = LastGood(
            self._file, self._file.with_name(".dangers-last-good.json"), self._say, "Until it is, a restart goes without it."
        )
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] | None = None
        self._all = policy_data.dangers()
        """The same tuple for as long as nothing changes."""
        self.problem = ""
        with suppress(ConsoleError, OSError):
            self._all = _joined(self._kept.read())

    def current(self) -> tuple[Danger, ...]:
        """Blocks for a ``stat``, and a read when the file changed."""
        with self._lock:
            before = self.problem
            self._look()
            found, problem = self._all, self.problem
        if problem and problem != before:
            self._notice(f"{self._file}: {problem} The product's list and what was good last stay in force.", "red")
        return found

    def _say(self, words: str) -> None:
        self._notice(f"{self._file}: {words}", "red")

    def _look(self) -> None:
        if self._kept.settle() == self.problem or self._kept.trouble:
            self.problem = self._kept.trouble
        try:
            seen = os.stat(self._name)  # noqa: PTH116 - in every judgement
            stamp = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            data = _read(self._file)
            self._all, self.problem = _joined(data), ""
            self._kept.keep(data)
            self.problem = self._kept.trouble
        except FileNotFoundError:
            if os.path.islink(self._name):  # noqa: PTH114 - as above
                self.problem = "It is a link to nothing."
                return
            self._stamp, self.problem = None, ""
            if self._all is not policy_data.dangers():  # an operator took it away
                self._all = policy_data.dangers()
                self._kept.forget()
        except (ConsoleError, OSError, ValueError, RecursionError) as error:
            self.problem = str(error)


class DangerDesk:
    """Asked before anything is started and before anything is said."""

    __slots__ = ("list", "_scribe", "_notice")

    def __init__(self, places: Places, scribe: Scribe, notice: Notice) -> None:
        self._scribe, self._notice = scribe, notice
        self.list = OwnList(places, notice)

    def of_launch(self, request: LaunchRequest) -> tuple[Named, ...]:
        """What its command, prompt and variables name. Blocks."""
        return dangers_in(self.list.current(), _texts(request))

    async def weigh(self, request: LaunchRequest, by: str) -> None:
        """Check a launch. Raises Unconfirmed (no confirmation), Denied (an agent confirmed), NotRecorded (confirmed, but not written)."""
        if request.dangerous_ok and by.startswith("agent:"):
            raise Denied("An agent confirms nothing.", "Leave dangerous_ok out.")
        found = await asyncio.to_thread(self.of_launch, request)
        await self._settle(found, by, request.dangerous_ok, f"start {request.argv[0][:100]}", str(request.parent_id or ""))

    async def check(self, request: LaunchRequest) -> None:
        """The same before several are started: nothing is recorded as confirmed. Raises Unconfirmed."""
        if not request.dangerous_ok.strip() and (found := await asyncio.to_thread(self.of_launch, request)):
            raise unconfirmed(found)

    async def weigh_text(self, agent_id: AgentId, text: str, by: str, dangerous_ok: str) -> None:
        """A message to a running agent. Raises Unconfirmed, NotRecorded."""
        found = await asyncio.to_thread(lambda: dangers_in(self.list.current(), [("message", text)]))
        await self._settle(found, by, dangerous_ok, f"say to {agent_id}", agent_id)

    async def _settle(self, found: tuple[Named, ...], by: str, reason: str, what: str, agent_id: str) -> None:
        if not found:
            return
        scribe, told = self._scribe, _told(found)
        data = {"dangers": [{"name": one.danger.name, "where": one.where, "words": one.words} for one in found[:TOLD_MAX]]}
        if by.startswith("agent:"):
            scribe.record(Record(by, "danger.refused", f"{what}: {told}"[:1000], verdict="deny", agent_id=agent_id, data=data, must=True))
            self._notice(f"{by} was refused: {what}, which names {found[0].danger.name}")
            raise Denied(
                f"It names what only an operator starts: {told}",
                "Leave it out. Ask for the call itself, so that it is checked, or ask an operator.",
            )
        if not reason.strip():
            scribe.record(Record(by, "danger.shown", f"{what}: {told}"[:1000], verdict="ask", agent_id=agent_id, data=data))
            raise unconfirmed(found)
        entry = Record(
            by, "danger.confirmed", f"{what}: {reason.strip()[:400]}: {told}"[:1500], verdict="allow", agent_id=agent_id, data=data
        )
        await asyncio.to_thread(scribe.record_first, entry)


def _joined(data: bytes) -> tuple[Danger, ...]:
    return (*policy_data.dangers(), *read_dangers(read_json(data, OWN_FILE), OWN_FILE))


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a pipe by now waits for nobody
        return file.read(MAX_BYTES + 1)


def unconfirmed(found: tuple[Named, ...]) -> Unconfirmed:
    """What an operator is shown, and confirms by sending it again with a reason."""
    count = f"{len(found)} dangerous operations" if len(found) > 1 else "a dangerous operation"
    return Unconfirmed(
        f"It names {count}: {_told(found)}",
        "Nothing was sent or started. If you mean it, ask again with a reason: --dangerous-ok REASON. Its calls are checked all the same.",
    )


def _told(found: tuple[Named, ...]) -> str:
    more = f"; and {len(found) - TOLD_MAX} more" if len(found) > TOLD_MAX else ""
    return "; ".join(one.line() for one in found[:TOLD_MAX]) + more + "."


def _texts(request: LaunchRequest) -> list[tuple[str, str]]:
    """What the agent is given to read or to run. Of a started program its prompt and words: the shell line around them is ours."""
    started = started_as(request.argv)
    if started is not None:
        texts = [("prompt", started.prompt), ("program", " ".join((started.path, *started.words)))]
    else:
        texts = [("command", " ".join(request.argv))]
        texts += [(f"argument {number}", word) for number, word in enumerate(request.argv[1:], 1) if "\n" in word]
    return [*texts, *((f"variable {name[:60]}", value) for name, value in request.env)]
