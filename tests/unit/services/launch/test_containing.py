"""What holds a program whose start does not say it, and by which way it reaches its model alone."""

from __future__ import annotations

import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from console.domain.agent import AgentId, LaunchRequest, SandboxKind
from console.domain.conversation import Program, command_line
from console.domain.network import Allowlist, AllowlistEntry, NetworkMode
from console.egress.answers import Availability
from console.services.launch import containing
from console.services.launch.containing import Held, held, own_hosts
from console.settings.options import Options, merged

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
ADDRESSES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, *ADDRESSES):
        monkeypatch.delenv(name, raising=False)


def asked(program: str = "claude-code", **more: Any) -> LaunchRequest:
    argv = command_line(Program(program), "do it", "/usr/bin/it", (), talks=True)
    return LaunchRequest(argv, agent_type=program, **more)


def chosen(request: LaunchRequest, *, box: bool = True, proxy: bool = True, entries: tuple[AllowlistEntry, ...] = (), **given: Any) -> Held:
    sandbox: Any = SimpleNamespace(available=lambda: Availability(box, "" if box else "bwrap is not installed", "Install it."))
    return held(
        request, merged(Options(), given), sandbox, lambda: Availability(proxy, "no Envoy", "Install it."), lambda: Allowlist(1, entries)
    )


def test_it_is_contained_where_this_host_can(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(asked()) == Held(SandboxKind.BUBBLEWRAP, NetworkMode.PROXIED)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://models.example.com/v1")
    assert chosen(asked()) == Held(SandboxKind.BUBBLEWRAP, NetworkMode.PROXIED)


def test_what_a_person_chose_of_its_network_is_kept_and_needs_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080")
    for mode in NetworkMode:
        assert chosen(asked(network_mode=mode)) == Held(SandboxKind.BUBBLEWRAP, mode)


def test_without_bubblewrap_it_has_no_sandbox_and_is_said_to_be_held_by_rules_only() -> None:
    given = chosen(asked(), box=False)
    assert (given.sandbox, given.mode) == (SandboxKind.NONE, None)
    assert given.doubt == "no sandbox, because bwrap is not installed: rules only, not contained. Install it."


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://models.example.com:8443/v1", "https://models.example.com:8443/v1"),
        ("http://models.example.com", "http://models.example.com"),
        ("https://10.0.0.5", "https://10.0.0.5"),
        ("https://gateway", "https://gateway"),
        ("https://*.example.com", "https://*.example.com"),
        ("https://me@gateway/v1?a=b", "https://gateway/v1"),
        ("https://[::1", "https://[::1"),
        ("https://x.example.com:99999", "https://x.example.com:99999"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_model_that_only_a_full_network_reaches_leaves_it_and_is_named(monkeypatch: pytest.MonkeyPatch, address: str, shown: str) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    given = chosen(asked())
    assert (given.sandbox, given.mode) == (SandboxKind.BUBBLEWRAP, None)
    assert f"its model answers at {shown}, which is in no entry" in given.doubt and given.doubt.endswith("rules only, not contained")
    assert own_hosts(asked(), Options()) == ()


def test_a_model_that_the_allowlist_reaches_is_reached_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://models.example.com:8080/v1")
    entry = AllowlistEntry("e1", "models.example.com", 8080)
    assert chosen(asked(), entries=(entry,)).mode is NetworkMode.PROXIED
    assert chosen(asked(), entries=(AllowlistEntry("e1", "models.example.com", 80),)).mode is None


def test_a_model_of_a_private_network_is_reached_by_an_entry_or_by_a_full_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://models.example.com")
    hosts: dict[str, Any] = {"egress.hosts": {"models.example.com": ["10.1.2.3"]}}
    given = chosen(asked(), **hosts)
    assert given.mode is None and "its model answers at https://models.example.com, which is in no entry" in given.doubt
    entry = AllowlistEntry("e1", "models.example.com", private_networks=("10.0.0.0/8",))
    assert chosen(asked(), entries=(entry,), **hosts).mode is NetworkMode.PROXIED
    hosts["egress.hosts"]["models.example.com"] = ["11.0.0.1"]
    assert chosen(asked(), **hosts).mode is NetworkMode.PROXIED


def test_a_name_server_that_does_not_answer_keeps_no_start_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_words, **_more: answers.wait(60))
    monkeypatch.setattr(containing, "RESOLVE_S", 0.05)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://models.example.com")
    try:
        assert chosen(asked()).mode is NetworkMode.PROXIED
        assert not answers.is_set()
    finally:
        answers.set()


def test_without_envoy_its_network_is_full_and_that_is_said() -> None:
    given = chosen(asked(), proxy=False)
    assert (given.sandbox, given.mode) == (SandboxKind.BUBBLEWRAP, None) and "Envoy is not available (no Envoy)" in given.doubt
    assert given.doubt.endswith("rules only, not contained. Install it"), "what to do comes last, as without bubblewrap"


def test_its_own_way_leads_to_the_models_whose_keys_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = ("api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai", "opencode.ai")
    assert own_hosts(asked("opencode"), Options()) == everywhere
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert own_hosts(asked("opencode"), Options()) == ("api.openai.com", "opencode.ai")
    assert own_hosts(asked("codex"), Options()) == ("api.openai.com",)
    assert own_hosts(asked("gemini", env=(("GOOGLE_GEMINI_BASE_URL", "https://g.example.com"),)), Options()) == ("g.example.com",)


def test_no_other_agent_has_a_way_of_its_own_and_none_leads_to_the_kill_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_hosts(LaunchRequest(("claude",), agent_type="claude-code"), Options()) == ()
    assert own_hosts(asked(parent_id=AgentId("a-1")), Options()) == ()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://kept.example.com")
    remote = merged(Options(), {"remote.bucket": "b", "remote.endpoint": "https://kept.example.com"})
    assert own_hosts(asked(), remote) == () and own_hosts(asked(), Options()) == ("kept.example.com",)


def test_an_mcp_server_that_an_operator_named_is_never_lost_by_a_default() -> None:
    def serving(*words: str, **more: Any) -> Held:
        given: dict[str, Any] = {"programs.mcp": {"claude-code": {"notes": list(words)}}}
        return chosen(asked(), **given, **more)

    assert serving("/usr/bin/env", "notes") == Held(SandboxKind.BUBBLEWRAP, NetworkMode.PROXIED)
    hidden = serving("/srv/notes", "--all")
    assert hidden.sandbox is SandboxKind.NONE and "does not show its MCP server /srv/notes: rules only" in hidden.doubt
    away = serving("https://docs.example.com/mcp")
    assert (away.sandbox, away.mode) == (SandboxKind.BUBBLEWRAP, None)
    assert "its MCP server notes answers at https://docs.example.com/mcp, which is in no entry" in away.doubt
    assert serving("https://docs.example.com/mcp", entries=(AllowlistEntry("e1", "docs.example.com"),)).mode is NetworkMode.PROXIED
