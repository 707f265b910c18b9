"""The product's own options: defaults, the file, and what a broken file means."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from msgspec import structs

from console.domain.errors import ConsoleError
from console.domain.message import Malformed, Message
from console.settings.options import (
    Options,
    load_options,
    merged,
    save_options,
)
from console.settings.table import rows_of


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    options = load_options(tmp_path / "settings.json")
    assert options == Options()
    assert (options.spawn.max_depth, options.spawn.max_children) == (3, 6)
    assert options.remote.bucket == ""


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    wanted = {"remote.bucket": "b", "heartbeat_s": 5.0, "stand_ins": ["bucket"]}
    save_options(tmp_path / "settings.json", wanted)
    assert load_options(tmp_path / "settings.json") == merged(Options(), wanted)
    assert [p.name for p in tmp_path.iterdir()] == ["settings.json"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "the file"),
        ("{", "the file"),
        ("[]", "the file"),
        ('{"spawn": {"max_depth": 0}}', "spawn.max_depth"),
        ('{"agents": {"uid": 0}}', "agents.uid"),
        ('{"remote": {"poll_s": 60}}', "remote.poll_s"),
        ('{"typo": 1}', "typo"),
        ('{"heartbeat_s": -1}', "heartbeat_s"),
        ('{"environment": {"bot": {"names": ["API_KEY"]}}}', "environment.bot.names: .*list it under secrets"),
        ('{"environment": {"bot": {"secrets": ["SSH_AUTH_SOCK"]}}}', "environment.bot.secrets"),
        ('{"environment": {"bot": {"names": ["lower"]}}}', "environment.bot.names"),
        ('{"environment": {"": {}}}', "environment: .*has a name"),
        ('{"environment": {"A b": {}}}', "environment"),
        ('{"agents": {"uid": 65534}, "agents": {}}', "'agents' is there twice"),
        ('{"spawn": {"max_depth": 1, "max_depth": 9}}', "'max_depth' is there twice"),
    ],
)
def test_a_broken_file_is_an_error_that_names_the_field(tmp_path: Path, text: str, field: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(ConsoleError, match=field):
        load_options(tmp_path / "settings.json")


def test_an_unreadable_file_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConsoleError, match="cannot be read"):
        load_options(tmp_path / "settings.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConsoleError, match="cannot be read"):
        load_options(tmp_path / "folder.json")


def test_changes_are_checked() -> None:
    with pytest.raises(Malformed):
        merged(Options(), {"spawn.max_depth": 99})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a b", ["/x"]),
        ("a__b", ["/x"]),
        ("", ["/x"]),
        ("a", []),
        ("a", ["x"]),
        ("a", ["/x", "y\nz"]),
        ("a", ["https://x", "/y"]),
        ("a", ["--x"]),
        ("a", ["/opt/../tmp/x"]),
        ("a", ["http:///x"]),
        ("a", ["https://-x"]),
    ],
)
def test_an_mcp_server_has_a_plain_name_and_a_whole_path_or_an_address(name: str, words: list[str]) -> None:
    with pytest.raises(Malformed, match=r"programs\.mcp"):
        merged(Options(), {"programs.mcp": {"codex": {name: words}}})
    kept = {"codex": {"a_1-b": ["/opt/x", "--y", "z"], "c": ["https://c.example/mcp"]}}
    assert merged(Options(), {"programs.mcp": kept}).programs.mcp == kept


def test_servers_are_of_a_program_that_is_started_and_not_too_many() -> None:
    for program, names in (("claude", ["a"]), ("codex", [f"a{n}" for n in range(51)])):
        with pytest.raises(Malformed, match=r"programs\.mcp"):
            merged(Options(), {"programs.mcp": {program: {name: ["/x"] for name in names}}})


def test_every_option_explains_itself() -> None:
    kinds = [field.type for field in structs.fields(Options)]
    sections: list[type[Message]] = [Options, *(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Message))]
    assert len(sections) > 9
    for section in sections:
        assert all(row.words for row in rows_of(section)), section


@pytest.mark.parametrize("text", ["1e999", "NaN", "Infinity", "true", '"30"', "0"])
def test_a_number_without_an_end_or_of_another_type_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.json").write_text(f'{{"heartbeat_s": {text}}}')
    with pytest.raises(ConsoleError, match=r"settings\.json: "):
        load_options(tmp_path / "settings.json")


def test_the_host_and_the_engine_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert Options().host() == socket.gethostname()
    assert Options(host_name="h").host() == "h"
    assert Options().engine() == "/var/run/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", "unix:///x.sock")
    assert Options().engine() == "/x.sock"
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:1")
    assert Options().engine() == "/var/run/docker.sock"
    assert Options(engine_socket="/y.sock").engine() == "/y.sock"


def test_a_refused_value_is_told_in_our_own_words_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"environment": {"bot": {"names": ["A_TOKEN"]}}}')
    with pytest.raises(ConsoleError) as refused:
        load_options(file)
    assert "environment.bot.names: A_TOKEN reads as a secret's name" in refused.value.what and "Value error" not in refused.value.what
