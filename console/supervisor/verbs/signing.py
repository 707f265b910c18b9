"""``watchfloor secrets keys`` and ``remote release``: keys of a fleet, its first baseline, and the signed end of the reviewed kill."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from console.audit.retirement import FLEET
from console.domain.errors import Conflict, ConsoleError, UsageProblem
from console.killswitch.kernel.processes import start_ticks
from console.remotekill.channel import boottime
from console.remotekill.document import KeySet, Signer, baseline_document, number_of
from console.remotekill.keys import (
    PUBLIC_FILE,
    KeysShown,
    init_keys,
    load_key_files,
    load_keys,
    load_signers,
    rotate_keys,
    show_keys,
    take_epoch,
)
from console.remotekill.release import Review, make_release, review
from console.remotekill.state_file import load_state
from console.remotekill.store import RemoteStore, now_text
from console.services.records.key_retirement import host_key_id, retire_here
from console.settings.layers import in_force
from console.settings.options import Options
from console.settings.places import Places
from console.supervisor.lock import listens
from console.supervisor.verbs.printing import show

PATIENCE_S = 8.0
"""The longest wait of ``keys init`` for a supervisor that may be starting."""


def keys_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``keys`` takes."""
    parser.add_argument("action", choices=("init", "show", "rotate", "retire"))
    parser.add_argument("--kid", default="", help="id of the key (retire)")
    parser.add_argument("--reason", default="", help="how it leaked (retire)")
    parser.add_argument("--key", action="append", default=[], metavar="FILE", help="a private key that signs the retirement; repeatable")
    parser.add_argument("--fleet")
    parser.add_argument("--quorum", type=int, default=1, help="how many distinct keys an un-kill takes (init)")


def release_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``release`` takes."""
    parser.add_argument("--reason", default="")
    parser.add_argument("--review", action="store_true", help="show what a release would release, and sign nothing")
    parser.add_argument("--order", help="the order as you reviewed it; refused when the bucket holds another")
    parser.add_argument(
        "--key", action="append", default=[], metavar="FILE", help="a private key in addition to those of this instance; repeatable"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask; the order must then be named with --order")


def _store(options: Options) -> RemoteStore:
    remote = options.remote
    if not remote.bucket:
        raise ConsoleError("Remote kill is not configured: no bucket is set.", "Start the supervisor once with --remote-bucket NAME.")
    return RemoteStore(remote.bucket, remote.key, remote.endpoint or None)


# --- keys


def keys(places: Places | None, given: argparse.Namespace) -> int:
    """init, show, rotate or retire."""
    assert places is not None
    if given.action == "retire":
        return _retire(places, given)
    options = in_force(places).options
    note = ""
    if given.action == "init":
        options = _awaited(places, options)
        shown = _init(places, options, given.fleet, given.quorum)
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
        "host_key": host_key_id(places),
    }
    lines = [f"fleet {shown.fleet}, quorum {shown.quorum}", *(f"key {kid}" for kid in shown.kids), f"hosts trust {shown.public_file}"]
    lines += [f"this host seals receipts with {data['host_key']}"] if data["host_key"] else []
    show(given, data | {"baseline": note}, lines + ([note] if note else []))
    return 0


def _retire(places: Places, given: argparse.Namespace) -> int:
    found = retire_here(places, given.kid, given.reason, given.key)
    lines = [f"{found.role} key {found.key_id} is retired, on record and signed by {found.by}", found.worth]
    if found.role == FLEET:
        lines.append(f"copy {places.keys_dir / PUBLIC_FILE} to every other host; sign its tools again, then they are offered again")
    else:
        lines.append(
            f"copy {places.keys_dir / 'host-key.pub'} to where receipts are checked; baselines that it signed are believed no more"
        )
    show(given, found.as_data(exclude={"schema_version"}), lines)
    return 0


def _init(places: Places, options: Options, asked: str | None, quorum: int) -> KeysShown:
    """The first keys; where some are already only the missing baseline is written.

    Raises Conflict for keys of another fleet than this host's: it would refuse the baseline, and stay stopped.
    """
    mine, has_bucket = options.remote.fleet, bool(options.remote.bucket)
    if has_bucket and asked not in (None, mine):
        raise _other_fleet(mine, str(asked))
    try:
        return init_keys(places.keys_dir, asked or mine, quorum)
    except Conflict:
        if not has_bucket:
            raise
        shown = show_keys(places.keys_dir)
        if shown.fleet != mine:
            raise _other_fleet(mine, shown.fleet) from None
        return shown


def _other_fleet(mine: str, asked: str) -> Conflict:
    return Conflict(
        f"This host belongs to the fleet {mine}, and the keys would be of the fleet {asked}: it would refuse what they sign.",
        f"Start the supervisor once with --remote-fleet {asked}, or name the fleet {mine}.",
    )


def _awaited(places: Places, options: Options) -> Options:
    """The options, once they name a bucket: a supervisor that was started a moment ago is still to write its own.

    It answers only after it has written them. How long it may take to start is measured by this program's own start.
    """
    age_s = boottime() - (start_ticks(os.getpid()) or 0) / os.sysconf("SC_CLK_TCK")
    until = time.monotonic() + min(PATIENCE_S, 1.0 + 3 * age_s)
    while not options.remote.bucket and not listens(places.operator_sock) and time.monotonic() < until:
        time.sleep(0.05)
        options = in_force(places).options
    return options


def _baseline(places: Places, options: Options) -> str:
    if not options.remote.bucket:
        return "no bucket is set: the signed baseline is written by 'watchfloor secrets keys init' once one is"
    state, _ = load_state(places.state_dir / "remote-state.json")
    body = baseline_document(
        fleet=options.remote.fleet,
        epoch=take_epoch(places.keys_dir, [state.epoch]),
        reason="baseline",
        actor=f"uid {os.geteuid()}",
        issued_at=now_text(),
        signers=load_signers(places.keys_dir),
        settled=state.settled,
    )
    with closing(_store(options)) as store:
        written = store.write_baseline(body, 0)
        standing = store.read_orders(state.settled + 1, 1).found if written.ok else ()
    if not written.ok:
        raise ConsoleError(
            f"The baseline was not written: {written.detail}.", "Look at the object in the bucket; 'release' ends a live kill."
        )
    note = (
        f"; order {standing[0].number} lies in the bucket and kills until it is released: watchfloor remote release --review"
        if standing
        else ""
    )
    return f"signed baseline written, {written.detail}{note}"


# --- release


def release(places: Places | None, given: argparse.Namespace) -> int:
    """Shows what is live, and signs the end of exactly that."""
    assert places is not None
    if not given.review and not given.reason.strip():
        raise UsageProblem("A release needs a reason.", "Say with --reason why it is safe to run again; --review only looks.")
    options = in_force(places).options
    trusted = load_keys(places.keys_dir)
    with closing(_store(options)) as store:
        # 1. What lies there now is reviewed and released: each order by generation and content hash, and the numbers up to the last.
        state, _ = load_state(places.state_dir / "remote-state.json")
        reviewed = review(store, trusted, [str(order) for order in state.latched], state.settled)
        signers = _signers(places, trusted, given.key)
        if given.review:
            show(given, _facts(reviewed, trusted, signers), _words(reviewed, trusted, signers))
            return 0
        _agree(given, reviewed, _words(reviewed, trusted, signers))
        # 2. Signed with a number above every one that was ever used.
        epoch = take_epoch(places.keys_dir, [state.epoch, reviewed.epoch])
        body = make_release(reviewed, trusted, signers, epoch=epoch, reason=given.reason, actor=f"uid {os.geteuid()}")
        # 3. Written over exactly that generation: a hand-written kill that lands in between makes it fail; an order with a number stays.
        written = store.write_release(body, reviewed.generation)
        newer = store.read_orders(reviewed.settled + 1, 1).found if written.ok else ()
    if not written.ok:
        raise Conflict(f"The release was not written: {written.detail}.", "Review the file again: watchfloor remote release --review")
    orders = [str(order) for order in reviewed.orders]
    facts = {"released": orders, "settled": reviewed.settled, "generation": written.generation, "epoch": epoch, "trouble": reviewed.trouble}
    words = [f"released {order}" for order in orders]
    words += [f"orders are settled up to number {reviewed.settled}"] if reviewed.settled else []
    words += [f"order {newer[0].number} came after the review and still kills: watchfloor remote release --review"] if newer else []
    words += [written.detail, "Each host stays killed locally until: watchfloor rearm --reason ..."]
    show(given, facts | {"newer": str(newer[0].order) if newer else ""}, words)
    return 0


def _signers(places: Places, trusted: KeySet, files: list[str]) -> list[Signer]:
    """The keys of this instance and the key files given, each once."""
    found = {s.kid: s for s in [*load_signers(places.keys_dir), *load_key_files([Path(f) for f in files], trusted)]}
    return list(found.values())


def _facts(seen: Review, trusted: KeySet, signers: list[Signer]) -> dict[str, Any]:
    return {
        "order": seen.order,
        "generation": seen.generation,
        "settled": seen.settled,
        "reason": seen.reason,
        "actor": seen.actor,
        "orders": [str(order) for order in seen.orders],
        "trouble": seen.trouble,
        "instead": seen.instead,
        "fleet": trusted.fleet,
        "quorum": trusted.quorum,
        "signing": [s.kid for s in signers],
    }


def _words(seen: Review, trusted: KeySet, signers: list[Signer]) -> list[str]:
    lines = [f"Order {seen.orders[-1]}", f"  reason: {ascii(seen.reason)}", f"  actor: {ascii(seen.actor)}"]
    if seen.instead:
        lines = [f"Order {seen.orders[-1]} is in force, and lies in the bucket no more: {seen.instead}. Find out who wrote that."]
    lines.append("A release would end:")
    lines += [f"  {order}" for order in seen.orders if order not in seen.earlier]
    if seen.settled:
        lines.append(f"  and every order with a number up to {seen.settled}")
    if seen.trouble:
        lines.append(f"  (not everything could be read: {seen.trouble}; an order that is missing here still blocks new agents)")
    at_hand = ", ".join(s.kid for s in signers) or "none"
    lines.append(f"Fleet {trusted.fleet}: {trusted.quorum} {'key' if trusted.quorum == 1 else 'keys'} needed; at hand: {at_hand}")
    return lines


def _agree(given: argparse.Namespace, seen: Review, words: list[str]) -> None:
    """The operator names what was reviewed: every order whole, or, asked at once, the newest one's number or generation."""
    if given.order and given.order != seen.order:
        what = "This host obeys" if seen.instead else "The bucket holds"
        raise Conflict(f"{what} {seen.order} now, not what you reviewed.", "Look again: watchfloor remote release --review")
    if given.order:
        return
    print("\n".join(words), file=sys.stderr)
    if given.yes:
        raise UsageProblem("--yes needs --order.", "Name the order that you reviewed.")
    what = "number" if number_of(seen.orders[-1]) else "generation"
    print(f"Type {seen.handle}, the {what} of the order, to release all of these: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != seen.handle:
        raise UsageProblem(
            f"Not released: the {what} was not typed.", "Without a terminal: --order ORDER --yes, as --review --json names it."
        )
