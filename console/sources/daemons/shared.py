"""Programs that serve many purposes and may start an agent again: named with the one job that does, never frozen and never signalled.

What is found comes from the ancestors and the cgroup of the agent's process. Names that the job itself can choose are checked before they
become part of a command: an agent must not write the command that an operator runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from console.domain.agent import ProcessIdentity
from console.sources.daemons import processes as p
from console.sources.daemons.interface import SharedJob

_TMUX = re.compile(r"(/[A-Za-z0-9_./@+-]{1,200}),(\d{1,10}),\d{1,6}\Z")
_PANE = re.compile(r"%\d{1,9}\Z")
_SCREEN = re.compile(r"(\d{1,10})\.[A-Za-z0-9_.-]{1,100}\Z")
_NUMBER = re.compile(r"\d{1,9}\Z")
_UNIT = re.compile(r"/([A-Za-z0-9_.@:-]{1,200}\.service)(?:/|\Z)")
_CONTAINER = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")
_OURS = re.compile(r"\A/system\.slice/watchfloor(-guard)?\.service/watchfloor-[0-9a-f]{8}/")
_LOGIN = re.compile(r"(user@\d+|session-.*|getty@.*|ssh(d|@.*)?|display-manager|gdm.*|lightdm|cron|crond|atd|docker|containerd)\.service\Z")
"""Units that serve a whole account or machine: no job of one agent."""

Find = Callable[[Sequence[ProcessIdentity], int], SharedJob | None]


def shared_jobs(line: Sequence[ProcessIdentity]) -> list[SharedJob]:
    """The jobs that the session's process runs in. ``line``: it and its ancestors, without process 1."""
    if not line:
        return []
    found = [job for n in range(1, len(line)) if (job := _of_ancestor(line, n)) is not None]
    return found + [job for find in (_unit, _container) if (job := find(line[0])) is not None]


def _of_ancestor(line: Sequence[ProcessIdentity], n: int) -> SharedJob | None:
    """``line[n]`` as such a program, ``line[n - 1]`` as the job in it."""
    name = p.exe(line[n].pid).removesuffix(" (deleted)").rpartition("/")[2]
    find = {"tmux": _tmux, "screen": _screen, "SCREEN": _screen, "cron": _cron, "crond": _cron, "atd": _at}.get(name)
    if find is None and "God Daemon" in " ".join(p.argv(line[n].pid)[:3]):
        find = _pm2
    return find(line, n) if find is not None else None


def _job(program: str, process: ProcessIdentity, job: str, *command: str) -> SharedJob:
    uid = p.account(process.pid)
    return SharedJob(program, process, p.exe(process.pid), -1 if uid is None else uid, job, command)


def _tmux(line: Sequence[ProcessIdentity], n: int) -> SharedJob:
    seen = p.variables(line[n - 1].pid)
    where, pane = _TMUX.match(seen.get("TMUX", "")), seen.get("TMUX_PANE", "")
    if where is None or not _PANE.match(pane) or int(where[2]) != line[n].pid:
        return _job("tmux", line[n], "")
    return _job("tmux", line[n], f"pane {pane}", "tmux", "-S", where[1], "kill-pane", "-t", pane)


def _screen(line: Sequence[ProcessIdentity], n: int) -> SharedJob:
    seen = p.variables(line[n - 1].pid)
    where, window = _SCREEN.match(seen.get("STY", "")), seen.get("WINDOW", "")
    if where is None or not _NUMBER.match(window) or int(where[1]) != line[n].pid:
        return _job("screen", line[n], "")
    return _job("screen", line[n], f"window {window} of {where[0]}", "screen", "-S", where[0], "-p", window, "-X", "kill")


def _pm2(line: Sequence[ProcessIdentity], n: int) -> SharedJob:
    number = p.variables(line[n - 1].pid).get("pm_id", "")
    if not _NUMBER.match(number):
        return _job("pm2", line[n], "")
    return _job("pm2", line[n], f"application {number}", "pm2", "delete", number)


def _cron(line: Sequence[ProcessIdentity], n: int) -> SharedJob:
    """It has no command that removes one line of a table: ``crontab -e`` is a person's."""
    uid = p.account(line[n - 1].pid)
    return _job("cron", line[n], f"a line in the table of account {uid}; crontab -e removes it" if uid is not None else "")


def _at(line: Sequence[ProcessIdentity], n: int) -> SharedJob:
    """The job that runs is out of the queue already; what it queued again has a number that nothing here tells."""
    return _job("at", line[n], "a job of its queue; atq lists those that still wait and atrm removes one")


def _unit(process: ProcessIdentity) -> SharedJob | None:
    for text in p.read(process.pid, "cgroup").decode(errors="replace").splitlines():
        _, _, rest = text.partition(":")
        names, _, path = rest.partition(":")
        # Agents of the host's instance live below its guard's unit. To stop that one would take the kill switch from all of them.
        units = [unit for unit in _UNIT.findall(_OURS.sub("/", path)) if not _LOGIN.match(unit)]
        if names in ("", "name=systemd") and units and "/docker/" not in path:
            of_user = ("--user",) if "/user@" in path else ()
            return SharedJob("systemd", None, "", 0, f"unit {units[-1]}", ("systemctl", *of_user, "stop", units[-1]))
    return None


def _container(process: ProcessIdentity) -> SharedJob | None:
    found = _CONTAINER.search(p.read(process.pid, "cgroup").decode(errors="replace"))
    if found is None:
        return None
    command = ("docker", "update", "--restart=no", found[1])
    return SharedJob("container engine", None, "", 0, f"container {found[1][:12]}", command)
