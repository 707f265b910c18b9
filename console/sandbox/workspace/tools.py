"""Tools of a workspace: never by being there, only by a signed manifest, and then as a checked copy that the agent cannot write.

``tools/manifest.json`` is one JSON document in canonical form: ``{"body": {"schema", "session", "serial", "signed_at", "tools": [{"name",
"sha256", "size", "reason"}]}, "kid", "sig"}``, signed (Ed25519) by an operator's key over everything in ``body``. It names its session,
and its serial never goes back, so that neither another session's nor a withdrawn one is accepted in its place.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.domain.ids import CONTEXT_ID

FOLDER, MANIFEST = "tools", "manifest.json"
SCHEMA = "watchfloor-tools/1"
# Every launch copies and hashes all of them; an agent may lay any number of programs into the folder.
TOOLS_MAX = 100
TOOL_BYTES = 64 << 20
TOTAL_BYTES = 256 << 20
MANIFEST_BYTES = 256 << 10
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_CONTEXT = b"watchfloor-tools-manifest-1\n"
"""Before what is signed, so that no other signature of an operator's key is one over a manifest."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REMEDY = "Look at the tools folder, then: watchfloor policy tools sign SESSION --tool NAME --reason WHY"


@dataclass(frozen=True, slots=True)
class Tool:
    """One program that an operator has looked at."""

    name: str
    sha256: str
    size: int
    """Bytes."""
    reason: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was signed."""

    session: str
    serial: int
    signed_at: float
    """Seconds since the epoch, by the signer's clock; for people."""
    tools: tuple[Tool, ...]
    kid: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a launch gets: a folder to bind read-only and put last on PATH, or none and why. ``why`` is empty where there is no tools/."""

    folder: Path | None = None
    names: tuple[str, ...] = ()
    why: str = ""
    serial: int = 0


# --- the manifest


def make_manifest(manifest: Manifest, kid: str, sign: Callable[[bytes], bytes]) -> bytes:
    """The whole file. Raises UsageProblem on what ``verify_manifest`` would refuse."""
    body = {"schema": SCHEMA, "session": manifest.session, "serial": manifest.serial, "signed_at": manifest.signed_at}
    body["tools"] = [asdict(t) for t in manifest.tools]
    try:
        _decode(body, kid)
    except ValueError as error:
        raise UsageProblem(f"This cannot be signed: {error}.", "Name programs in the tools folder by plain names, each once.") from error
    return _canonical({"body": body, "kid": kid, "sig": base64.b64encode(sign(_signed(body))).decode()}) + b"\n"


def verify_manifest(raw: bytes, publics: Mapping[str, bytes], session: str) -> Manifest:
    """The manifest, if one of these keys (kid: raw Ed25519 public key) signed it for this session. Raises Denied, in words."""
    # 1. The shape, byte for byte as it is written: nothing that a parser reads over was changed or added.
    try:
        document: dict[str, Any] = json.loads(raw)
        if set(document) != {"body", "kid", "sig"} or raw != _canonical(document) + b"\n":
            raise ValueError("its bytes are not as they are written when it is signed")
        signature = base64.b64decode(document["sig"], validate=True)
        manifest = _decode(document["body"], document["kid"])
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise Denied(f"The manifest of the tools is damaged: {str(error)[:200]}.", _REMEDY) from error
    # 2. The key is one of the operator's.
    public = publics.get(manifest.kid)
    if public is None:
        raise Denied(
            "The manifest of the tools is signed with a key that is not an operator's.", "watchfloor secrets keys show lists them."
        )
    # 3. The signature covers what is there now.
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _signed(document["body"]))
    except InvalidSignature as error:
        raise Denied("The manifest of the tools is not as it was signed.", _REMEDY) from error
    # 4. It was signed for this session.
    if manifest.session != session:
        raise Denied("The manifest of the tools was signed for another session.", _REMEDY)
    return manifest


def _is_time(value: object) -> bool:
    """Seconds since the epoch that a clock can say: not infinite, and no integer that no float can hold."""
    return type(value) in (int, float) and 0 <= value < 1e11  # type: ignore[operator]


def _decode(body: dict[str, Any], kid: Any) -> Manifest:
    if set(body) != {"schema", "session", "serial", "signed_at", "tools"} or body["schema"] != SCHEMA:
        raise ValueError("it is not of this schema")
    if type(body["serial"]) is not int or not 0 < body["serial"] < 1 << 62 or not _is_time(body["signed_at"]):
        raise ValueError("its serial or its time is no number that counts")
    if not isinstance(body["session"], str) or not CONTEXT_ID.match(body["session"]) or not isinstance(kid, str):
        raise ValueError("it names no session")
    tools = tuple(_tool(entry) for entry in body["tools"])
    if not 0 < len(tools) <= TOOLS_MAX or len({t.name for t in tools}) != len(tools) or sum(t.size for t in tools) > TOTAL_BYTES:
        raise ValueError(f"it names no tool, one twice, more than {TOOLS_MAX}, or more than {TOTAL_BYTES:,} bytes")
    return Manifest(body["session"], body["serial"], float(body["signed_at"]), tools, kid)


def _tool(entry: dict[str, Any]) -> Tool:
    if set(entry) != {"name", "sha256", "size", "reason"} or not all(isinstance(entry[k], str) for k in ("name", "sha256", "reason")):
        raise ValueError("a tool is not described as it must be")
    if not _NAME.match(entry["name"]) or entry["name"] == MANIFEST or not _SHA256.match(entry["sha256"]):
        raise ValueError("a tool's name or hash is not valid")
    if type(entry["size"]) is not int or not 0 <= entry["size"] <= TOOL_BYTES or not 0 < len(entry["reason"]) <= 500:
        raise ValueError("a tool's size or reason is not valid")
    return Tool(entry["name"], entry["sha256"], entry["size"], entry["reason"])


def _signed(body: dict[str, Any]) -> bytes:
    return _CONTEXT + _canonical(body)


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


# --- the folder in the workspace, where everything is an agent's


def read_tool(workspace: Path, name: str) -> tuple[str, int]:
    """(SHA-256, bytes) of a program in tools/, for signing. Raises NotFound, Denied, UsageProblem."""
    if not _NAME.match(name) or name == MANIFEST:
        raise UsageProblem(f"{name[:80]!r} is not a tool's name.", "Use letters, digits, dot, dash, plus and underscore.")
    with _tools_folder(workspace) as folder:
        if folder is None:
            raise NotFound("The workspace has no tools folder.", "Make it, put the program there, look at it, then sign.")
        digest = hashlib.sha256()
        size = 0
        with _opened(folder, name, TOOL_BYTES) as descriptor:
            while part := os.read(descriptor, 1 << 20):
                digest.update(part)
                size += len(part)
    return digest.hexdigest(), size


def read_manifest(workspace: Path) -> bytes | None:
    """The manifest's bytes; None where there is no tools folder. Raises Denied when that has no manifest, or no plain one."""
    with _tools_folder(workspace) as folder:
        if folder is None:
            return None
        with _opened(folder, MANIFEST, MANIFEST_BYTES) as descriptor:
            return os.read(descriptor, MANIFEST_BYTES + 1)


def write_manifest(workspace: Path, data: bytes) -> None:
    """Puts the manifest into tools/, following nothing that an agent may have laid there. Raises NotFound, ConsoleError."""
    with _tools_folder(workspace) as folder:
        if folder is None:
            raise NotFound("The workspace has no tools folder.", "Make it, put the program there, look at it, then sign.")
        draft = f".manifest-{secrets.token_hex(8)}"
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            os.rename(draft, MANIFEST, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise ConsoleError(f"The manifest cannot be written: {error.strerror}.", "Look at the tools folder.") from error


@contextlib.contextmanager
def _tools_folder(workspace: Path) -> Iterator[int | None]:
    """A descriptor of tools/, or None. Raises Denied when it is a link or no folder."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as stack:
        try:
            top = os.open(workspace, flags)
            stack.callback(os.close, top)
            folder = os.open(FOLDER, flags, dir_fd=top)
            stack.callback(os.close, folder)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise Denied(f"The tools folder of the workspace is a link or no folder ({error.strerror}).", _REMEDY) from error
        yield folder


@contextlib.contextmanager
def _opened(folder: int, name: str, most: int) -> Iterator[int]:
    """A descriptor of a plain file with one name in ``folder``; nothing else is ever opened. Raises Denied."""
    shown = f"tools/{name}"
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError as error:
        raise Denied(f"There is no {shown}.", _REMEDY) from error
    except OSError as error:
        raise Denied(f"{shown} cannot be opened: {error.strerror}.", _REMEDY) from error
    try:
        seen = os.fstat(handle)
        # A second name could be a file of this host that the agent may not read: its copy would hand the content over.
        if not stat.S_ISREG(seen.st_mode) or seen.st_nlink != 1:
            raise Denied(f"{shown} is a link or no plain file.", _REMEDY)
        if seen.st_size > most:
            raise Denied(f"{shown} has more than {most:,} bytes.", _REMEDY)
        try:
            # The very inode that was looked at, whatever the name leads to by now.
            descriptor = os.open(f"/proc/self/fd/{handle}", _READ & ~os.O_NOFOLLOW)
        except OSError as error:
            raise Denied(f"{shown} cannot be read: {error.strerror}.", _REMEDY) from error
    finally:
        os.close(handle)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# --- the offer


def offer(workspace: Path, publics: Mapping[str, bytes], session: str, least_serial: int, target: Path) -> Offer:
    """Checked copies of all signed tools in ``target``, or none at all and why: one that differs spoils the lot.

    ``target`` must lie where the agent cannot write. Raises OSError when the copies cannot be made for want of disk or rights.
    """
    try:
        raw = read_manifest(workspace)
        if raw is None:
            return Offer()
        manifest = verify_manifest(raw, publics, session)
        # A manifest that an operator has replaced keeps a good signature; only its serial tells that it was withdrawn.
        if manifest.serial < least_serial:
            raise Denied("The manifest of the tools is older than one that was accepted before.", _REMEDY)
        target.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        draft.mkdir(mode=0o700)
        try:
            _copy_all(workspace, manifest, draft)
            draft.chmod(0o555)
            # One rename at the end: an agent must never find a folder in which some copies were not checked yet.
            draft.rename(target)
        except (ConsoleError, OSError):
            withdraw(draft)
            raise
    except ConsoleError as error:
        return Offer(why=f"no tool of the workspace is offered: {error.what}")
    return Offer(target, tuple(t.name for t in manifest.tools), "", manifest.serial)


def _copy_all(workspace: Path, manifest: Manifest, draft: Path) -> None:
    with _tools_folder(workspace) as folder:
        if folder is None:
            raise Denied("The tools folder is gone.", _REMEDY)
        for tool in manifest.tools:
            copy = draft / tool.name
            with _opened(folder, tool.name, TOOL_BYTES) as source:
                _copy(source, copy, tool.size)
            # What counts are the bytes of the copy, looked at once nobody but us can change them.
            with copy.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if copy.stat().st_size != tool.size or digest != tool.sha256:
                raise Denied(f"tools/{tool.name} is not what was signed.", _REMEDY)
            copy.chmod(0o555)


def _copy(source: int, copy: Path, size: int) -> None:
    descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        # One byte more than was signed, so that a file that is too long differs in size instead of being cut to fit.
        left = size + 1
        while left > 0 and (part := os.read(source, min(left, 1 << 20))):
            file.write(part)
            left -= len(part)


def withdraw(target: Path) -> None:
    """Removes an offer; one that is not there is no trouble. Raises OSError."""
    if target.is_dir() and not target.is_symlink():
        target.chmod(0o700)
        shutil.rmtree(target)
