"""``watchfloor policy tools sign | check``: a session's tools, signed with an operator's key, and what a launch would offer now."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

from console.domain.errors import ConsoleError, Denied, NotFound, UsageProblem
from console.domain.ids import CONTEXT_ID
from console.remotekill.keys import load_key_files, load_keys, load_signers
from console.sandbox.workspace.tools import Manifest, Tool, make_manifest, read_manifest, read_tool, verify_manifest, write_manifest
from console.services.launch.tool_offers import keep_serial, least_serial
from console.settings.places import Places
from console.supervisor.verbs.printing import show

Said = tuple[dict[str, Any], list[str]]


def tools_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("action", choices=("sign", "check"))
    parser.add_argument("session", help="session id, as watchfloor fleet shows it")
    parser.add_argument("--tool", action="append", default=[], help="NAME, or NAME=SHA256 to sign these very bytes or nothing; repeatable")
    parser.add_argument("--reason", default="", help="why; kept in the manifest")
    parser.add_argument(
        "--key", action="append", default=[], metavar="FILE", help="a private key in addition to those of this instance; repeatable"
    )


def tools_verb(places: Places | None, given: argparse.Namespace) -> int:
    """Signs, or checks. Raises ConsoleError kinds."""
    assert places is not None
    if not CONTEXT_ID.match(given.session):
        raise UsageProblem(f"Session {given.session[:80]!r} is not valid.", "Use a-z, 0-9 and -, 1 to 63 characters.")
    workspace = places.workspaces_dir / given.session
    if not workspace.is_dir() or workspace.is_symlink():
        raise NotFound(f"Session {given.session} has no workspace.", "It is made when its first agent starts.")
    show(given, *(_sign(places, workspace, given) if given.action == "sign" else _check(places, workspace, given.session)))
    return 0


def _sign(places: Places, workspace: Path, given: argparse.Namespace) -> Said:
    if not given.tool or not given.reason.strip():
        raise UsageProblem("Name each tool and a reason.", "watchfloor policy tools sign SESSION --tool NAME --reason WHY")
    elsewhere = load_key_files([Path(f) for f in given.key], load_keys(places.keys_dir))
    signers = [*elsewhere, *load_signers(places.keys_dir)]
    if not signers:
        raise Denied("There is no private key here to sign with.", "Sign where the operator's keys are, or: watchfloor secrets keys init")
    tools = tuple(_looked_at(workspace, word, given.reason) for word in given.tool)
    try:
        serial = least_serial(places, given.session) + 1
        # Taken before it is used: from here on nothing older is offered, whatever becomes of the manifest.
        keep_serial(places, given.session, serial)
    except (OSError, ValueError) as error:
        raise ConsoleError(f"The serial of the last manifest cannot be used: {error}.", "Fix the state directory.") from error
    signer = signers[0]
    manifest = Manifest(given.session, serial, time.time(), tools)
    write_manifest(workspace, make_manifest(manifest, signer.kid, signer.private.sign))
    return _said(
        manifest, signer.kid, [f"signed by key {signer.kid} as number {serial}; offered from the next launch of {given.session} on"]
    )


def _looked_at(workspace: Path, word: str, reason: str) -> Tool:
    name, _, wanted = word.partition("=")
    digest, size = read_tool(workspace, name)
    if wanted and wanted != digest:
        raise Denied(f"tools/{name} is {digest} now, not what you reviewed.", "Look at it again; nothing was signed.")
    return Tool(name, digest, size, reason)


def _check(places: Places, workspace: Path, session: str) -> Said:
    """What a launch would offer: raises Denied with why when it is nothing."""
    raw = read_manifest(workspace)
    if raw is None:
        raise NotFound("The workspace has no tools folder: nothing is offered.", "Make it, put the program there, look at it, then sign.")
    manifest = verify_manifest(raw, load_keys(places.keys_dir).keys, session)
    if manifest.serial < least_serial(places, session):
        raise Denied("The manifest is older than one that was signed or accepted before: nothing is offered.", "Sign again.")
    for tool in manifest.tools:
        if read_tool(workspace, tool.name) != (tool.sha256, tool.size):
            raise Denied(f"tools/{tool.name} is not what was signed: no tool is offered.", "Look at it, then sign again.")
    return _said(manifest, manifest.kid, [f"signed by key {manifest.kid} as number {manifest.serial}; every tool is as it was signed"])


def _said(manifest: Manifest, kid: str, lines: list[str]) -> Said:
    rows = [{"name": t.name, "sha256": t.sha256, "size": t.size, "reason": t.reason} for t in manifest.tools]
    data = {"session": manifest.session, "serial": manifest.serial, "kid": kid, "tools": rows, "by": f"uid {os.geteuid()}"}
    return data, [*(f"{t.name}  {t.sha256}  {t.size} bytes  {ascii(t.reason)}" for t in manifest.tools), *lines]
