"""Codex sessions of this host: processes whose executable is codex and that hold a rollout file open."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from console.domain.agent import Sighting, SourceReport
from console.sources.claude_subagents import acted, usage
from console.sources.homes import read_foreign
from console.sources.interface import MAX_SIGHTINGS, Confinement, Pids, plain
from console.sources.processes import ProcessFacts, ProcessTable
from console.sources.session_spend import SessionSpend

_ROLLOUT = re.compile(r"/sessions/\d{4}/\d\d/\d\d/rollout-[0-9T-]{1,40}-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\Z")
_THREAD = re.compile(r"^[0-9a-f-]{8,64}\Z")
_FIRST_LINE_CAP = 262_144  # the session's base instructions are in it: 20 to 27 KB seen
_SEEN_ONLY = "Seen through the rollout it holds open: Watchfloor shows it and has no control over it."


class CodexSource:
    """Walks /proc once a look; identity comes from the kernel alone, only names and places from the rollout."""

    name = "codex"

    def __init__(
        self, root: Path | None = None, pids: Pids = "all", table: ProcessTable | None = None, spend: SessionSpend | None = None
    ) -> None:
        self._confinement = Confinement(root, pids)
        self._table = table or ProcessTable()
        self._spend = spend
        self._meta: dict[tuple[int, int, str], dict[str, Any]] = {}
        """First lines never change: read once per process and thread."""

    def look(self) -> SourceReport:
        """Every Codex thread that runs. Never raises."""
        if not self._table.mounted():
            return SourceReport(self.name, False, "Not available, because /proc is not mounted.")
        found: list[Sighting] = []
        seen: set[tuple[int, int, str]] = set()
        try:
            for pid in self._table.pids():
                if "codex" in self._table.exe(pid) and self._confinement.admits(pid):
                    found += self._threads(pid, seen)
        except OSError as error:
            return SourceReport(self.name, False, f"Not available, because /proc cannot be read: {error.strerror}.")
        self._meta = {key: meta for key, meta in self._meta.items() if key in seen}
        words = "Looks for codex processes that hold a rollout open"
        words += f" below {plain(str(self._confinement.root))}." if self._confinement.root else "."
        if len(found) > MAX_SIGHTINGS:
            words += f" {len(found) - MAX_SIGHTINGS} more threads are not shown."
        return SourceReport(self.name, True, words, tuple(found[:MAX_SIGHTINGS]))

    def _threads(self, pid: int, seen: set[tuple[int, int, str]]) -> list[Sighting]:
        facts = self._table.facts(pid)
        if facts is None or not facts.runs("codex"):
            return []
        rollouts = dict(self._rollouts(pid))
        for thread, entry in rollouts.items():
            key = (pid, facts.identity.start_ticks, thread)
            seen.add(key)
            if key not in self._meta:
                self._meta[key] = _first_line(entry)
        if self._table.start_ticks(pid) != facts.identity.start_ticks:
            return []  # replaced while we read
        return [self._sighting(facts, thread, frozenset(rollouts)) for thread in rollouts]

    def _rollouts(self, pid: int) -> Iterator[tuple[str, Path]]:
        root = self._confinement.root
        for entry, target in self._table.open_files(pid):
            match = _ROLLOUT.search(target)
            if match and (root is None or target.startswith(f"{root}/")):
                yield match[1], entry

    def _sighting(self, facts: ProcessFacts, thread: str, siblings: frozenset[str]) -> Sighting:
        meta = self._meta[facts.identity.pid, facts.identity.start_ticks, thread]
        prefix = f"{facts.uids[1]}-{facts.identity.pid}-{facts.identity.start_ticks}"
        parent = _parent_thread(meta)
        version = plain(meta.get("cli_version"), 20)
        root = plain(meta.get("session_id"), 64) or thread
        spent = self._spend.of(facts.uids[1], self.name, root).get("" if root == thread else thread) if self._spend is not None else None
        return Sighting(
            source=self.name,
            key=f"{prefix}-{thread}",
            name=plain(meta.get("agent_nickname"), 80) or f"codex {version}".strip(),
            process=facts.identity,
            session=thread,
            cwd=plain(meta.get("cwd"), 500) or plain(facts.cwd, 500),
            seen_at=time.time(),
            parent_key=f"{prefix}-{parent}" if parent in siblings and parent != thread else None,
            status="running",
            detail=_SEEN_ONLY,
            usage=usage(spent),
            action=acted(spent),
        )


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
