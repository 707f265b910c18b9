"""Verbs that need machinery but no daemon: keys, release, doctor. Run as ``python -m console.supervisor oneshot VERB ...``."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from console.credentials.keyring_store import Store
from console.domain.errors import Conflict, ConsoleError, UsageProblem
from console.egress.service import Egress
from console.killswitch.cgroups import find_mounts
from console.remotekill.document import baseline_document
from console.remotekill.keys import KeysShown, init_keys, load_keys, load_signers, rotate_keys, show_keys, take_epoch
from console.remotekill.release import Review, make_release, review
from console.remotekill.state_file import load_state
from console.remotekill.store import RemoteStore, now_text
from console.settings.options import Options, load_options
from console.settings.places import Places, find_places
from console.supervisor.adapters import sandboxes_of


def oneshot(what: str, rest: list[str]) -> int:
    """Runs one verb; prints words, or one JSON object with --json."""
    verbs = {"keys": _keys, "release": _release, "doctor": _doctor}
    if what not in verbs:
        raise UsageProblem(f"There is no oneshot verb {what[:40]!r}.", f"Verbs: {', '.join(verbs)}.")
    parser = argparse.ArgumentParser(prog=f"watchfloor {what}")
    parser.add_argument("--state-dir")
    parser.add_argument("--json", action="store_true")
    if what == "keys":
        parser.add_argument("action", choices=("init", "show", "rotate"))
        parser.add_argument("--fleet")
    if what == "release":
        parser.add_argument("--reason", required=True)
        parser.add_argument("--order", help="generation:sha256:... as you reviewed it; refused when the file is another")
        parser.add_argument("--yes", action="store_true", help="do not ask; the order must then be named with --order")
    given = parser.parse_args(rest)
    places = find_places(given.state_dir, create=what != "doctor")
    return verbs[what](places, given)


def _print(given: argparse.Namespace, data: dict[str, Any], lines: list[str]) -> None:
    print(json.dumps({"schema_version": 1} | data, default=str) if given.json else "\n".join(lines))


def _store(options: Options) -> RemoteStore:
    remote = options.remote
    if not remote.bucket:
        raise ConsoleError("Remote kill is not configured: no bucket is set.", "Start the supervisor once with --remote-bucket NAME.")
    return RemoteStore(remote.bucket, remote.key, remote.endpoint or None)


def _keys(places: Places | None, given: argparse.Namespace) -> int:
    assert places is not None
    options = load_options(places.settings_file)
    note = ""
    if given.action == "init":
        shown = _init(places, options, given.fleet or options.remote.fleet)
        note = _baseline(places, options)
    elif given.action == "rotate":
        shown = rotate_keys(places.keys_dir)
    else:
        shown = show_keys(places.keys_dir)
    data = {
        "fleet": shown.fleet,
        "quorum": shown.quorum,
        "kids": shown.kids,
        "signing": shown.signing,
        "public_file": str(shown.public_file),
    }
    lines = [f"fleet {shown.fleet}, quorum {shown.quorum}", *(f"key {kid}" for kid in shown.kids), f"hosts trust {shown.public_file}"]
    _print(given, data | {"baseline": note}, lines + ([note] if note else []))
    return 0


def _init(places: Places, options: Options, fleet: str) -> KeysShown:
    """The first key; where one is already only the missing baseline is written."""
    try:
        return init_keys(places.keys_dir, fleet)
    except Conflict:
        if not options.remote.bucket:
            raise
        return show_keys(places.keys_dir)


def _baseline(places: Places, options: Options) -> str:
    if not options.remote.bucket:
        return "no bucket is set: the signed baseline is written by 'keys init' once one is"
    store = _store(options)
    signers = load_signers(places.keys_dir)
    body = baseline_document(
        fleet=options.remote.fleet,
        epoch=take_epoch(places.keys_dir),
        reason="baseline",
        actor=f"uid {os.geteuid()}",
        issued_at=now_text(),
        signers=signers,
    )
    written = store.write_baseline(body, 0)
    store.close()
    if not written.ok:
        raise ConsoleError(
            f"The baseline was not written: {written.detail}.", "Look at the object in the bucket; 'release' ends a live kill."
        )
    return f"signed baseline written, {written.detail}"


def _release(places: Places | None, given: argparse.Namespace) -> int:
    assert places is not None
    options = load_options(places.settings_file)
    keys, signers, store = load_keys(places.keys_dir), load_signers(places.keys_dir), _store(options)
    # 1. What lies there now is what is reviewed and released: generation and content hash, and every earlier kill since the last release.
    state, _ = load_state(places.state_dir / "remote-state.json")
    reviewed = review(store, keys, [str(order) for order in state.latched])
    _reviewed(given, reviewed)
    # 2. Signed with a number above every one that was ever used.
    epoch = take_epoch(places.keys_dir, [state.epoch])
    body = make_release(reviewed, keys, signers, epoch=epoch, reason=given.reason, actor=f"uid {os.geteuid()}")
    # 3. Written over exactly that generation: a kill that lands in between makes it fail.
    written = store.write_release(body, reviewed.generation)
    store.close()
    if not written.ok:
        raise ConsoleError(f"The release was not written: {written.detail}.", "Review the file again.")
    orders = [str(order) for order in reviewed.orders]
    words = [f"released {order[:40]}" for order in orders]
    words += [written.detail, "Each host stays killed locally until: watchfloor rearm --reason ..."]
    _print(given, {"released": orders, "generation": written.generation, "epoch": epoch, "trouble": reviewed.trouble}, words)
    return 0


def _reviewed(given: argparse.Namespace, seen: Review) -> None:
    order = seen.order
    if given.order and given.order != str(order):
        raise Conflict(f"The kill file is {order} now, not what you reviewed.", "Look again.")
    if given.order:
        return
    print(f"Kill file {order}\n  reason: {ascii(seen.reason)}\n  actor: {ascii(seen.actor)}")
    if given.yes:
        raise UsageProblem("--yes needs --order.", "Name the order that you reviewed.")
    try:
        typed = input("Type the generation to release it: ")
    except EOFError:
        typed = ""
    if typed.strip() != str(order).split(":", 1)[0]:
        raise UsageProblem("Not released: the generation was not typed.", "Without a terminal: --order GENERATION:sha256:HASH --yes")


def _doctor(places: Places | None, given: argparse.Namespace) -> int:
    options = load_options(places.settings_file) if places is not None else Options()
    rows: list[tuple[str, str]] = []
    scratch = Path(places.state_dir) if places is not None else Path("/nonexistent")
    for kind, sandbox in sandboxes_of(options).items():
        ready = sandbox.available()
        name = "managed" if kind.value == "none" else kind.value
        rows.append((name, "available" if ready.ok else f"not available, because {ready.reason.rstrip('.')}. {ready.remedy}"))
    envoy = Egress(scratch / "egress", scratch / "run", lambda record: None).available()
    rows.append(("envoy", "available" if envoy.ok else f"not available, because {envoy.reason.rstrip('.')}. {envoy.remedy}"))
    rows.append(("cgroups", _cgroups()))
    if places is not None:
        kept = Store(places.instance_id, places.keys_dir, backend="auto" if places.is_default else "file")
        rows.append(("secrets", f"kept in {kept.kind}" + (f": {kept.why_file}" if kept.why_file else "")))
    shown = any(os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY"))
    rows.append(("display", "available" if shown else "not available, because neither DISPLAY nor WAYLAND_DISPLAY is set"))
    width = max(len(name) for name, _ in rows)
    _print(given, {"checks": dict(rows), "at": time.time()}, [f"{name.ljust(width)}  {words}" for name, words in rows])
    return 0


def _cgroups() -> str:
    mounts = find_mounts()
    if mounts.v2 is None:
        return "not available, because no cgroup v2 is mounted. Mount one (mount -t cgroup2), or agents are held by PID namespaces alone."
    if os.geteuid() == 0:
        return f"available: own tree below {mounts.v2.point}"
    return f"v2 at {mounts.v2.point}; whether it is delegated to you shows in watchfloor status once the guard runs"
