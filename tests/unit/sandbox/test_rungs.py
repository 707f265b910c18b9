"""What is said of PID namespaces: found by doing, and the way up named for each thing that stands in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.sandbox import bubblewrap, rungs
from console.sandbox.interface import Availability

NOT_INSTALLED = "bubblewrap is not installed."
REFUSED = "/usr/bin/bwrap cannot make a sandbox here: bwrap: setting up uid map: Permission denied"


@pytest.fixture
def sysctls(tmp_path: Path) -> Path:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "user").mkdir()
    return tmp_path


def as_user(monkeypatch: pytest.MonkeyPatch, ok: bool, reason: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setattr(bubblewrap, "probe", lambda: Availability(ok, reason, ""))


def test_a_user_with_bubblewrap_has_them(monkeypatch: pytest.MonkeyPatch, sysctls: Path) -> None:
    as_user(monkeypatch, True, "it works")
    found = rungs.find_pid_namespaces(sysctls)
    assert found.ok and "bubblewrap" in found.tried and found.raised_by == ()


@pytest.mark.parametrize(
    ("reason", "name", "value", "way"),
    [
        (NOT_INSTALLED, "", "", "apt install bubblewrap"),
        (REFUSED, "kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        (REFUSED, "kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (REFUSED, "user/max_user_namespaces", "0", "user.max_user_namespaces"),
    ],
)
def test_what_is_in_the_way_is_named(monkeypatch: pytest.MonkeyPatch, sysctls: Path, reason: str, name: str, value: str, way: str) -> None:
    as_user(monkeypatch, False, reason)
    if name:
        (sysctls / name).write_text(f"{value}\n")
    found = rungs.find_pid_namespaces(sysctls)
    assert not found.ok and reason.rstrip(".") in found.tried
    assert any(way in one for one in found.raised_by) and "as root" in found.raised_by[-1]
    assert len(found.raised_by) == 2, "what is not in the way is not named"


@pytest.mark.parametrize("ok", [True, False])
def test_root_makes_its_own(monkeypatch: pytest.MonkeyPatch, ok: bool) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(rungs, "may_unshare", lambda: ok)
    found = rungs.find_pid_namespaces()
    assert found.ok is ok and bool(found.raised_by) is not ok
