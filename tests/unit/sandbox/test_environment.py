"""The environment of an agent: an allowlist from the launcher, a judged list from the request, ours on top."""

from __future__ import annotations

import pytest

from console.domain.errors import Denied, UsageProblem
from console.sandbox.environment import PATH, scrub

OURS = {"WATCHFLOOR_WORKSPACE": "/w/c1", "WATCHFLOOR_AGENT_ID": "a1", "AGENT_AUTH_TOKEN": "token"}


def test_nothing_of_the_launcher_passes_but_the_allowlist() -> None:
    launcher = {
        "WF_SECRET": "canary",
        "AWS_SECRET_ACCESS_KEY": "canary",
        "SSH_AUTH_SOCK": "/tmp/agent",
        "DBUS_SESSION_BUS_ADDRESS": "unix:x",
        "DISPLAY": ":0",
        "LD_PRELOAD": "/x.so",
        "PATH": "/evil",
        "HOME": "/root",
        "HTTP_PROXY": "http://evil",
        "LANG": "de_DE.UTF-8",
        "TZ": "Europe/Berlin",
        "TERM": "xterm",
    }
    found = scrub(launcher, (), OURS)
    assert found == {
        "LANG": "de_DE.UTF-8",
        "TZ": "Europe/Berlin",
        "TERM": "xterm",
        "PATH": PATH,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/sh",
        "PYTHONUNBUFFERED": "1",
        "HOME": "/w/c1",
        **OURS,
    }


@pytest.mark.parametrize("value", ["x\ny", "() { :; }", "a" * 65, "$(id)", ""])
def test_an_allowed_name_with_a_strange_value_is_dropped(value: str) -> None:
    assert "TERM" not in scrub({"TERM": value}, (), {})


def test_what_was_asked_for_is_added_as_pairs_or_mapping() -> None:
    assert scrub({}, [("MY_FLAG", "a\nb")], OURS)["MY_FLAG"] == "a\nb"
    assert scrub({}, {"MY_FLAG": "\u202e"}, OURS)["MY_FLAG"] == "\u202e"


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LD_PRELOAD", "LD_AUDIT", "HTTPS_PROXY", "NO_PROXY", "WATCHFLOOR_AGENT_ID", "AGENT_AUTH_TOKEN", "BASH_ENV", "IFS"],
)
def test_names_that_are_ours_or_steer_are_denied(name: str) -> None:
    with pytest.raises(Denied):
        scrub({}, [(name, "x")], OURS)


@pytest.mark.parametrize("name", ["", "lower", "A=B", "A\0", "1A", "A" * 65, "A\n", "ÄB"])
def test_malformed_names_are_refused(name: str) -> None:
    with pytest.raises(UsageProblem):
        scrub({}, [(name, "x")], OURS)


def test_values_with_nul_or_without_measure_and_too_many_are_refused() -> None:
    for pairs in ([("A", "a\0b")], [("A", "x" * 40_000)], [(f"A{n}", "x") for n in range(101)]):
        with pytest.raises(UsageProblem):
            scrub({}, pairs, OURS)
