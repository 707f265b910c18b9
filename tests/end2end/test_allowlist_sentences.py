"""The allowlist as reviewed configuration: history and the way back, files, marks, and what a change would have done to real requests."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.api.client.api_client import ApiClient
from console.api.messages import AllowlistEntryBody
from tests.fakes.instance import until
from tests.fakes.terminal import Terminal, open_terminal

pytestmark = pytest.mark.envoy
ASK = (
    "import urllib.request, urllib.error, sys\n"
    "for url in sys.argv[1:]:\n"
    "  try: print(url, urllib.request.urlopen(url, timeout=60).status, flush=True)\n"
    "  except urllib.error.HTTPError as e: print(url, e.code, flush=True)\n"
    "  except OSError as e: print(url, e, flush=True)\n"
)


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    folder = Path(os.environ["TMPDIR"]) / "pytest-of-allowlist"
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    with open_terminal(folder) as made:
        made.serve_forked(envoy=True)
        with ApiClient(made.places, timeout_s=60) as api:
            until(lambda: api.allowlist().envoy == "healthy", words="Envoy is healthy")
        yield made
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def empty(terminal: Terminal) -> Iterator[None]:
    yield
    for entry in terminal("allowlist", "list", "--json").json["entries"]:
        assert terminal("allowlist", "remove", entry["entry_id"], "--reason", "tests are over").code == 0


def add(terminal: Terminal, host: str, *more: str) -> str:
    said = terminal("allowlist", "add", host, "--reason", "tests", "--owner", "ops", "--json", *more)
    assert said.code == 0, said.err
    return str(said.json["entry_id"])


def test_the_command_line_shows_warnings_first_and_refuses_what_cannot_hold(terminal: Terminal) -> None:
    def added(host: str, *more: str) -> tuple[int, str]:
        said = terminal("allowlist", "add", host, "--reason", "tests", "--owner", "ops", *more)
        return said.code, said.err

    code, words = added("gist.github.com")
    assert code == 0 and "DANGER: made for publishing or collecting" in words
    code, words = added("api.example.com", "--method", "GET")
    assert code != 0 and "cannot be enforced on port 443" in words
    code, words = added("gist.github.com")
    assert code != 0 and "allows exactly this already" in words
    assert [entry["host"] for entry in terminal("allowlist", "list", "--json").json["entries"]] == ["gist.github.com"]


def test_a_change_is_backtested_on_what_agents_really_asked_for(terminal: Terminal) -> None:
    """An agent is refused twice; the backtest of the entry it would need says so, and that of an unrelated one says nothing differs."""
    urls = ("http://docs.example.com/v1/a", "http://docs.example.com/admin")
    ran = terminal("run", "--wait", "--sandbox", "bubblewrap", "--network", "PROXIED", "--", "/usr/bin/python3", "-c", ASK, *urls)
    assert [line.rsplit(" ", 1)[-1] for line in ran.out.splitlines() if "docs.example.com" in line] == ["403", "403"], ran

    def tested(*argv: str) -> dict[str, object]:
        said = terminal("allowlist", "backtest", "--json", *argv)
        assert said.code == 0, said.err
        return dict(said.json)

    narrow = ("docs.example.com", "--port", "80", "--method", "get", "--path", "/v1")
    until(lambda: tested("docs.example.com", "--port", "80")["changed"] == 2, words="both requests are recorded")
    found = tested(*narrow)
    assert found["changed"] == 1 and found["newly_blocked"] == []
    assert [(g["method"], g["host"], g["path"], g["count"]) for g in found["newly_allowed"]] == [("GET", "docs.example.com", "/v1/a", 1)]  # type: ignore[attr-defined]
    assert tested("other.example.com")["changed"] == 0
    assert "1 more would have passed and 0 would have been blocked" in terminal("allowlist", "backtest", *narrow).out

    entry = add(terminal, *narrow)
    gone = tested("--remove", entry)
    assert [g["host"] for g in gone["newly_blocked"]] == ["docs.example.com"]  # type: ignore[attr-defined]
    assert tested("docs.example.com", "--port", "80", "--replaces", entry)["changed"] == 1
    for bad in ((), ("docs.example.com", "--remove", entry), ("not a host",)):
        assert terminal("allowlist", "backtest", *bad).code == 2
    assert terminal("allowlist", "backtest", "--remove", "e999").code == 3


def test_history_says_who_changed_what_and_leads_back(terminal: Terminal) -> None:
    first = add(terminal, "a.example.com")
    before = terminal("allowlist", "list", "--json").json["version"]
    with ApiClient(terminal.places, timeout_s=60) as api:
        body = AllowlistEntryBody(host="a.example.com", port=8443, reason="moved \u202e", owner="ops")
        api.change_entry(first, body)
    seen = terminal("allowlist", "history", "--json").json
    newest = seen["versions"][0]
    assert newest["version"] == seen["live"] == before + 1 and newest["by"].startswith("operator:")
    assert {"field": "port", "before": "443", "after": "8443"} in newest["changes"][0]["fields"]
    said = terminal("allowlist", "history").out
    assert "port: 443 -> 8443" in said and "\u202e" not in said
    assert terminal("allowlist", "revert", str(before)).code == 2  # without a reason
    back = terminal("allowlist", "revert", str(before), "--reason", "not moved after all")
    assert back.code == 0 and f"version {before + 2}" in back.out
    live = terminal("allowlist", "list", "--json").json
    assert [(e["entry_id"], e["port"]) for e in live["entries"]] == [(first, 443)]
    assert terminal("allowlist", "revert", str(before + 2), "--reason", "x").code == 2  # is live
    assert terminal("allowlist", "revert", "9999", "--reason", "x").code == 3
    audit = json.loads(terminal("audit", "tail", "--json").out)
    assert "allowlist.revert" in json.dumps(audit)


def test_an_id_is_never_given_twice(terminal: Terminal) -> None:
    first = add(terminal, "a.example.com")
    assert terminal("allowlist", "remove", first, "--reason", "gone").code == 0
    assert add(terminal, "b.example.com") != first


def test_a_file_goes_out_and_comes_back_reviewed(terminal: Terminal, tmp_path: Path) -> None:
    kept = add(terminal, "a.example.com")
    add(terminal, "b.example.com")
    file = tmp_path / "allowlist.yaml"
    assert terminal("allowlist", "export", str(file)).code == 0
    assert terminal("allowlist", "export", str(file)).code == 1  # never over a file
    text = file.read_text()
    file.write_text(text.replace("b.example.com", "c.example.com"))
    dry = terminal("allowlist", "import", str(file), "--replace", "--dry-run", "--json").json
    assert not dry["applied"] and [(c["what"], c["host"]) for c in dry["changes"]] == [
        ("removed", "b.example.com"),
        ("added", "c.example.com"),
    ]
    assert terminal("allowlist", "import", str(file), "--replace").code == 2  # without a reason
    assert terminal("allowlist", "import", str(file), "--replace", "--reason", "reviewed").code == 0
    live = terminal("allowlist", "list", "--json").json["entries"]
    assert [e["host"] for e in live] == ["a.example.com", "c.example.com"] and live[0]["entry_id"] == kept
    file.write_text(text)
    assert terminal("allowlist", "import", str(file), "--reason", "b again").code == 0  # joins
    assert [e["host"] for e in terminal("allowlist", "list", "--json").json["entries"]] == [
        "a.example.com",
        "c.example.com",
        "b.example.com",
    ]
    file.write_text(text + "- host: 1.2.3.4\n  reason: r\n  owner: o\n")
    bad = terminal("allowlist", "import", str(file), "--reason", "x")
    assert bad.code == 2 and "Entry 3 (1.2.3.4)" in bad.err
    assert len(terminal("allowlist", "list", "--json").json["entries"]) == 3  # nothing lost
    assert terminal("allowlist", "import", str(tmp_path / "nosuch"), "--reason", "x").code == 3


def test_dangerous_and_superfluous_entries_are_marked(terminal: Terminal) -> None:
    add(terminal, "storage.googleapis.com")
    add(terminal, "*.example.com")
    add(terminal, "a.example.com", "--review-by", "2020-01-01")
    marks = {e["host"]: [m["kind"] for m in e["marks"]] for e in terminal("allowlist", "list", "--json").json["entries"]}
    assert marks == {"storage.googleapis.com": ["multi_tenant"], "*.example.com": [], "a.example.com": ["overlap", "review_due"]}
    assert "DANGER: an attacker may have an account there" in terminal("allowlist", "list").out
