"""Codex sessions of this host: processes whose executable is codex and that hold a rollout file open."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from console.domain.agent import Sighting, SourceReport
from console.sources.codex.program import CODEX
from console.sources.home_dirs import read_foreign
from console.sources.interface import MAX_SIGHTINGS, ONLY_OURS, Confinement, Pids
from console.sources.processes import ProcessTable
from console.sources.programs import Programs, Running
from console.sources.recently_ended import Farewells
from console.sources.spend.of_session import SessionSpend, Spent, acted, usage
from console.sources.text import plain

_ROLLOUT = re.compile(r"/sessions/\d{4}/\d\d/\d\d/rollout-[0-9T-]{1,40}-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\Z")
_THREAD = re.compile(r"^[0-9a-f-]{8,64}\Z")
_FIRST_LINE_CAP = 262_144  # the session's base instructions are in it: 20 to 27 KB seen
_SEEN_ONLY = "Seen through the rollout it holds open: Watchfloor shows it and has no control over it."
_OURS = "Its session is seen too, through the rollout it holds open."
_FOLDERS_MAX = 500


_Whose = tuple[int, str, str]
"""Whose spending it is: uid, the root thread, the thread below it or empty."""


class CodexSource:
    """Identity comes from the kernel alone, only names, places and links from the rollout."""

    name = "codex"
    can_see = (
        "Threads of codex processes that hold their rollout open, their sub-agents by Codex's own links, tokens and cost after the fact. "
        "Not threads whose rollout is closed, nor a call before it is made."
    )
    can_stop = "Nothing by itself: adopt a session first, or start it with watchfloor run. A sub-agent stops with its process, never alone."

    def __init__(
        self,
        root: Path | None = None,
        pids: Pids = "all",
        table: ProcessTable | None = None,
        spend: SessionSpend | None = None,
        programs: Programs | None = None,
        outside: bool = True,
    ) -> None:
        self._confinement = Confinement(root, pids, outside)
        self._table = table or ProcessTable()
        self._programs = programs or Programs((CODEX,), self._table)
        self._spend = spend
        self._meta: dict[tuple[int, int, str], dict[str, Any]] = {}
        """First lines never change: read once per process and thread."""
        self._watched: list[Path] = []
        self._shown: dict[str, tuple[Sighting, _Whose]] = {}
        """By key, in this look and, until it is over, in the one before."""
        self._farewells = Farewells()

    def folders(self) -> list[Path]:
        """Where rollouts of today begin, and where those are that are open."""
        day = time.strftime("%Y/%m/%d")
        found = {place.joinpath(*day.split("/")[:n]): None for place in self._places() for n in range(4)}
        return [*found, *self._watched]

    def _places(self) -> list[Path]:
        """Where rollouts are that were not started here: only what lies there is read for what it cost."""
        named = os.environ.get("CODEX_HOME", "") if self._confinement.outside and self._confinement.root is None else ""
        places = [Path(named)] if named.startswith("/") else []
        return [folder / "sessions" for folder in [*places, *(home / ".codex" for home in self._confinement.homes())]]

    def look(self) -> SourceReport:
        """Every Codex thread that runs. Never raises."""
        if not self._table.mounted():
            return SourceReport(self.name, False, "Not available, because /proc is not mounted.")
        found: list[Sighting] = []
        before, self._shown = self._shown, {}
        seen: set[tuple[int, int, str]] = set()
        watched: dict[Path, None] = {}
        try:
            for one in self._programs.running():
                if one.program is CODEX and not one.is_script and self._confinement.admits(one.facts.identity.pid):
                    found += self._threads(one, seen, watched)
        except OSError as error:
            self._shown = before
            return SourceReport(self.name, False, f"Not available, because /proc cannot be read: {error.strerror}.")
        found += self._gone(before)
        self._meta = {key: meta for key, meta in self._meta.items() if key in seen}
        self._watched = list(watched)[:_FOLDERS_MAX]
        words = "Looks for codex processes that hold a rollout open"
        words += f" below {plain(str(self._confinement.root))}." if self._confinement.root else "."
        words = words if self._confinement.outside else ONLY_OURS
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more threads are not shown."
        return SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _gone(self, before: dict[str, tuple[Sighting, _Whose]]) -> list[Sighting]:
        """Those of the look before that are not in this one, and others that left just now."""
        if self._spend is None:
            return []
        for key in before.keys() - self._shown.keys():
            self._farewells.add(key, partial(self._again, *before[key]))
            self._spend.look_soon()  # what it wrote last may not have been told
        for key in self._shown.keys() - before.keys():
            self._farewells.drop(key)
        return self._farewells.now()

    def _again(self, one: Sighting, whose: _Whose) -> list[Sighting]:
        spent = self._spent(whose)
        return [one if spent is None else replace(one, usage=usage(spent), action=acted(spent), model=spent.model, unpriced=spent.unpriced)]

    def _spent(self, whose: _Whose) -> Spent | None:
        uid, root, part = whose
        return self._spend.of(uid, self.name, root).get(part) if self._spend is not None else None

    def _threads(self, one: Running, seen: set[tuple[int, int, str]], watched: dict[Path, None]) -> list[Sighting]:
        pid, ticks = one.facts.identity.pid, one.facts.identity.start_ticks
        rollouts: dict[str, Path] = {}
        unread, places = "", [f"{os.path.realpath(place)}/" for place in self._places()]
        for thread, entry, target in self._rollouts(one):
            rollouts[thread] = entry
            watched[Path(target).parent] = None
            if not one.agent_id and not target.startswith(tuple(places)):
                unread = f"its rollout lies in {plain(str(Path(target).parent), 300)}, which is not read"
        for thread, entry in rollouts.items():
            key = (pid, ticks, thread)
            seen.add(key)
            if not self._meta.get(key):
                self._meta[key] = _first_line(entry)
        if self._table.start_ticks(pid) != ticks:
            return []  # replaced while we read
        # The first thread is the process's own; those it started hang below it.
        shown = [self._sighting(one, thread, frozenset(rollouts), unread) for thread in rollouts]
        return sorted(shown, key=lambda s: s.parent_key is not None)

    def _rollouts(self, one: Running) -> Iterator[tuple[str, Path, str]]:
        root = self._confinement.root
        for entry, target in self._table.open_files(one.facts.identity.pid):
            match = _ROLLOUT.search(target)
            is_outside = self._confinement.outside and (root is None or target.startswith(f"{root}/"))
            if match and (is_outside or one.agent_id):
                yield match[1], Path(entry), target

    def _sighting(self, one: Running, thread: str, siblings: frozenset[str], unread: str) -> Sighting:
        facts = one.facts
        meta = self._meta[facts.identity.pid, facts.identity.start_ticks, thread]
        prefix = f"{facts.uids[1]}-{facts.identity.pid}-{facts.identity.start_ticks}"
        parent = _parent_thread(meta)
        version = plain(meta.get("cli_version"), 20)
        root = plain(meta.get("session_id"), 64) or thread
        whose = facts.uids[1], root, "" if root == thread else thread
        spent = self._spent(whose)
        is_linked = parent in siblings and parent != thread
        unlinked = "its rollout names a parent that this process does not hold open" if parent and not is_linked else ""
        shown = Sighting(
            source=self.name,
            key=f"{prefix}-{thread}",
            name=plain(meta.get("agent_nickname"), 80) or f"codex {version}".strip(),
            process=facts.identity,
            session=thread,
            cwd=plain(meta.get("cwd"), 500) or plain(facts.cwd, 500),
            seen_at=time.time(),
            parent_key=f"{prefix}-{parent}" if is_linked else None,
            container_id=one.container_id,
            status="running",
            detail=_OURS if one.agent_id else _SEEN_ONLY,
            usage=usage(spent),
            action=acted(spent),
            agent_id=one.agent_id,
            model=spent.model if spent is not None else "",
            unpriced=spent.unpriced if spent is not None else 0,
            unlinked=unlinked,
            unread=unread if spent is None else "",
        )
        self._shown[shown.key] = shown, whose
        return shown


def _first_line(entry: Path) -> dict[str, Any]:
    """The payload of the session_meta line; empty when it is not there or not readable."""
    try:
        line = read_foreign(entry, _FIRST_LINE_CAP, follow=True).data.partition(b"\n")[0]
        record = json.loads(line)
    except (OSError, ValueError, RecursionError):
        return {}
    payload = record.get("payload") if isinstance(record, dict) and record.get("type") == "session_meta" else None
    return payload if isinstance(payload, dict) else {}


def _parent_thread(meta: dict[str, Any]) -> str:
    """``source.subagent.thread_spawn.parent_thread_id`` of a sub-agent's rollout, or empty."""
    node: object = meta.get("source")
    for step in ("subagent", "thread_spawn", "parent_thread_id"):
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, str) and _THREAD.match(node) else ""
