"""The name of the account that gives an order."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from console.domain.process import account
from console.domain.process.account import login_uid, named_here, operator


def test_the_name_behind_sudo_is_told_and_hostile_text_in_its_place_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(account, "login_uid", lambda _pid: -1)
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert operator() == f"{pwd.getpwuid(0).pw_name} (uid 0)"
    monkeypatch.setenv("SUDO_USER", "ann")
    assert operator() == "ann through sudo (uid 0)"
    monkeypatch.setenv("SUDO_USER", "ann\x1b[2J")
    assert operator() == f"{pwd.getpwuid(0).pw_name} (uid 0)"
    monkeypatch.setattr(os, "getuid", lambda: 4_000_111)
    assert operator() == "unknown (uid 4000111)"


@pytest.mark.parametrize("shell", ["su", "sudo"])
def test_behind_su_and_sudo_who_logged_in_is_told_whatever_the_environment_says(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(account, "login_uid", lambda _pid: 4_000_110)
    monkeypatch.setenv("SUDO_USER", "ann") if shell == "sudo" else monkeypatch.delenv("SUDO_USER", raising=False)
    assert operator() == f"{pwd.getpwuid(0).pw_name} (uid 0), logged in as unknown (uid 4000110)"
    monkeypatch.setattr(account, "login_uid", lambda _pid: 0)
    assert "logged in" not in operator(), "root logged in as root"


def test_the_account_that_logged_in_is_the_kernel_s_word() -> None:
    said = Path("/proc/self/loginuid").read_text()
    assert login_uid("self") == (-1 if said == "4294967295" else int(said)) and login_uid(2**22) == -1


def test_an_operator_of_a_record_is_read_by_name_and_the_name_cannot_pass_for_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {4_000_112: ("ann", "Ann Adams,room 2,,"), 4_000_113: ("bob", "root (uid 0)\x1b[2J\u202e"), 4_000_114: ("eve", "eve")}

    def found(uid: int) -> pwd.struct_passwd:
        login, gecos = names[uid]
        return pwd.struct_passwd((login, "x", uid, uid, gecos, "/", "/bin/sh"))

    monkeypatch.setattr(pwd, "getpwuid", found)
    assert named_here("operator:4000112") == "ann (Ann Adams, uid 4000112)"
    assert named_here("operator:4000113") == "bob (root uid 0 2J, uid 4000113)".replace(" 2J", " [2J")
    assert named_here("killed by operator:4000114: too wide") == "killed by eve (uid 4000114): too wide"
    assert named_here("operator:4000115") == "uid 4000115"
    assert named_here("agent:operator") == "agent:operator"


def test_who_logged_in_is_named_beside_the_account() -> None:
    assert named_here("operator:4000116/login:4000117") == "uid 4000116, logged in as uid 4000117"
