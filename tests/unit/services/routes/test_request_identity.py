"""Who asks, as the kernel tells it: the account, and behind sudo or su the account that logged in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from starlette.requests import Request

from console.services.routes.request_identity import PID, UID, asked_by, person_of

LOGGED_IN = 1000


def ask(uid: int, pid: int) -> Request:
    return Request({"type": "http", UID: uid, PID: pid})


@pytest.fixture
def logged_in() -> Iterator[int]:
    """The pid of a root process of someone who logged in as another account."""
    script = f"echo {LOGGED_IN} > /proc/self/loginuid && echo set && exec sleep 60"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as shell:
        assert shell.stdout is not None
        is_set = shell.stdout.readline() == "set\n"
        try:
            if not is_set:
                pytest.skip("this kernel keeps no login uid, or only another process may set it")
            yield shell.pid
        finally:
            shell.kill()


def test_an_order_behind_sudo_names_who_logged_in(logged_in: int) -> None:
    assert asked_by(ask(0, logged_in)) == "operator:0/login:1000"
    assert person_of(ask(0, logged_in))["login_uid"] == LOGGED_IN
    assert asked_by(ask(LOGGED_IN, logged_in)) == "operator:1000", "the same account is named once"


def test_without_a_login_or_a_process_the_account_stands_alone() -> None:
    assert asked_by(ask(5, 0)) == "operator:5"
    assert asked_by(Request({"type": "http"})) == f"operator:{os.geteuid()}"
