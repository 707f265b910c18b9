"""The table of hardening: every measure judged, what must be there and is not is refused, what nobody saw is never green."""

from __future__ import annotations

from typing import Any

import pytest

from console.domain.errors import Denied
from console.domain.sandbox import GivenState
from console.sandbox.hardening import TABLE, TMP_BYTES, Mode, judge, refuse_unless, unseen

GOOD: dict[str, Any] = {
    "uids": [65534] * 3,
    "gids": [65534] * 3,
    "groups": [65534],
    "caps": {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0, "CapBnd": 0},
    "nnp": 1,
    "seccomp": 2,
    "root": ["ro", "relatime"],
    "tmp": {"kind": "tmpfs", "options": ["rw", "noexec"], "bytes": TMP_BYTES},
    "engine_sockets": [],
    "devices": [],
    "processes": [1],
    "interfaces": ["lo"],
    "asked_full": False,
    "core": 0,
    "files": 4096,
    "pids_max": 77,
    "memory_max": 256 << 20,
    "cpus": 2.0,
    "restart": "no",
    "extra_hosts": [],
    "privileged": False,
    "image": "sha256:0123",
    "kernel": "4.4.0",
    "user_namespaces": False,
}
BROKEN: dict[str, tuple[str, Any]] = {
    "not root": ("uids", [0, 65534, 65534]),
    "no other groups": ("groups", [0, 65534]),
    "no capabilities": ("caps", {"CapEff": 1, "CapPrm": 0}),
    "no new privileges": ("nnp", 0),
    "system call filter": ("seccomp", 0),
    "no user namespaces": ("user_namespaces", True),
    "read-only root": ("root", ["rw"]),
    "/tmp of its own, 100 MiB": ("tmp", {"kind": "tmpfs", "options": ["noexec"], "bytes": TMP_BYTES + 1}),
    "/tmp without programs": ("tmp", {"kind": "tmpfs", "options": ["rw"], "bytes": 1}),
    "no engine socket": ("engine_sockets", ["/run/docker.sock"]),
    "no devices": ("devices", ["/dev/kvm"]),
    "own processes only": ("processes", [1, 2, 3, 4, 5]),
    "loopback only": ("interfaces", ["eth0", "lo"]),
    "no core files": ("core", -1),
    "open files bounded": ("files", -1),
    "processes bounded": ("pids_max", 0),
    "memory bounded": ("memory_max", 0),
    "processor bounded": ("cpus", 0.0),
    "never restarted": ("restart", "always"),
    "no extra hosts": ("extra_hosts", ["host.docker.internal:host-gateway"]),
    "not privileged": ("privileged", True),
    "image by digest": ("image", "watchfloor-agent:latest"),
    "kernel of its own": ("kernel", __import__("os").uname().release),
}


def test_the_table_names_each_measure_once_and_every_one_can_break() -> None:
    assert [m.name for m in TABLE] == list(BROKEN)


def test_a_whole_sandbox_is_given_everything_in_every_mode() -> None:
    for mode in Mode:
        given = judge(mode, GOOD)
        assert {g.state for g in given} == {GivenState.GIVEN}
        refuse_unless(given, mode)


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_missing_is_refused_or_said_with_its_reason(name: str) -> None:
    key, value = BROKEN[name]
    measure = next(m for m in TABLE if m.name == name)
    for mode in Mode:
        found = next(g for g in judge(mode, {**GOOD, key: value}) if g.name == name)
        reason = measure.lacking.get(mode, "")
        if reason:
            assert found.state is GivenState.NOT_AVAILABLE and f"{name}: not available, because " in found.line()
        else:
            assert found.state is GivenState.MISSING
            with pytest.raises(Denied, match=name):
                refuse_unless(judge(mode, {**GOOD, key: value}), mode)


@pytest.mark.parametrize("name", BROKEN)
def test_what_could_not_be_looked_at_is_never_green(name: str) -> None:
    without = {key: value for key, value in GOOD.items() if key != BROKEN[name][0]}
    given = judge(Mode.RUNC, without)
    assert next(g for g in given if g.name == name).state is not GivenState.GIVEN
    if name != "kernel of its own":
        with pytest.raises(Denied):
            refuse_unless(given, Mode.RUNC)


def test_full_says_that_it_was_asked_for() -> None:
    found = next(g for g in judge(Mode.BUBBLEWRAP, {**GOOD, "asked_full": True, "interfaces": ["eth0", "lo"]}) if g.name == "loopback only")
    assert found.state is GivenState.NOT_AVAILABLE and "FULL was asked for" in found.words


@pytest.mark.parametrize("name", BROKEN)
def test_a_fact_that_is_nothing_is_never_green(name: str) -> None:
    key = BROKEN[name][0]
    for nothing in (None, type(GOOD[key])()) if key in ("uids", "tmp", "kernel", "image") else (None,):
        found = next(g for g in judge(Mode.RUNSC, {**GOOD, key: nothing}) if g.name == name)
        assert found.state is not GivenState.GIVEN, (nothing, found)


def test_hostile_facts_are_unknown_and_raise_nothing() -> None:
    for value in (None, "x", [], {}, 3, ["a"], {"options": 3}):
        given = judge(Mode.RUNSC, dict.fromkeys(GOOD, value))
        assert GivenState.UNKNOWN in {g.state for g in given}, value
        with pytest.raises(Denied):
            refuse_unless(given, Mode.RUNSC)


def test_what_nobody_saw_is_unknown_in_words() -> None:
    assert {g.state for g in unseen("no Python")} == {GivenState.UNKNOWN} and "UNKNOWN" in unseen("x")[0].line()
