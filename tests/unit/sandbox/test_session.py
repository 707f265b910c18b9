"""The doors of the operator's session that an agent with the operator's uid must not see."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.sandbox import session


@pytest.fixture
def root(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("XDG_RUNTIME_DIR", "DOCKER_HOST", "SSH_AUTH_SOCK"):
        monkeypatch.delenv(name, raising=False)
    us = os.stat(state_dir).st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setattr(session, "_owner", lambda path: 4242 if os.lstat(path).st_uid == us and "foreign" not in path.name else 1)
    for name in ("run/user/4242/systemd", "run/user/1", "run/dbus", "tmp/tmux-4242", "tmp/ssh-x", "tmp/other"):
        (state_dir / name).mkdir(parents=True)
    yield state_dir


def bound(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
    return path


def test_folders_of_sockets_are_masked_others_are_not(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {root / name for name in ("run/user/4242", "run/dbus", "tmp/tmux-4242", "tmp/ssh-x")}
    assert set(session.folders(root)) == wanted
    (root / "elsewhere").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(root / "elsewhere"))
    assert set(session.folders(root)) == wanted | {root / "elsewhere"}
    for odd in ("/", "relative", str(root / "absent")):
        monkeypatch.setenv("XDG_RUNTIME_DIR", odd)
        assert set(session.folders(root)) == wanted


def test_ssh_folders_of_others_are_not_masked_and_a_thousand_of_ours_do_not_end_the_launch(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write to /tmp makes as many as it likes, and bwrap refuses more than 9,000 arguments."""
    for number in range(300):
        (root / f"tmp/ssh-foreign{number}").mkdir()
    (root / "tmp/ssh-link").symlink_to(root / "tmp/other")
    assert {f.name for f in session.folders(root) if f.name.startswith("ssh-")} == {"ssh-x"}
    assert session.unmasked(root) == 0
    used = bound(root / "tmp/ssh-zz/agent.7")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(used))
    for number in range(session.AGENTS_MAX + 36):
        (root / f"tmp/ssh-{number:04}").mkdir()
    masked = [f.name for f in session.folders(root) if f.name.startswith("ssh-")]
    assert len(masked) == session.AGENTS_MAX and "ssh-zz" in masked
    assert session.unmasked(root) == 2 + 36  # ssh-x and ssh-zz are ours too
    assert session.files(root) == ()


def test_engines_sockets_are_covered_wherever_they_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, named, agent = bound(root / "run/docker.sock"), bound(root / "d/own.sock"), bound(root / "tmp/ssh-x/agent.1")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{named}")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))  # its folder is masked already
    assert set(session.files(root)) == {engine, named}
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    assert set(session.files(root)) == {engine}
    named.unlink()
    engine.unlink()
    (root / "run/docker.sock").write_text("no socket")
    assert session.files(root) == ()
