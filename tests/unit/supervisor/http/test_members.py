"""The folder of the members' socket: root alone may change it, or there is no such socket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from console.settings.places import Places
from console.supervisor.http.access import Trespasses
from console.supervisor.http.asgi import Door
from console.supervisor.http.members import members_doors
from console.supervisor.http.peers import Peer, may_be_member


class Book:
    def record(self, record: object) -> None:
        raise AssertionError(record)


async def app(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nobody asks")


def doors(folder: Path | None, notices: list[str]) -> list[Door]:
    places = Places(Path("/nowhere"), Path("/nowhere/run"), "01234567", False, members_dir=folder)
    return members_doors(places, app, 65534, Trespasses(Book(), lambda text: None), notices.append)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "m"
    made.mkdir(mode=0o755)
    return made


def test_an_instance_without_a_folder_for_members_serves_none() -> None:
    notices = list[str]()
    assert not doors(None, notices) and not notices


async def test_a_link_in_the_place_of_the_socket_is_replaced_and_not_followed(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    (folder / "operator.sock").symlink_to(target)
    [door] = doors(folder, [])
    await door.open()
    try:
        assert (folder / "operator.sock").is_socket() and not (folder / "operator.sock").is_symlink()
        assert target.read_text() == "kept" and target.stat().st_mode & 0o777 != 0o666
    finally:
        await door.close()


@pytest.mark.parametrize("spoil", ["link", "writable", "group", "missing", "file"])
def test_a_folder_that_others_may_change_is_not_used_and_it_is_a_notice(folder: Path, tmp_path: Path, spoil: str) -> None:
    named, notices = folder, list[str]()
    if spoil == "link":
        named = tmp_path / "link"
        named.symlink_to(folder)
    elif spoil == "missing":
        named = tmp_path / "none"
    elif spoil == "file":
        named = tmp_path / "file"
        named.write_text("")
    else:
        folder.chmod(0o757 if spoil == "writable" else 0o775)
    assert not doors(named, notices)
    assert len(notices) == 1 and notices[0].startswith("Only root can use this instance: ") and str(named) in notices[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder away: this needs root")
def test_a_folder_of_another_account_is_not_used(folder: Path) -> None:
    os.chown(folder, 1234, -1)
    assert not doors(folder, [])


@pytest.mark.parametrize(
    ("peer", "may"),
    [
        (Peer(7, 1000, "0::/user.slice\n", True), True),
        (Peer(7, 65534, "0::/user.slice\n", True), False),
        (Peer(7, 1000, "0::/watchfloor-01234567/agents/a-1-0123abcd\n", True), False),
        (Peer(7, 1000, "0::/user.slice/watchfloor-76543210/agents/b-1-0123abcd/x\n", True), False),
        (Peer(7, 1000, "0::/user.slice\n", False), False),
        (Peer(7, 1000, "", True), False),
    ],
)
def test_members_are_of_any_account_but_the_agents_and_in_no_instances_agents(peer: Peer, may: bool) -> None:
    assert may_be_member(peer, 65534) is may
