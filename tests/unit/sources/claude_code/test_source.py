"""Claude Code sessions: shown as the record says, believed only as far as the kernel agrees."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from console.domain.agent import ProcessIdentity, Sighting
from console.sources.claude_code.source import ClaudeCodeSource
from console.sources.interface import UNVERIFIED
from console.sources.kinds import PROGRAMS
from console.sources.processes import ProcessTable
from console.sources.programs import Programs
from tests.fakes.proc import NAMESPACE, FakeProc

# Written by the real program (2.1.330), ids scrubbed.
REAL: dict[str, Any] = {
    "pid": 17655,
    "sessionId": "b564971b-714b-4127-8cb9-cad20c3d2b11",
    "cwd": "/home/dev/proj3",
    "startedAt": 1795293467817,
    "procStart": "125601",
    "version": "2.1.330",
    "peerProtocol": 1,
    "peerFeatures": ["notify_idle", "reply_across_default_dirs", "artifact_yield"],
    "kind": "interactive",
    "entrypoint": "cli",
    "pidDomain": f"linux:x:{NAMESPACE}",
    "asksForConvertedSkills": None,
    "messagingSocketPath": "/run/user/1000/cc-socks/17655.sock",
    "name": "work3-6a",
    "nameSource": "derived",
    "status": "waiting",
    "updatedAt": 1795293470445,
    "waitingFor": "permission prompt",
}


class Host:
    """A home with session records and a /proc."""

    def __init__(self, tmp_path: Path) -> None:
        self.sessions = tmp_path / "home" / ".claude" / "sessions"
        self.sessions.mkdir(parents=True)
        self.proc = FakeProc(tmp_path / "proc")
        self.root = tmp_path / "home"

    def record(self, pid: int = 17655, **changes: Any) -> None:
        self.write(pid, {"pid": pid, **changes})

    def write(self, pid: int, changes: dict[str, Any]) -> None:
        """The real record with changes; ``...`` leaves a field out."""
        data = {key: value for key, value in {**REAL, **changes}.items() if value is not ...}
        (self.sessions / f"{pid}.json").write_text(json.dumps(data))

    def source(self, **confinement: Any) -> ClaudeCodeSource:
        return ClaudeCodeSource(self.root, table=ProcessTable(self.proc.root), **confinement)

    def look(self, **confinement: Any) -> list[Sighting]:
        report = self.source(**confinement).look()
        assert report.available
        return list(report.sightings)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def live(host: Host, **changes: Any) -> None:
    host.proc.add(17655, **{"start": 125601, "uid": os.geteuid(), **changes})


def test_it_keeps_its_name_when_it_is_adopted(host: Host) -> None:
    live(host)
    host.record()
    adopted = Programs(PROGRAMS, ProcessTable(host.proc.root), whose=lambda _pid, _cgroup: "o-1")
    (before,), (after,) = host.look(), host.look(programs=adopted)
    assert (before.agent_id, after.agent_id) == ("", "o-1") and after.key == before.key  # else what it used would count once more


def test_a_real_record_of_a_real_process_is_a_live_session(host: Host) -> None:
    live(host)
    host.record()
    (seen,) = host.look()
    assert seen.process == ProcessIdentity(17655, 125601)
    assert (seen.source, seen.name, seen.cwd) == ("claude_code", "work3-6a", "/home/dev/proj3")
    assert seen.session == "b564971b-714b-4127-8cb9-cad20c3d2b11"
    assert seen.status == "waiting"
    assert "no control" in seen.detail
    assert "Waits for: permission prompt" in seen.detail


def test_only_number_and_start_are_needed(host: Host) -> None:
    live(host)
    (host.sessions / "17655.json").write_text('{"procStart": "125601", "somethingNew": {"a": []}}')
    (seen,) = host.look()
    assert seen.process is not None
    assert (seen.status, seen.name, seen.session) == ("running", "claude", "")


@pytest.mark.parametrize(
    ("process", "record", "words"),
    [
        (None, {}, "17655 is gone"),
        ({"start": 999}, {}, "another time"),
        ({}, {"procStart": "0125601"}, "another time"),
        ({"uid": 4242}, {}, "uid 4242"),
        ({"euid": 4242}, {}, "uid 4242"),
        ({"exe": "/usr/sbin/sshd", "argv": ("claude",)}, {}, "not Claude Code"),
        ({"exe": "/usr/sbin/sshd", "argv": ("claude",)}, {"procStart": ...}, "not Claude Code"),
        ({"state": "Z"}, {}, "17655 is gone"),
        ({}, {"pid": 1}, "names another process"),
    ],
)
def test_a_record_that_the_kernel_contradicts_is_stale_and_no_sighting(
    host: Host, process: dict[str, Any] | None, record: dict[str, Any], words: str
) -> None:
    if process is not None:
        live(host, **process)
    host.write(17655, record)
    report = host.source().look()
    assert report.available
    assert report.sightings == ()
    assert "left out: 1" in report.reason
    assert words in report.reason


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"procStart": ...}, "no start time"),
        ({"procStart": {"x": 1}}, "no start time"),
        ({"pidDomain": "linux:x:pid:[4026539999]"}, "namespace"),
    ],
)
def test_what_cannot_be_verified_is_shown_without_a_process(host: Host, record: dict[str, Any], words: str) -> None:
    live(host)
    host.write(17655, record)
    (seen,) = host.look()
    assert (seen.process, seen.status) == (None, UNVERIFIED)
    assert words in seen.detail


def test_a_forged_record_that_names_anothers_process_leads_to_no_signal(host: Host) -> None:
    # The victim is a service of another kind; the forger knows its number and its exact start time.
    host.proc.add(4000, start=555, exe="/usr/sbin/postgres", argv=("claude",), uid=os.geteuid())
    host.record(4000, procStart="555")
    host.proc.add(4001, start=556, uid=4242)
    host.record(4001, procStart="556")
    assert all(seen.process is None for seen in host.look())


def test_a_session_keeps_its_key_from_look_to_look_and_is_gone_with_its_process(host: Host) -> None:
    live(host)
    host.record()
    source = host.source()
    (before,) = source.look().sightings
    host.record(status="idle", name="renamed")
    (after,) = source.look().sightings
    assert (after.key, after.name, after.status) == (before.key, "renamed", "idle")
    (host.proc.root / "17655" / "stat").unlink()
    assert source.look().sightings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        '"text"',
        "[" * 100_000,
        '{"a": ' * 50_000,
        '{"procStart": NaN',
        "1" * 5000,
        "\udcff",
        '{"x": "' + "y" * 70_000 + '"}',
    ],
)
def test_what_is_not_a_record_is_passed_over(host: Host, text: str) -> None:
    (host.sessions / "17655.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert host.look() == []


def test_keys_links_fifos_folders_and_odd_names_are_never_opened(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    live(host)
    outside = host.root / "outside.json"
    outside.write_text(json.dumps(REAL))
    (host.sessions / "17655.0a1b.key").write_text("SECRET")
    (host.sessions / "17655.json").symlink_to(outside)
    os.mkfifo(host.sessions / "18.json")
    (host.sessions / "19.json").mkdir()
    for name in ("-1.json", "0.json", "1.json.bak", "1e3.json", "٣.json", "99999999999.json", "x.json"):
        (host.sessions / name).write_text(json.dumps(REAL))
    opened: list[str] = []
    real_open = os.open

    def watched(path: Any, *args: Any, **kwargs: Any) -> int:
        opened.append(os.path.basename(os.fspath(path)))
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", watched)
    assert host.look() == []
    assert opened == []  # what is no regular file is not even opened


def test_hostile_text_is_bounded_and_can_be_encoded(host: Host) -> None:
    live(host)
    host.record(name="\x1b]0;x\x07" + "n" * 9999, cwd="/\ud800\n" + "c" * 9999, status="\u202e" * 99, sessionId=["x"], version=10**40)
    (seen,) = host.look()
    assert len(seen.name) <= 80
    assert len(seen.cwd) <= 500
    assert "\x1b" not in seen.name
    assert "\n" not in seen.cwd
    assert seen.session == ""
    json.dumps([seen.name, seen.cwd, seen.status]).encode()
    (seen.name + seen.cwd).encode("utf-8")


def test_confined_to_our_own_processes_nothing_else_is_shown(host: Host) -> None:
    live(host)
    host.record()
    assert host.look(pids=lambda pid: pid != 17655) == []
    assert len(host.look(pids=lambda pid: pid == 17655)) == 1


def test_a_home_without_claude_code_is_not_a_fault(tmp_path: Path) -> None:
    FakeProc(tmp_path / "proc")
    report = ClaudeCodeSource(tmp_path, table=ProcessTable(tmp_path / "proc")).look()
    assert report.available
    assert report.sightings == ()
    assert ".claude/sessions" in report.reason


def test_a_sessions_place_that_is_no_folder_is_said(tmp_path: Path) -> None:
    FakeProc(tmp_path / "proc")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "sessions").write_text("not a folder")
    report = ClaudeCodeSource(tmp_path, table=ProcessTable(tmp_path / "proc")).look()
    assert not report.available
    assert "because" in report.reason


def test_without_proc_nothing_is_claimed(tmp_path: Path) -> None:
    report = ClaudeCodeSource(tmp_path, table=ProcessTable(tmp_path / "nothing")).look()
    assert not report.available
    assert "because /proc" in report.reason


def test_more_sessions_than_are_shown_are_counted(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.sources.claude_code.source.MAX_SIGHTINGS", 2)
    live(host)
    host.record()
    for pid in (1, 2):
        host.proc.add(pid, start=125601, uid=os.geteuid())
        host.record(pid, procStart=...)
    report = host.source().look()
    assert len(report.sightings) == 2
    assert report.sightings[0].process is not None
    assert "1 more sessions" in report.reason


def test_what_did_not_change_is_not_made_anew_and_a_reused_number_is_believed_at_no_look(host: Host) -> None:
    folder = host.proc.add(17655, start=125601, uid=os.geteuid())
    host.record()
    source = host.source()
    (first,) = source.look().sightings
    (again,) = source.look().sightings
    assert again is first and first.process == ProcessIdentity(17655, 125601)
    host.record(status="idle")
    (other,) = source.look().sightings
    assert other.status == "idle" and other.process == first.process
    stat = (folder / "stat").read_text()
    (folder / "stat").write_text(stat.replace(" 125601 0", " 125602 0"))  # another process of the same number, a moment later
    report = source.look()
    assert report.sightings == () and "started at another time" in report.reason
    (folder / "stat").write_text(stat)
    (back,) = source.look().sightings
    assert back == other
    (folder / "stat").unlink()
    assert source.look().sightings == ()


def test_no_session_says_of_itself_that_it_has_ended(host: Host) -> None:
    live(host)
    for word in ("finished", "unverified", "young"):
        host.record(status=word)
        (seen,) = host.source().look().sightings
        assert seen.status == "running" and seen.process is not None
