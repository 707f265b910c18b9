"""A tool is what an operator's key signed for this session, byte for byte, or there is none."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.sandbox.workspace.tools import (
    MANIFEST,
    Manifest,
    Offer,
    Tool,
    make_manifest,
    offer,
    read_tool,
    verify_manifest,
    withdraw,
    write_manifest,
)

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
TRUSTED = {"k1": KEY.public_key().public_bytes_raw()}
BODY = b"#!/bin/sh\necho good\n"
GOOD = Manifest("c1", 5, 1.0, (Tool("good", hashlib.sha256(BODY).hexdigest(), len(BODY), "reviewed"),))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspaces" / "c1"
    (made / "tools").mkdir(parents=True)
    (made / "tools" / "good").write_bytes(BODY)
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "offered" / "a-1"


def signed(manifest: Manifest = GOOD, kid: str = "k1", key: Ed25519PrivateKey = KEY) -> bytes:
    return make_manifest(manifest, kid, key.sign)


def offered(workspace: Path, target: Path, least: int = 0) -> Offer:
    return offer(workspace, TRUSTED, "c1", least, target)


def test_signed_tools_are_copied_where_nobody_else_writes(workspace: Path, target: Path) -> None:
    write_manifest(workspace, signed())
    made = offered(workspace, target)
    assert made == Offer(target, ("good",), "", 5)
    assert (target / "good").read_bytes() == BODY
    assert (target.stat().st_mode & 0o777, (target / "good").stat().st_mode & 0o777) == (0o555, 0o555)
    assert [p.name for p in target.iterdir()] == ["good"]
    withdraw(target)
    assert not target.exists()
    withdraw(target)


def test_without_a_tools_folder_there_is_nothing_to_say(tmp_path: Path, target: Path) -> None:
    (tmp_path / "c1").mkdir()
    assert offered(tmp_path / "c1", target) == Offer()


def test_a_tools_folder_without_a_manifest_offers_nothing_and_says_so(workspace: Path, target: Path) -> None:
    made = offered(workspace, target)
    assert made.folder is None and "no tool of the workspace is offered: There is no tools/manifest.json" in made.why
    assert not target.exists()


def breaks() -> dict[str, Callable[[Path], object]]:
    def link(path: Path) -> None:
        path.rename(path.with_name("real"))
        path.symlink_to("real")

    def hard(path: Path) -> None:
        os.link(path, path.with_name("second"))

    def folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    def fifo(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    def linked_folder(path: Path) -> None:
        path.parent.rename(path.parent.with_name("elsewhere"))
        path.parent.symlink_to("elsewhere")

    return {
        "one byte": lambda path: path.write_bytes(BODY[:-2] + b"X\n"),
        "longer": lambda path: path.write_bytes(BODY + b"x"),
        "shorter": lambda path: path.write_bytes(BODY[:-1]),
        "gone": lambda path: path.unlink(),
        "link": link,
        "hard link": hard,
        "folder": folder,
        "fifo": fifo,
        "sparse": lambda path: os.truncate(path, 1 << 30),
        "tools is a link": linked_folder,
    }


@pytest.mark.parametrize("how", breaks())
def test_one_tool_that_differs_spoils_the_lot(workspace: Path, target: Path, how: str) -> None:
    (workspace / "tools" / "also").write_bytes(BODY)
    write_manifest(workspace, signed(replace(GOOD, tools=(replace(GOOD.tools[0], name="also"), *GOOD.tools))))
    breaks()[how](workspace / "tools" / "good")
    made = offered(workspace, target)
    assert made.folder is None and made.why.startswith("no tool of the workspace is offered")
    assert not target.exists() and not list(target.parent.glob(".*"))


def test_a_manifest_changed_in_any_byte_is_refused(workspace: Path) -> None:
    whole = signed()
    for place in range(len(whole)):
        with pytest.raises(Denied):
            verify_manifest(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], TRUSTED, "c1")
    for raw in (b"", b"{}", b"[]", b"[" * 100_000, whole[:-1], whole + b" ", whole.replace(b"{", b"{ ", 1)):
        with pytest.raises(Denied):
            verify_manifest(raw, TRUSTED, "c1")
    assert verify_manifest(whole, TRUSTED, "c1") == replace(GOOD, kid="k1")


def test_a_manifest_by_another_key_for_another_session_or_for_nothing_is_refused() -> None:
    for raw in (signed(key=OTHER), signed(kid="k2"), signed(replace(GOOD, session="c2"))):
        with pytest.raises(Denied):
            verify_manifest(raw, TRUSTED, "c1")
    with pytest.raises(Denied):
        verify_manifest(signed(), {}, "c1")


def test_a_signature_of_the_same_key_over_something_else_is_none() -> None:
    document = json.loads(signed())
    canonical = json.dumps(document["body"], sort_keys=True, separators=(",", ":")).encode()
    document["sig"] = base64.b64encode(KEY.sign(canonical)).decode()
    with pytest.raises(Denied, match="not as it was signed"):
        verify_manifest(json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n", TRUSTED, "c1")


def test_an_older_manifest_than_the_last_is_refused(workspace: Path, target: Path) -> None:
    write_manifest(workspace, signed())
    assert "older" in offered(workspace, target, 6).why
    assert offered(workspace, target, 5).folder == target


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../x"},
        {"name": ""},
        {"name": "a/b"},
        {"name": ".hidden"},
        {"name": MANIFEST},
        {"name": "a\nb"},
        {"name": "x" * 65},
        {"sha256": "0" * 63},
        {"size": -1},
        {"size": 1 << 40},
        {"reason": ""},
        {"reason": "x" * 501},
    ],
)
def test_what_is_no_plain_tool_cannot_even_be_signed(change: dict[str, Any]) -> None:
    with pytest.raises(UsageProblem):
        signed(replace(GOOD, tools=(replace(GOOD.tools[0], **change),)))


def test_none_twice_or_too_many_cannot_be_signed() -> None:
    tool = GOOD.tools[0]
    for tools in ((), (tool, tool), tuple(replace(tool, name=f"t{n}") for n in range(101))):
        with pytest.raises(UsageProblem):
            signed(replace(GOOD, tools=tools))


def test_the_manifest_is_written_through_nothing_that_lies_there(workspace: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    (workspace / "tools" / MANIFEST).symlink_to(secret)
    write_manifest(workspace, signed())
    assert secret.read_text() == "s" and not (workspace / "tools" / MANIFEST).is_symlink()
    (workspace / "tools" / MANIFEST).unlink()
    (workspace / "tools" / MANIFEST).mkdir()
    with pytest.raises(ConsoleError):
        write_manifest(workspace, signed())
    assert sorted(p.name for p in (workspace / "tools").iterdir()) == ["good", MANIFEST]
    with pytest.raises(NotFound):
        write_manifest(tmp_path, signed())


def test_what_is_signed_is_read_by_its_plain_name_only(workspace: Path) -> None:
    assert read_tool(workspace, "good") == (GOOD.tools[0].sha256, len(BODY))
    for name in ("../c1", "", MANIFEST, "a/b"):
        with pytest.raises(UsageProblem):
            read_tool(workspace, name)
    with pytest.raises(Denied):
        read_tool(workspace, "none")


def test_a_tool_exchanged_between_look_and_copy_is_not_offered(workspace: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that count are those of the copy: an exchange at the last moment is seen."""
    from console.sandbox.workspace import tools

    write_manifest(workspace, signed())
    real = tools._copy

    def late(source: int, copy: Path, size: int) -> None:
        (workspace / "tools" / "good").write_bytes(b"#!/bin/sh\necho evil\n")  # the same inode, the same size
        real(source, copy, size)

    monkeypatch.setattr(tools, "_copy", late)
    assert offered(workspace, target).folder is None


@pytest.mark.parametrize("at", [10**400, -1, True, "1", None, 1e300], ids=repr)
def test_a_time_that_no_clock_says_is_refused(workspace: Path, target: Path, at: object) -> None:
    with pytest.raises(UsageProblem, match="no number that counts"):
        signed(replace(GOOD, signed_at=at))  # type: ignore[arg-type]
    document = json.loads(signed())
    document["body"]["signed_at"] = at
    write_manifest(workspace, json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    made = offered(workspace, target)
    assert made.folder is None and "damaged" in made.why
