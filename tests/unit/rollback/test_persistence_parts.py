"""The part of a file that counts: what git would obey is always seen, however it is written; what changes all the time is not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from console.rollback.persistence.parts import counted, git_settings

HARMLESS = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
[remote "origin"]
\turl = https://example.org/alias-pager-filter.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "include"]
\tremote = origin
# fsmonitor = not set
; [alias] x = y
"""


def test_a_fresh_clone_has_nothing_that_counts() -> None:
    assert counted("git", HARMLESS) is None
    assert counted("git", HARMLESS.replace(b"\n", b"\r\n")) is None
    assert counted("git", b"") is None


DANGEROUS = [
    "[core]\n\tfsmonitor = ./x",
    "[core]fsmonitor=./x",
    "[CORE]\nFsMonitor=./x",
    "\ufeff[core]\nfsmonitor=./x",
    "[core] # c \\\nfsmonitor = ./x",
    "[core]\n# c \\\nfsmonitor = ./x",
    "[core]\nbare = a # c \\\nfsmonitor = ./x",
    "[core]\n\tfsmonitor",
    "[core]\r\nfsmonitor = ./x\r\n",
    "[core]\nhooksPath = x",
    "[core]\npager = x",
    "[core]\nsshCommand = x",
    "[alias]\nst = !x",
    '[alias "st"]\ncommand = !x',
    "[alias.st]\ncommand = !x",
    "[include]\npath = /x",
    '[includeIf "gitdir:/"]\npath = /x',
    '[filter "f"]\nclean = x',
    '[filter "a]\\"b"]\nsmudge = x',
    '[diff "d"]\ntextconv = x',
    "[diff]\nexternal = x",
    '[merge "m"]\ndriver = x',
    "[credential]\nhelper = x",
    '[credential "https://h"]\nhelper = x',
    "[gpg]\nprogram = x",
    "[sequence]\neditor = x",
    '[url "ext::x"]\ninsteadOf = https://h',
    '[remote "o"]\nuploadpack = x',
    '[remote "o"]\nurl = ext::sh -c x',
    "[init]\ntemplateDir = x",
    "[core]\neditor = a\\\nb",
]


@pytest.mark.parametrize("text", DANGEROUS)
def test_what_git_would_run_counts(text: str) -> None:
    assert counted("git", text.encode())


def test_what_git_itself_reads_as_dangerous_counts(tmp_path: Path) -> None:
    """An independent witness: git's own reading of each of these texts, in a folder of its own, names the setting that we count."""
    for number, text in enumerate(DANGEROUS):
        file = tmp_path / str(number)
        file.write_bytes(text.encode())
        command = ["git", "config", "--file", str(file), "--no-includes", "--list", "--name-only", "-z"]
        said = subprocess.run(command, capture_output=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=False)
        assert said.returncode == 0 and said.stdout, (text, said.stderr)
        last = said.stdout.decode().rstrip("\0").split("\0")[-1].lower()
        part = counted("git", text.encode())
        assert part is not None and (last in part.decode().lower().replace("\\", "") or part == text.encode()), (text, last, part)


def test_what_cannot_be_understood_counts_as_a_whole() -> None:
    for raw in (b"[user]\nname = a\\\nb = c\n", b"\xff\xfe\x00", b"fsmonitor = x", b"[core\nfsmonitor = x", b"[core]\n???"):
        assert counted("git", raw) == raw
    for raw in (b"{", b"[]", b"[" * 100_000, b'"text"', b"\xff"):
        assert counted("scripts", raw) == raw
        assert counted("mcp", raw) == raw


def test_names_are_lower_case_and_values_as_they_stand() -> None:
    assert git_settings('[A "B c"]\n D = E ; f\nG\n') == [("a.b c.d", "E ; f"), ("a.b c.g", "true")]


def test_scripts_count_and_dependencies_do_not() -> None:
    one, two = ({"scripts": {"test": "x"}, "dependencies": {"a": v}} for v in "12")
    assert counted("scripts", json.dumps(one).encode()) == counted("scripts", json.dumps(two).encode()) is not None
    assert counted("scripts", b'{"dependencies": {}}') is None
    other = {"scripts": {"test": "y"}}
    assert counted("scripts", json.dumps(one).encode()) != counted("scripts", json.dumps(other).encode())


def test_servers_count_and_the_history_beside_them_does_not() -> None:
    plain = {"numStartups": 4, "projects": {"/w": {"history": [1]}}}
    assert counted("mcp", json.dumps(plain).encode()) is None
    top = plain | {"mcpServers": {"x": {"command": "y"}}}
    inner = {"projects": {"/w": {"history": [2], "mcpServers": {"x": {"command": "y"}}}}}
    assert counted("mcp", json.dumps(top).encode()) != counted("mcp", json.dumps(inner).encode())
    assert counted("mcp", json.dumps(top | {"numStartups": 5}).encode()) == counted("mcp", json.dumps(top).encode())


def test_what_has_no_part_counts_whole() -> None:
    assert counted("", b"x") == b"x"


@pytest.mark.parametrize("part", ["mcp", "scripts"])
def test_json_of_any_depth_is_answered(part: str) -> None:
    """Reading, bounding and writing it out each have an end of their own: none of them may raise."""
    key = {"mcp": b"mcpServers", "scripts": b"scripts"}[part]
    for deep in (8, 33, 200, *range(900, 1010, 3), 5_000, 100_000):
        raw = b'{"' + key + b'":' + b"[" * deep + b"1" + b"]" * deep + b"}"
        part_of_it = counted(part, raw)
        assert part_of_it is not None and (deep == 8) == (part_of_it != raw), deep


def test_json_that_would_grow_when_written_out_counts_as_a_whole() -> None:
    deep = b'{"mcpServers":' + b"[" * 300 + b",".join([b"0"] * 5_000) + b"]" * 300 + b"}"
    wide = b'{"mcpServers":[' + b",".join([b"[]"] * 200_000) + b"]}"
    assert counted("mcp", deep) == deep
    assert counted("mcp", wide) == wide


def test_a_line_made_to_be_slow_is_refused_before_it_is_read() -> None:
    for raw in (b"[a" + b" " * 300_000 + b"x", b"[a]" * 300_000 + b"\n", b"[a]\nb" + b" " * 300_000 + b"x"):
        assert counted("git", raw) == raw
    assert counted("git", b"[alias" + b" " * 2_000 + b"x") == b"[alias" + b" " * 2_000 + b"x"
