"""Modes, sensitivities and the judgement of destinations."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console.domain.errors import UsageProblem
from console.domain.network import (
    LOOSEST,
    STRICTEST,
    Allowlist,
    AllowlistEntry,
    ModeMapping,
    NetworkMode,
    Sensitivity,
    higher,
    mapping_of,
    mode_for,
    read_sensitivity,
    stricter_mode,
)

ENTRY = AllowlistEntry("e1", "api.example.com", reason="work", owner="ops")
PLAIN = replace(ENTRY, entry_id="e2", host="files.example.com", port=80, methods=("GET",), paths=("/v1/", "/health"))
LIST = Allowlist(3, (ENTRY, PLAIN, replace(ENTRY, entry_id="e3", host="*.wild.example.com")))


def test_modes_and_levels_are_ordered() -> None:
    assert [m.severity for m in (NetworkMode.FULL, NetworkMode.PROXIED, NetworkMode.NONE)] == [0, 1, 2]
    assert [s.level for s in Sensitivity] == [0, 1, 2, 3]
    assert stricter_mode(NetworkMode.PROXIED, NetworkMode.FULL) is NetworkMode.PROXIED
    assert stricter_mode(NetworkMode.PROXIED, NetworkMode.NONE) is NetworkMode.NONE
    assert higher(Sensitivity.INTERNAL, Sensitivity.SECRET) is Sensitivity.SECRET
    assert higher(Sensitivity.INTERNAL, Sensitivity.PUBLIC) is Sensitivity.INTERNAL


def test_more_sensitive_never_means_less_restricted() -> None:
    severities = [mode_for(s).severity for s in Sensitivity]
    assert severities == sorted(severities) == [0, 0, 1, 2]


def test_a_mapping_can_be_made_stricter_only() -> None:
    assert [ModeMapping().of(s) for s in Sensitivity] == [mode_for(s) for s in Sensitivity]
    strict = mapping_of({"INTERNAL": "PROXIED", "CONFIDENTIAL": "NONE"})
    assert [strict.of(s).severity for s in Sensitivity] == [0, 1, 2, 2]
    # Whatever was put into it by hand: never looser.
    assert ModeMapping((NetworkMode.FULL,) * 4).of(Sensitivity.SECRET) is NetworkMode.NONE


@pytest.mark.parametrize(
    "bad", [{"SECRET": "PROXIED"}, {"CONFIDENTIAL": "FULL"}, {"secret": "NONE"}, {"PUBLIC": "none"}, {"PUBLIC": "NONE"}, {"": ""}]
)
def test_a_looser_or_unclear_mapping_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(UsageProblem, match="network.modes"):
        mapping_of(bad)


@pytest.mark.parametrize("bad", ["", "secret-ish", None, 3, "PUBLIC ", b"PUBLIC", "ＰＵＢＬＩＣ"])
def test_an_unreadable_sensitivity_is_secret(bad: object) -> None:
    assert read_sensitivity(bad) is Sensitivity.SECRET
    assert read_sensitivity("confidential") is Sensitivity.CONFIDENTIAL


def test_an_empty_list_reaches_nothing() -> None:
    verdict = Allowlist().judge("CONNECT", "api.example.com", 443, "")
    assert not verdict.allowed and verdict.entry_id is None and "no entry" in verdict.reason


@pytest.mark.parametrize(
    ("method", "host", "port", "path", "allowed", "entry"),
    [
        ("CONNECT", "api.example.com", 443, "", True, "e1"),
        ("CONNECT", "api.example.com", 444, "", False, "e1"),
        ("CONNECT", "api.example.com.evil.org", 443, "", False, None),
        ("CONNECT", "xapi.example.com", 443, "", False, None),
        ("GET", "files.example.com", 80, "/v1/a?x=/health", True, "e2"),
        ("GET", "files.example.com", 80, "/v1", False, "e2"),
        ("GET", "files.example.com", 80, "/health", True, "e2"),
        ("GET", "files.example.com", 80, "/health/deep", True, "e2"),
        ("GET", "files.example.com", 80, "/healthy", False, "e2"),
        ("POST", "files.example.com", 80, "/v1/a", False, "e2"),
        ("CONNECT", "a.wild.example.com", 443, "", True, "e3"),
        ("CONNECT", "a.b.wild.example.com", 443, "", True, "e3"),
        ("CONNECT", "wild.example.com", 443, "", False, None),
        ("CONNECT", ".wild.example.com", 443, "", False, None),
        ("CONNECT", "", 443, "", False, None),
    ],
)
def test_a_destination_is_judged(method: str, host: str, port: int, path: str, allowed: bool, entry: str | None) -> None:
    verdict = LIST.judge(method, host, port, path)
    assert (verdict.allowed, verdict.entry_id) == (allowed, entry)
    assert verdict.reason


@pytest.mark.parametrize(
    "host",
    [
        "",
        "*",
        "*.",
        "localhost",
        "Api.example.com",
        "a..b",
        "-a.com",
        "a-.com",
        "a.com.",
        "a.com:443",
        "http://a.com",
        "a.com/x",
        "*.*.com",
        "a.*.com",
        "a b.com",
        "a.com\n",
        "1.2.3.4",
        "a.1",
        "[::1]",
        "ex\u0430mple.com",
        "x" * 64 + ".com",
        "a." * 127 + "com",
    ],
)
def test_a_host_that_is_not_a_plain_name_is_refused(host: str) -> None:
    with pytest.raises(UsageProblem):
        replace(ENTRY, host=host).check()


@pytest.mark.parametrize(
    "change",
    [
        {"port": 0},
        {"port": 65536},
        {"methods": ("get",)},
        {"methods": ("GET X",)},
        {"paths": ("v1",)},
        {"paths": ("/a?b",)},
        {"paths": ("/a b",)},
        {"paths": ("/\x1b",)},
        {"reason": " "},
        {"owner": ""},
        {"reason": "r" * 501},
        {"owner": "o" * 101},
        {"private_networks": ("nonsense",)},
        {"private_networks": ("8.8.8.0/24",)},
        {"private_networks": ("127.0.0.0/8",)},
        {"private_networks": ("169.254.0.0/16",)},
        {"private_networks": ("0.0.0.0/0",)},
        {"private_networks": ("::/0",)},
        {"private_networks": ("10.0.0.1/8",)},
    ],
)
def test_each_field_is_checked(change: dict[str, object]) -> None:
    with pytest.raises(UsageProblem) as caught:
        replace(ENTRY, **change).check()  # type: ignore[arg-type]
    assert caught.value.remedy


def test_good_entries_pass() -> None:
    for entry in (*LIST.entries, replace(ENTRY, private_networks=("10.20.0.0/16", "fc00:1::/32"))):
        entry.check()


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/a", True),
        ("/v1/a;b=c?d=%2&e=/..;/", True),
        ("/v1/100%25", True),
        ("/v1/..;/secret", False),
        ("/v1/.;x", False),
        ("/v1/..%3B/secret", False),
        ("/v1/%252e%252e/secret", False),
        ("/v1/%25252Fsecret", False),
        ("/v1/%C0%ae", False),
        ("/v1/%e0%80%ae", False),
        ("/v1/%f0%80%80%ae", False),
        ("/v1/%u002e", False),
        ("/v1/%", False),
        ("/v1/%2", False),
        ("/v1/%2?a", False),
    ],
)
def test_a_path_that_servers_read_in_different_ways_is_outside_an_entry_that_names_paths(path: str, allowed: bool) -> None:
    narrow = AllowlistEntry("e1", "a.example.com", 80, paths=("/v1",), reason="r", owner="o")
    wide = AllowlistEntry("e1", "a.example.com", 80, reason="r", owner="o")
    assert Allowlist(1, (narrow,)).judge("GET", "a.example.com", 80, path).allowed is allowed
    assert Allowlist(1, (wide,)).judge("GET", "a.example.com", 80, path).allowed


def test_modes_are_ordered_and_each_has_a_class_of_its_own() -> None:
    assert len({type(mode.rules) for mode in NetworkMode}) == len(NetworkMode)
    assert sorted(NetworkMode, key=lambda mode: mode.severity) == [LOOSEST, NetworkMode.PROXIED, STRICTEST]
    said = [(mode.is_restricted, mode.has_portal, mode.is_closed) for mode in NetworkMode]
    assert said == [(False, False, False), (True, True, False), (True, False, True)]


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ('    NONE = "NONE"\n', '    NONE = "NONE"\n    LOCAL = "LOCAL"\n', "Missing return statement"),
        ('    reach = "No destination can be reached."\n', "", 'missing following "ModeRules" protocol member'),
    ],
)
def test_mypy_fails_where_a_mode_has_no_class_or_its_class_no_answer(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    root = Path(__file__).resolve().parents[3]
    text = (root / "console" / "domain" / "network.py").read_text()
    changed = text.replace(before, after)
    assert changed != text
    (tmp_path / "network.py").write_text(changed)
    mypy = [str(Path(sys.executable).parent / "mypy"), "--strict", "--follow-imports=silent", "--config-file", os.devnull]
    command = [*mypy, "--cache-dir", os.devnull, "--explicit-package-bases", str(tmp_path / "network.py")]
    done = subprocess.run(command, cwd=tmp_path, env={"MYPYPATH": str(root)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and complaint in done.stdout, done.stdout + done.stderr
