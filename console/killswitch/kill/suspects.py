"""Suspects: processes that a program outside started since an agent was connected to it, and that look like the agent's work.

They are named, never killed by a kill. ``end`` kills the ones that an operator names, each looked at again first.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from console.domain.errors import NotFound, UsageProblem
from console.domain.guard import AGENT_VARIABLE
from console.domain.kill import Receipt, Suspect
from console.killswitch.kernel import processes
from console.killswitch.kernel.descendants import Row, recent_look
from console.killswitch.kernel.processes import Handle
from console.killswitch.kill.records import Kept, Record
from console.killswitch.kill.snapshot import Process, find_process
from console.killswitch.kill.uncounted import is_installed

MOST = 50
"""Of one kill, by its connections."""
MOST_BESIDE = 500
"""That one adoption left outside."""
LOOKS_BESIDE = 6
SHORTEST = 6
"""Letters of an argument that can tell an agent's work from any other."""
END_S = 2.0
_WORDS = re.compile(r"[^\s'\"`;|&<>(),=]+")
_ORDINARY = re.compile(r"-|/dev/|[a-z]+(-[a-z]+)*\Z")
"""An option, a device, or plain words (``bg-spare``): other sessions of the same program have them as well."""
_OF_OPERATORS = re.compile(r"(?:[\s/'\"]watchfloor|-m console) [a-z]")
"""A command of ours names agents and stands in their folders. An agent's work gains nothing by looking like one: it may leave both out."""
_COMMON_FOLDERS = frozenset({"/", "/root", "/tmp", "/home", "/var", "/usr", "/run", "/opt", "/srv"})  # noqa: S108 - names only
SELECTED = ("marker", "arguments")
"""What a suspect is preselected by; a working folder alone is shared by too many."""
_STARTED, _MAY_HAVE = "started", "may have started"


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one suspect that was named."""

    pid: int
    done: bool
    """Dead, by the kernel."""
    words: str


def find(kept: Iterable[tuple[Record, Kept]], spared: Collection[int], is_own: Collection[int] = ()) -> tuple[Suspect, ...]:
    """The suspects of a kill. ``spared``: the guard, the caller and their ancestors. OSError when processes cannot be listed."""
    pairs = [(record, one, one.peer) for record, one in kept if one.peer is not None]
    if not pairs:
        return ()
    table = recent_look(time.monotonic()).rows
    peers = {peer.pid for _, _, peer in pairs}
    targets = {(pid, ticks) for record, _, _ in pairs for pid, ticks in record.pids.items()}
    found = dict[int, Suspect]()
    rows = sorted((row.ticks, pid) for pid, row in table.items())  # a parent before what it started
    for record, one, peer in pairs:
        tokens = _telling(record, peer)
        for ticks, pid in rows:
            row = table[pid]
            if pid in found or pid in peers or pid in spared or pid in is_own or not row.is_alive or (pid, ticks) in targets:
                continue
            if ticks < one.since_ticks or len(found) >= MOST or not (how := _started_by(pid, one.since_ticks, peer, table, found)):
                continue
            suspect = _suspect(record, peer, pid, row, tokens, how, found.get(row.parent))
            if suspect is not None:
                found[pid] = suspect
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class Origin:
    """An adopted agent as it was before it was moved: what a process of its own that was left outside would share with it."""

    uid: int
    session: int
    program: str
    folder: str
    reaper: int
    """Its ancestor below process 1: a user's service manager takes in orphans. 1 without one."""
    cgroup: str


def origin_from(words: tuple[str, ...]) -> Origin | None:
    """The origin as the registry keeps it, field by field in words; None for anything else."""
    if len(words) == 5:  # written before the reaper was kept
        words = (*words[:4], "1", words[4])
    if len(words) != 6 or not all(number.isdigit() for number in (*words[:2], words[4])):
        return None
    return Origin(int(words[0]), int(words[1]), words[2], words[3], int(words[4]), words[5])


def beside(agent_id: str, first: tuple[int, int], origin: Origin, known: Collection[int]) -> tuple[Suspect, ...]:
    """What an adoption left outside and may be the agent's: of its account, started after it, and sharing one thing more with it.

    ``first``: pid and start time of its first process. ``known``: processes that are the agent's, or never are. OSError when processes
    cannot be listed. Orphans of its cgroup are among them: a guess, see docs/decisions/0001-kill-by-kernel-objects.md.
    """
    never = {first[0], os.getpid(), *known, *processes.ancestors(first[0]), *processes.ancestors(os.getpid())}
    found, table = dict[int, Suspect](), recent_look()
    for _ in range(LOOKS_BESIDE):
        is_settled = _add_beside(found, agent_id, first, origin, never, table.rows)
        if is_settled:
            break  # else an orphan was gone before it could be looked at: one that forks and ends all the time never stands still
        table = recent_look(time.monotonic())
    return tuple(one for one in found.values() if processes.is_alive(one.pid) or is_likely(one))


def _add_beside(
    found: dict[int, Suspect], agent_id: str, first: tuple[int, int], origin: Origin, never: Collection[int], table: dict[int, Row]
) -> bool:
    """One look; whether every orphan of it could still be looked at. What a suspect started is one as well."""
    reapers, is_settled = {1}, True
    if (above := table.get(origin.reaper)) is not None and above.ticks <= first[1]:  # its number is no younger process's
        reapers.add(origin.reaper)
    rows = sorted((row.ticks, pid) for pid, row in table.items())  # a parent before what it started
    for ticks, pid in rows:
        row = table[pid]
        if (
            len(found) >= MOST_BESIDE
            or pid in reapers
            or pid in never
            or pid in found
            or (ticks, pid) < (first[1], first[0])  # who started it may have started in the same hundredth of a second
            or not row.is_alive
            or 2 in (pid, row.parent)
        ):
            continue
        uids = processes.uids(pid)
        if not uids and row.parent in reapers:
            is_settled = False
        if uids != {origin.uid}:
            continue
        by, what = _shared(agent_id, pid, row, origin, reapers)
        if row.parent in found and by not in ("marker", "account"):
            # As likely as what started it: a neighbour in the agent's terminal starts neighbours.
            above_by = found[row.parent].by
            by, what = "account" if above_by == "marker" else above_by, f"process {row.parent} started it, which may be the agent's"
        there = find_process(pid) if by else None
        if there is not None and there.start_ticks == ticks:
            command = processes.command_line(pid, 4096)[:200]
            why = f"it was left outside when {agent_id} was adopted; {what}"
            found[pid] = Suspect(agent_id, pid, ticks, there.program, origin.uid, command, why, by, by == "marker", 0)
        elif by and row.parent in reapers:
            is_settled = False
    return is_settled


def is_likely(one: Suspect) -> bool:
    """Whether a suspect that an adoption left outside takes the proof away: a program or folder alone is shared by too many."""
    return one.by in ("marker", "account")


def _shared(agent_id: str, pid: int, row: Row, origin: Origin, reapers: Collection[int]) -> tuple[str, str]:
    """(what it shares with the agent besides its account, the same in words)."""
    with contextlib.suppress(OSError):
        if f"{AGENT_VARIABLE}={agent_id}".encode() in processes.environment(pid).split(b"\0"):
            return "marker", "its environment names the agent"
    if row.parent in reapers and origin.cgroup and processes.cgroup_line(pid) == origin.cgroup:
        what = "an orphan" if row.parent == 1 else f"a child of process {row.parent}, which may take in orphans; it is"
        return "account", f"{what} of the agent's account and cgroup, started after it"
    if row.session == origin.session and origin.session > 1:
        return "session", f"it is in the agent's session {origin.session}"
    folder = processes.link(pid, "cwd")
    if folder and origin.folder not in ("", *_COMMON_FOLDERS) and (folder + "/").startswith(origin.folder + "/"):
        return "working folder", "it works in the agent's folder"
    if (there := find_process(pid)) is not None and there.program == origin.program and row.parent in reapers:
        return "program", "an orphan that runs the agent's program, started after it"
    return "", ""


def _started_by(pid: int, since: int, peer: Process, table: dict[int, Row], found: Mapping[int, Suspect]) -> str:
    """Whether the other end or a suspect started a process, in words; empty: it is not known to.

    By parent; or, for what lost its parent since, by session or cgroup, and last by account. A caller in the same terminal has lost none.
    """
    top, above = pid, table[pid].parent
    if above in found:
        return _MAY_HAVE if not found[above].preselected else _STARTED
    for _ in range(64):
        if above == peer.pid:
            return _STARTED if peer.pid not in table or table[peer.pid].ticks == peer.start_ticks else ""
        if above <= 1 or above not in table or table[above].ticks < since:
            break
        top, above = above, table[above].parent
    there = table.get(peer.pid)
    is_orphan = above <= 1 or processes.short_name(above) == "systemd"  # whatever lost its parent comes to one of these
    if there is None or there.ticks != peer.start_ticks or not is_orphan or top == 2:
        return ""
    line = processes.cgroup_line(peer.pid)
    if table[top].session == there.session > 1 or (line not in (None, "/") and processes.cgroup_line(pid) == line):
        return _STARTED
    return _MAY_HAVE if top == pid and processes.uids(pid) == processes.uids(peer.pid) else ""


def _suspect(record: Record, peer: Process, pid: int, row: Row, tokens: Collection[str], how: str, above: Suspect | None) -> Suspect | None:
    """None when nothing connects it with the agent. ``above``: the suspect that started it."""
    there = find_process(pid)
    if there is None or there.start_ticks != row.ticks:
        return None
    command = processes.command_line(pid, 4096)
    by, what = _link(record, pid, command, tokens)
    if above is not None and by not in SELECTED:
        by, what = above.by, what or "it has no mark of its own"
    if not by or (above is None and how == _MAY_HAVE and by not in SELECTED):
        return None  # a folder alone is shared with too many orphans of the account
    is_same_account = there.uid in record.uids
    who = f"{peer.name or 'process'} (process {peer.pid})"
    why = f"{who} {how} it after {record.agent_id} was connected to it" if above is None else f"process {above.pid}, a suspect, started it"
    why += f"; {what}"
    if not is_same_account:
        why += "; it runs under another account than the agent, so Watchfloor does not end it"
    is_selected = is_same_account and how != _MAY_HAVE and by in SELECTED
    return Suspect(record.agent_id, pid, row.ticks, there.program, there.uid, command[:200], why, by, is_selected, peer.pid)


def _link(record: Record, pid: int, command: str, tokens: Collection[str]) -> tuple[str, str]:
    """(what connects it with the agent, the same in words)."""
    mark = f"{AGENT_VARIABLE}={record.agent_id}".encode()
    try:
        if mark in processes.environment(pid).split(b"\0"):
            return "marker", "its environment names the agent"
    except OSError:
        pass  # it does not let itself be read: its command line may still tell
    if _OF_OPERATORS.search(command):
        return "", ""
    words = set(_WORDS.findall(command))
    if record.agent_id in words:
        return "marker", "its arguments name the agent"
    if shared := sorted(words & set(tokens), key=len):
        return "arguments", f"it has an argument of the agent's: {shared[-1][:80]}"
    folder = processes.link(pid, "cwd")
    if folder and any(folder == own or folder.startswith(own + "/") for own in record.folders - _COMMON_FOLDERS):
        return "working folder", "it works in the agent's folder"
    return "", ""


def _telling(record: Record, peer: Process) -> set[str]:
    """Arguments of the agent that no ordinary program has: long, neither an option nor a program, and not the other end's own."""
    found = {word for line in record.words for word in _WORDS.findall(line)}
    common = set(_WORDS.findall(processes.command_line(peer.pid, 4096)))
    common |= set(_WORDS.findall(processes.command_line(os.getpid(), 4096)))
    return {w for w in found - common if len(w) >= SHORTEST and not _ORDINARY.match(w) and w not in _COMMON_FOLDERS and not is_installed(w)}


def chosen(receipt: Receipt, pids: Collection[int]) -> list[Suspect]:
    """The suspects that are meant: those named, or the preselected ones. Raises NotFound, or UsageProblem for a pid that is none."""
    if not receipt.suspects:
        raise NotFound(f"Kill {receipt.kill_id} has no suspects.", "watchfloor receipt show lists what a kill found.")
    known = {one.pid: one for one in receipt.suspects}
    if strange := sorted(set(pids) - known.keys()):
        raise UsageProblem(
            f"Process {strange[0]} is no suspect of kill {receipt.kill_id}: nothing was killed.",
            f"watchfloor receipt show {receipt.kill_id} lists them.",
        )
    return [known[pid] for pid in dict.fromkeys(pids)] if pids else [one for one in receipt.suspects if one.preselected]


def end(receipt: Receipt, suspects: Iterable[Suspect], spared: Collection[int]) -> list[Ended]:
    """SIGKILL to each through a pidfd, after it was looked at again; waits until they are dead, 2 s at most.

    ``spared``: the guard, the supervisor, connected consoles, the caller and their ancestors.
    """
    peers = {(c.peer_pid, c.peer_start_ticks) for c in receipt.connections}
    done, sent = list[Ended](), list[tuple[Suspect, Handle]]()
    for one in suspects:
        try:
            handle = Handle(one.pid, one.start_ticks)
        except ProcessLookupError:
            gone = processes.start_ticks(one.pid) is None
            words = "it had ended" if gone else "its number belongs to another process by now: nothing was sent to it"
            done.append(Ended(one.pid, gone, words))
            continue
        except OSError as error:
            done.append(Ended(one.pid, False, f"it could not be opened: {error.strerror or error}"))
            continue
        if not handle.is_alive():  # its parent has not taken note of it yet
            handle.close()
            done.append(Ended(one.pid, True, "it had ended"))
            continue
        if why := why_not(one, peers, spared, accounts_of(receipt, one.agent_id)):
            handle.close()
            done.append(Ended(one.pid, False, f"not killed: {why}"))
            continue
        handle.send(signal.SIGKILL)
        sent.append((one, handle))
    return [*done, *_wait(sent)]


def accounts_of(receipt: Receipt, agent_id: str) -> set[int]:
    """The accounts that a target ran under, as its receipt has them."""
    found = [t.evidence.get("accounts") for t in receipt.targets if t.agent_id == agent_id]
    return {uid for uids in found if isinstance(uids, list) for uid in uids if isinstance(uid, int)}


def why_not(one: Suspect, peers: Collection[tuple[int, int]], spared: Collection[int], account: Collection[int]) -> str:
    """Why a suspect is not killed, as it is now; empty when it may be."""
    if one.pid <= 1 or one.pid in spared:
        return "it is the one who asked, a part of Watchfloor, or an ancestor of theirs"
    if (one.pid, one.start_ticks) in peers:
        return "it is the other end of a connection: other programs may depend on it"
    now = find_process(one.pid)
    if now is None or now.start_ticks != one.start_ticks:
        return "its number belongs to another process by now"
    if now.program != one.exe:
        return "it runs another program by now"
    if processes.uids(one.pid) != {one.uid} or one.uid not in account:
        return "it runs under another account than the agent"
    return ""


def _wait(sent: list[tuple[Suspect, Handle]]) -> list[Ended]:
    until = time.monotonic() + END_S
    while any(handle.is_alive() for _, handle in sent) and time.monotonic() < until:
        time.sleep(0.01)
    done = []
    for one, handle in sent:
        alive = handle.is_alive()
        done.append(Ended(one.pid, not alive, "still alive after SIGKILL" if alive else "killed"))
        handle.close()
    return done
