"""Hardening as one table: what a sandbox is made of, what each isolation mode must give, and what it cannot give because of what.

Each measure is read back from the real thing: from inside (look.py, before the agent's first instruction), from its cgroups and from
the engine's own description. What a mode must give and did not is a refusal: the agent is not started. What it cannot give is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from console.domain.errors import Denied
from console.domain.sandbox import Given, GivenState

Facts = Mapping[str, Any]
TMP_BYTES = 100 * 1024 * 1024
FILES_MAX = 65536


class Mode(StrEnum):
    """The isolation modes, weakest first."""

    MANAGED = "managed"
    BUBBLEWRAP = "bubblewrap"
    RUNC = "runc"
    RUNSC = "runsc"


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table."""

    name: str
    test: Callable[[Facts], bool | None]
    """True: it is so. None: it could not be looked at. A fact that is missing or of another kind counts as None."""
    words: Callable[[Facts], str]
    """What was found, for a person."""
    lacking: Mapping[Mode, str]
    """Modes that cannot always give it, with the reason. A mode that is not named here must."""


_SHOWS = "it shows this machine's own files"
_NO_BOX = "it is no container"
_HOST_KERNEL = "it shares this machine's kernel"
_ANY_CONTAINER = {Mode.MANAGED: _NO_BOX, Mode.BUBBLEWRAP: _NO_BOX}


def _no_limit(controller: str) -> dict[Mode, str]:
    why = f"no cgroup with the {controller} controller could be used here"
    return {Mode.MANAGED: why, Mode.BUBBLEWRAP: why}


TABLE = (
    Measure("not root", lambda f: min(*f["uids"], *f["gids"]) > 0, lambda f: f"uid {f['uids'][0]}", {}),
    Measure(
        "no other groups",
        lambda f: set(f["groups"]) <= set(f["gids"]),
        lambda f: f"{len(f['groups'])} groups",
        {Mode.MANAGED: "it runs under the operator's own uid and groups"},
    ),
    Measure(
        "no capabilities",
        lambda f: not any(f["caps"][name] for name in ("CapEff", "CapPrm")) and not any(f["caps"].get(n, 0) for n in ("CapInh", "CapAmb")),
        lambda f: f"effective {f['caps']['CapEff']:x}",
        {},
    ),
    Measure("no new privileges", lambda f: f["nnp"] == 1, lambda f: f"no_new_privs {f['nnp']}", {}),
    Measure(
        "system call filter",
        lambda f: f["seccomp"] == 2,
        lambda f: f"seccomp mode {f['seccomp']}",
        {} if os.uname().machine in ("x86_64", "aarch64") else dict.fromkeys(Mode, "this processor is not known to the filter"),
    ),
    Measure(
        "no user namespaces",
        lambda f: f["user_namespaces"] is False,
        lambda f: "may create them" if f["user_namespaces"] else "refused",
        {Mode.MANAGED: "its program builds a sandbox of its own (agents.own_sandbox), or this processor has no filter"},
    ),
    Measure("read-only root", lambda f: "ro" in f["root"], lambda f: ",".join(f["root"])[:60], {Mode.MANAGED: _SHOWS}),
    Measure(
        "/tmp of its own, 100 MiB",
        lambda f: f["tmp"] is not None and f["tmp"]["kind"] == "tmpfs" and f["tmp"]["bytes"] <= TMP_BYTES,
        lambda f: f"{f['tmp']['kind']} of {f['tmp']['bytes'] >> 20} MiB" if f["tmp"] else "this machine's",
        {Mode.MANAGED: _SHOWS},
    ),
    Measure(
        "/tmp without programs",
        lambda f: f["tmp"] is not None and "noexec" in f["tmp"]["options"],
        lambda f: ",".join(f["tmp"]["options"])[:60] if f["tmp"] else "this machine's",
        {Mode.MANAGED: _SHOWS} | ({} if os.geteuid() == 0 else {Mode.BUBBLEWRAP: "bubblewrap mounts nothing noexec for an ordinary user"}),
    ),
    Measure(
        "no engine socket",
        lambda f: f["engine_sockets"] == [],
        lambda f: ", ".join(f["engine_sockets"]) or "none",
        {Mode.MANAGED: _SHOWS},
    ),
    Measure("no devices", lambda f: f["devices"] == [], lambda f: ", ".join(f["devices"]) or "none", {Mode.MANAGED: _SHOWS}),
    Measure(
        "own processes only",
        lambda f: 0 < len(f["processes"]) <= 4,
        lambda f: f"{len(f['processes'])} in sight",
        {Mode.MANAGED: "no PID namespace could be made here"},
    ),
    Measure(
        "loopback only",
        lambda f: f["asked_full"] is False and f["interfaces"] == ["lo"],
        lambda f: ", ".join(f["interfaces"]) or "no interface",
        {Mode.MANAGED: "no network namespace could be made here"},
    ),
    Measure("no core files", lambda f: f["core"] == 0, lambda f: f"{f['core']} bytes", {}),
    Measure("open files bounded", lambda f: 0 < f["files"] <= FILES_MAX, lambda f: f"{f['files']}", {}),
    Measure("processes bounded", lambda f: f["pids_max"] > 0, lambda f: f"{f['pids_max']} processes", _no_limit("pids")),
    Measure("memory bounded", lambda f: f["memory_max"] > 0, lambda f: f"{f['memory_max'] >> 20} MiB", _no_limit("memory")),
    Measure("processor bounded", lambda f: f["cpus"] > 0, lambda f: f"{f['cpus']:g} processors", _no_limit("cpu")),
    Measure("never restarted", lambda f: f["restart"] == "no", lambda f: f"restart {f['restart']!r}", _ANY_CONTAINER),
    Measure("no extra hosts", lambda f: f["extra_hosts"] == [], lambda f: f"{len(f['extra_hosts'])} hosts", _ANY_CONTAINER),
    Measure("not privileged", lambda f: f["privileged"] is False, lambda f: f"privileged {f['privileged']}", _ANY_CONTAINER),
    Measure("image by digest", lambda f: f["image"].startswith("sha256:"), lambda f: f["image"][:19], _ANY_CONTAINER),
    Measure(
        "kernel of its own",
        lambda f: f["kernel"].strip() not in ("", os.uname().release),
        lambda f: f"Linux {f['kernel']}"[:40],
        {Mode.MANAGED: _HOST_KERNEL, Mode.BUBBLEWRAP: _HOST_KERNEL, Mode.RUNC: _HOST_KERNEL},
    ),
)
"""The whole table; docs/reference/sandboxes.md shows it."""

_SHARES = {Mode.MANAGED: "it shares this machine's network", Mode.BUBBLEWRAP: "it shares this machine's network"}


def judge(mode: Mode, facts: Facts) -> tuple[Given, ...]:
    """Every measure as it was found in one sandbox."""
    return tuple(_judge(measure, mode, facts) for measure in TABLE)


def _judge(measure: Measure, mode: Mode, facts: Facts) -> Given:
    try:
        found, words = measure.test(facts), measure.words(facts)
    except (LookupError, TypeError, ValueError, AttributeError):
        found, words = None, "it could not be looked at"
    if found:
        return Given(measure.name, GivenState.GIVEN, words)
    why = measure.lacking.get(mode, "")
    if measure.name == "loopback only" and facts.get("asked_full"):
        why = "FULL was asked for" + (f": {_SHARES[mode]}" if mode in _SHARES else "")
    if why:
        return Given(measure.name, GivenState.NOT_AVAILABLE, why)
    return Given(measure.name, GivenState.MISSING if found is False else GivenState.UNKNOWN, words)


def unseen(why: str) -> tuple[Given, ...]:
    """Return every measure as unknown, with the reason. It is never shown as green."""
    return tuple(Given(measure.name, GivenState.UNKNOWN, why) for measure in TABLE)


def refuse_unless(given: tuple[Given, ...], mode: Mode) -> None:
    """Raises Denied when a measure that this mode must give is missing, or could not be looked at."""
    bad = [f"{g.name} ({g.words})" for g in given if g.state in (GivenState.MISSING, GivenState.UNKNOWN)]
    if bad:
        raise Denied(
            f"The sandbox is not as hard as {mode} must be: {', '.join(bad)[:400]}.",
            "The agent was not started; watchfloor doctor shows what this host has.",
        )
