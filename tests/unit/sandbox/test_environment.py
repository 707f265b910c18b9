"""The environment of an agent: an allowlist from the launcher, a judged list from the request, ours on top."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.domain.errors import Denied, UsageProblem
from console.domain.process.environment import PATH
from console.sandbox.environment import described, passed_on, put_author, scrub

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


def test_a_types_names_are_passed_and_secrets_only_when_they_are_marked() -> None:
    launcher = {
        "BASE_URL": "https://example.org",
        "API_KEY": "canary",
        "OTHER_TOKEN": "canary",
        "DATABASE_URL": "postgres://ann:canary@db/x",
        "NOT_NAMED": "canary",
        "NO_TEXT": "\udcff",
    }
    found, left = passed_on(launcher, ["BASE_URL", "OTHER_TOKEN", "DATABASE_URL", "ABSENT", "NO_TEXT"], ["API_KEY"])
    assert found == {"BASE_URL": "https://example.org", "API_KEY": "canary"}
    assert [words.split(" ", 1)[0] for words in left] == ["OTHER_TOKEN", "DATABASE_URL", "ABSENT", "NO_TEXT"]
    assert "canary" not in str(left)
    assert passed_on(launcher, ["DATABASE_URL"], ["DATABASE_URL"])[0] == {"DATABASE_URL": launcher["DATABASE_URL"]}


@pytest.mark.parametrize("name", ["SSH_AUTH_SOCK", "LD_PRELOAD", "DOCKER_HOST", "HTTPS_PROXY", "PATH", "AGENT_AUTH_TOKEN"])
def test_no_type_passes_what_steers(name: str) -> None:
    with pytest.raises(Denied):
        passed_on({name: "x"}, [], [name])


def test_ours_win_over_the_launch_and_the_launch_over_the_type() -> None:
    found = scrub({}, {"A": "launch"}, {"B": "ours"}, {"A": "type", "B": "type", "C": "type", "LANG": "type"})
    assert (found["A"], found["B"], found["C"], found["LANG"]) == ("launch", "ours", "type", "type")


def test_an_environment_is_described_by_names_alone() -> None:
    env = scrub({}, {"MY_KEY": "canary", "PLAIN": "x"}, OURS, {"REGION": "eu", "X": "canary"})
    said = described(env, ["REGION", "X", "PLAIN"], ["MY_KEY", "PLAIN"], OURS, ["X"])
    by_name = {v.name: (v.origin, v.secret) for v in said}
    assert set(by_name) == set(env)
    assert by_name["AGENT_AUTH_TOKEN"] == ("watchfloor", True)
    assert by_name["MY_KEY"] == ("launch", True) and by_name["PLAIN"] == ("launch", False)
    assert by_name["REGION"] == ("type", False) and by_name["X"] == ("type", True)
    assert by_name["PATH"] == ("default", False)
    assert "canary" not in repr(said)


@pytest.mark.parametrize("hostile", ["fifo", "endless", "no text", "gone"])
def test_settings_of_git_that_are_none_keep_no_launch_waiting_and_name_no_person(tmp_path: Path, hostile: str) -> None:
    file, folder = tmp_path / ".gitconfig", tmp_path / "agent"
    folder.mkdir()
    if hostile == "fifo":
        os.mkfifo(file)
    elif hostile == "endless":
        file.symlink_to("/dev/zero")
    elif hostile == "no text":
        file.write_bytes(b"[user]\n\tname = \xff\n")
    given = put_author({"HOME": str(tmp_path)}, folder)
    assert list(given) == ["GIT_CONFIG_SYSTEM"]
    assert "name = agent\n\temail = agent@localhost\n" in Path(given["GIT_CONFIG_SYSTEM"]).read_text()
