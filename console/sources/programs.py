"""Programs known to be agents, found among this host's processes. One walk over /proc serves every source that asks within a moment."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from console.domain.agent import ProcessIdentity
from console.domain.process.asked import ASKED
from console.sources.exec_news import ExecNews, exec_news
from console.sources.interface import Pids
from console.sources.process_ends import Ends
from console.sources.processes import ProcessFacts, ProcessTable, ticks_of_boot

FRESH_S, FRESH_MOST_S, SHARE = 0.4, 0.8, 25
"""How long one walk serves: SHARE times as long as it took, within these bounds, so that many processes do not mean much work."""
FACTS_S = 5.0
"""How long what was found of a process is believed while its number, start and executable stay: it may change its user."""
HELD_S, HELD_EXE_S = 12.0, 4.0
"""The same for one that the kernel tells us the end of; between two looks at which program that runs. Spread: no walk looks at all."""
YOUNG_S, YOUNG_AGAIN_S = 10.0, 0.5
"""An interpreter that runs something else may give itself another name in its first seconds: so often it is looked at then."""
OTHERS_MAX = 4096
"""Most executables that are remembered as unknown programs."""
TURNS = 8
"""So many walks read every process once, also without a report: the kernel may lose a report."""
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_NODE, _PYTHON = re.compile(r"^(node|nodejs|bun)(-?[0-9.]+)?\Z"), re.compile(r"^python[0-9.]*\Z")


def _is_interpreter(name: str) -> bool:
    return bool(_NODE.match(name) or _PYTHON.match(name))


@dataclass(frozen=True, slots=True)
class Program:
    """One kind of agent."""

    name: str
    """Of its executable, or of the script an interpreter runs."""
    title: str
    packages: tuple[str, ...] = ()
    """Of npm. A package of this name with a platform behind it (``-linux-x64``) holds the same program."""
    is_python: bool = False
    """Whether Python runs its script; else Node or Bun."""
    native: bool = True
    """Whether an executable of this name is it; False: others have that name too, so only its package counts."""
    service: tuple[tuple[str, ...], str] = ((), "")
    """(its first arguments, its title) as the background service that hosts its sessions; ``((), "")``: it has none."""

    def is_service(self, argv: Sequence[str]) -> bool:
        """Whether these arguments start its background service. An argument is a claim: it gives a name, and never hides a row."""
        words, _ = self.service
        return bool(words) and tuple(argv[1 : 1 + len(words)]) == words

    def is_native(self, exe: str) -> bool:
        """Whether this executable is it: by its name, or by the package it lies in. The kernel says what the path is."""
        path = exe.removesuffix(" (deleted)")
        name = path.rpartition("/")[2].removesuffix(".exe")
        named = name == self.name or name.startswith(f"{self.name}-") or f"/{self.name}/versions/" in path
        return (self.native and named) or bool(_own_file(self.packages).search(path))

    def is_script(self, argument: str) -> bool:
        """Whether an interpreter that was given this argument runs it. What an argument says is a claim: it makes a row, never a target."""
        folder, _, name = argument.rpartition("/")
        named = name == self.name and folder.rpartition("/")[2] in ("bin", ".bin")
        return named or bool(_inside(self.packages).search(argument))

    def is_run_by(self, facts: ProcessFacts) -> bool:
        """Whether this process is one of it, or an interpreter that runs its script."""
        name = facts.exe.removesuffix(" (deleted)").rpartition("/")[2]
        if not _is_interpreter(name):
            return self.is_native(facts.exe)
        if not (_PYTHON if self.is_python else _NODE).match(name):
            return False
        said = facts.argv[:4]
        return (said[0] if said else "").rpartition("/")[2] == self.name or any(self.is_script(argument) for argument in said[1:])


@lru_cache(maxsize=64)
def _inside(packages: tuple[str, ...]) -> re.Pattern[str]:
    """A path inside one of these packages, at any depth."""
    names = "|".join(map(re.escape, packages)) or r"(?!)"
    return re.compile(rf"/node_modules/(?:{names})(?:-[a-z0-9-]+)?/")


@lru_cache(maxsize=64)
def _own_file(packages: tuple[str, ...]) -> re.Pattern[str]:
    """A file at the top of one of these packages, or in its bin: deeper ones are other programs that it brings along."""
    return re.compile(_inside(packages).pattern + r"(?:bin/)?[^/]+\Z")


@dataclass(frozen=True, slots=True)
class Running:
    """A process of a known program, as the kernel has it."""

    program: Program
    facts: ProcessFacts
    parent: int
    """Pid of its parent process."""
    container_id: str
    """By its cgroup, or empty."""
    agent_id: str
    """Which agent of ours it belongs to, or empty."""
    inner_pid: int
    """Its number in its own PID namespace."""
    namespace: str
    """Its PID namespace, ``pid:[…]``, or empty."""

    @property
    def is_script(self) -> bool:
        """Whether an interpreter runs it."""
        return _is_interpreter(self.facts.exe.rpartition("/")[2])


@dataclass(slots=True)
class _Known:
    """What was found of a process, and until when it is believed."""

    process: ProcessIdentity
    running: Running | None
    """None: an interpreter that runs something else."""
    exe: str
    standing: tuple[bytes, str, str]
    is_held: bool
    exe_until: float
    until: float


Whose = Callable[[int, str], str]
"""(pid, its cgroup) -> the agent of ours it belongs to, or empty."""


def nobodys(_pid: int, _cgroup: str) -> str:
    """Where no agents of ours are known."""
    return ""


class Programs:
    """Asked from several threads."""

    def __init__(
        self,
        known: Sequence[Program],
        table: ProcessTable | None = None,
        pids: Pids = "all",
        whose: Whose = nobodys,
        adopted: Callable[[], object] = lambda: None,
    ) -> None:
        """``known``: which programs are agents.

        ``adopted``: another answer means that ``whose`` may say something else of processes it knew.
        """
        self.known = tuple(known)
        self.table = table or ProcessTable()
        self._others: set[str] = set()
        """Executables that are neither a known program nor an interpreter: nearly all that a walk meets."""
        self._pids, self._whose, self._adopted = pids, whose, adopted
        self._adopted_then = adopted()
        self._lock = threading.Lock()
        self._seen: tuple[Running, ...] = ()
        self._good_until = -1e9
        self._kept: dict[int, _Known] = {}
        self._ends = Ends(self.table)
        self._news: ExecNews | None = None
        self._met: set[int] | None = None
        """Pids of the last walk; None before the first."""
        self._turn = 0

    def running(self, *, fresh: bool = False) -> tuple[Running, ...]:
        """Every process of a known program that may be shown. Raises OSError when /proc cannot be read."""
        with self._lock:
            began = time.monotonic()
            if fresh or began > self._good_until:
                self._seen = self._walk()
                ended = time.monotonic()
                self._good_until = ended + min(max(FRESH_S, SHARE * (ended - began)), FRESH_MOST_S)
            return self._seen

    def whose(self, pid: int) -> str:
        """The agent of ours that this process belongs to, or empty."""
        return self._whose(pid, self.table.cgroup(pid))

    def _walk(self) -> tuple[Running, ...]:
        now, kept = time.monotonic(), {}
        for process in self._ends.ended():
            self._kept.pop(process.pid, None)
        if (adopted := self._adopted()) != self._adopted_then:
            self._adopted_then = adopted
            for one in self._kept.values():
                one.until = one.exe_until = now
        met, began = self._begin()
        before, others, exe_of, turn = self._kept, self._others, self.table.exe, self._turn
        pids = self.table.pids()
        for pid in pids:
            had = before.get(pid)
            if had is None:
                if pid in met and pid % TURNS != turn and pid not in began:
                    continue
            elif had.is_held and now < had.exe_until and pid not in began:
                kept[pid] = had
                continue
            exe = exe_of(pid)
            if exe and exe not in others and (seen := self._look_at(pid, exe, had, now)) is not None:
                kept[pid] = seen
        self._met = set(pids)
        for pid in self._kept.keys() - kept.keys():
            self._ends.let_go(pid)
        self._kept = kept
        found = tuple([one.running for one in kept.values() if one.running is not None])
        return self._seen if found == self._seen else found

    def _begin(self) -> tuple[set[int], set[int]]:
        """Return the pids of the last walk, and those of them that executed a program since.

        Both are empty when the kernel reports nothing: every process is read then. Else one in ``TURNS`` of the others is read as well.
        """
        if self._met is None:
            self._met, self._news = set(), exec_news() if self.table.is_real else None
            return set(), set()
        self._turn = (self._turn + 1) % TURNS
        began = self._news.began() if self._news is not None else None
        return (set(), set()) if began is None else (self._met, began)

    def _look_at(self, pid: int, exe: str, had: _Known | None, now: float) -> _Known | None:
        """What is known of it now; None: it is no program that is known, or gone."""
        if not self._is_known(exe):
            if len(self._others) >= OTHERS_MAX:
                self._others.clear()
            self._others.add(exe)
            return None
        # While it is held its number means no other.
        is_held = had is not None and had.is_held and self._ends.holds(had.process)
        start = had.process.start_ticks if had is not None and is_held else self.table.start_ticks(pid)
        if start is None or not (self._pids == "all" or self._pids(pid)):
            return None
        spread = 0.5 + pid % 64 / 64
        is_same = had is not None and (had.process.start_ticks, had.exe) == (start, exe)
        if had is not None and is_same and (now < had.until or self._stands(pid, had)):
            had.is_held, had.exe_until = is_held, now + HELD_EXE_S * spread
            had.until = had.until if now < had.until else now + HELD_S * spread
            return had
        standing = self.table.standing(pid)
        judged = self._judge(pid)
        # What is the same stays the same object: whoever made something of it sees that at once.
        judged = had.running if had is not None and is_same and had.running == judged else judged
        process = judged.facts.identity if judged is not None else ProcessIdentity(pid, start)
        is_held = is_held or self._ends.hold(process)
        until = now + (HELD_S * spread if is_held else FACTS_S)
        if judged is None and ticks_of_boot() - start < YOUNG_S * 100:
            until = now + YOUNG_AGAIN_S
        return _Known(process, judged, exe, standing, is_held, min(until, now + HELD_EXE_S * spread), until)

    def _stands(self, pid: int, had: _Known) -> bool:
        """Return whether a held process is as it was when it was checked. The arguments of a script may change, so a script is checked
        again."""
        if not had.is_held or had.running is None or had.running.is_script:
            return False
        return self.table.standing(pid) == had.standing and self._whose(pid, had.standing[1]) == had.running.agent_id

    def _judge(self, pid: int) -> Running | None:
        facts = self.table.facts(pid)
        if facts is None:
            return None
        program = next((one for one in self.known if one.is_run_by(facts)), None)
        if program is None:
            return None
        cgroup = self.table.cgroup(pid)
        container = _CONTAINER.search(cgroup)
        parent, inner = self.table.parent_and_inner(pid)
        if self.table.start_ticks(pid) != facts.identity.start_ticks or not ASKED.isdisjoint((pid, parent)):
            return None  # replaced while we read, or run by ourselves
        namespace = self.table.pid_namespace(pid)
        return Running(program, facts, parent, container[0] if container else "", self._whose(pid, cgroup), inner, namespace)

    def _is_known(self, exe: str) -> bool:
        """Whether an executable is one of them, or an interpreter that may run one."""
        return _is_interpreter(exe.removesuffix(" (deleted)").rpartition("/")[2]) or any(one.is_native(exe) for one in self.known)
