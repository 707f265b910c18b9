"""A signing key that leaked is taken out: recorded first, signed by a key that remains, then this host trusts it no more.

Of a fleet, its public part leaves the set that this host trusts, and its private file goes. Of the host itself, a new key takes over; what
the old one sealed counts from then on only where it was on record before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from console.api.client.api_client import ApiClient
from console.api.secrets import RetiredKeyView, RetireKeyBody, RetirementBody
from console.audit.log import AuditLog
from console.audit.retirement import FLEET, HOST, KIND, Retirement, key_id, retire, worth
from console.audit.verify_presence import retired_keys
from console.credentials.host_key import ensure_host_key, forget_next, next_key, prepare_next, take_over
from console.domain.engine.command import Record
from console.domain.errors import Conflict, ConsoleError, Denied, NotFound, Unreachable, UsageProblem
from console.domain.message import Malformed
from console.remotekill.keys import load_key_files, load_keys, load_signers, retire_key
from console.settings.places import Places

RecordFirst = Callable[[Record], None]


def host_key_id(places: Places) -> str:
    """Of the key that seals receipts here, or '' when there is none that can be used; none is made."""
    if not (places.keys_dir / "host-key.pem").exists():
        return ""
    try:
        return key_id(ensure_host_key(places.keys_dir).public_key().public_bytes_raw())
    except ConsoleError:
        return ""


def retire_here(places: Places, kid: str, reason: str, files: list[str]) -> RetiredKeyView:
    """From the command line: through the supervisor when one runs, else into the log itself. Raises ConsoleError kinds."""
    if not reason.strip():
        raise UsageProblem("Retiring a key needs a reason.", "Say with --reason how it leaked; it is on record.")
    signed = _signed(places, kid, files)
    try:
        body = RetireKeyBody.made(key_id=kid, reason=reason, retirement=signed)
    except Malformed as error:
        raise UsageProblem(f"The {error.where} cannot be taken.", "Use 1 to 500 characters.") from error
    try:
        return ApiClient(places).retire_key(body)
    except Unreachable:
        if not places.audit_db.exists():
            raise NotFound("There is no audit log yet: nothing was ever started here.", "Start it once: watchfloor supervisor") from None
    with closing(AuditLog(places.audit_db)) as log:  # refused while a supervisor writes it that does not answer

        def record_first(entry: Record) -> None:
            log.append(entry.actor, entry.kind, entry.what, verdict=entry.verdict, data=entry.data, must=entry.must)

        return apply(places, body, f"operator:{os.geteuid()}", record_first)


def apply(places: Places, body: RetireKeyBody, by: str, record_first: RecordFirst) -> RetiredKeyView:
    """Checks, records, then changes. Raises ConsoleError kinds; before it is on record nothing has changed. Blocks."""
    finish(places)
    if body.retirement is not None:
        found = Retirement(**body.retirement.as_data())
        _check(places, body.key_id, found)
        record_first(_record(found, body.reason, by))
        retire_key(places.keys_dir, found.key_id)
        return _view(found)
    old = ensure_host_key(places.keys_dir).public_key().public_bytes_raw()
    if key_id(old) != body.key_id:
        raise NotFound(f"This host signs with no key {body.key_id}.", "watchfloor secrets keys show names those there are.")
    new = prepare_next(places.keys_dir)
    found = retire(HOST, old, new.public_key().public_bytes_raw(), new.sign)
    try:
        record_first(_record(found, body.reason, by))
    except ConsoleError:
        forget_next(places.keys_dir)
        raise
    take_over(places.keys_dir)
    return _view(found)


def finish(places: Places) -> None:
    """After a crash between the record and the change: a host key that the log says is retired is replaced now. Raises ConsoleError."""
    waiting = next_key(places.keys_dir)
    if waiting is None:
        return
    present = retired_keys(places.audit_db).get(host_key_id(places))
    successor = key_id(waiting.public_key().public_bytes_raw())
    if present is not None and key_id(present.raw_by()) == successor:
        take_over(places.keys_dir)
    elif not host_key_id(places):
        take_over(places.keys_dir)  # cut off in the middle of taking over
    else:
        forget_next(places.keys_dir)


def _signed(places: Places, kid: str, files: list[str]) -> RetirementBody | None:
    """By a key of the fleet that remains; None for the host's own key, which signs with the one that takes over."""
    if kid == host_key_id(places):
        return None
    keys = load_keys(places.keys_dir)
    if kid not in keys.keys:
        raise NotFound(f"There is no key {kid[:40]!r} here.", "watchfloor secrets keys show names those there are.")
    signers = [*load_signers(places.keys_dir), *load_key_files([Path(f) for f in files], keys)]
    left = next((s for s in signers if s.kid != kid), None)
    if left is None:
        raise Denied(
            "No private key that remains is here to sign it.", "Name its file with --key, or make one: watchfloor secrets keys rotate"
        )
    return RetirementBody(**retire(FLEET, keys.keys[kid], keys.keys[left.kid], left.private.sign).as_data())


def _check(places: Places, kid: str, found: Retirement) -> None:
    keys = load_keys(places.keys_dir)
    if found.role != FLEET or found.key_id != kid or keys.keys.get(kid) != found.raw():
        raise NotFound(f"The fleet trusts no key {kid}.", "watchfloor secrets keys show names those there are.")
    if found.problem() or found.raw_by() not in keys.keys.values():
        raise Denied("No key that remains has signed it.", "watchfloor secrets keys revoke signs it with one.")
    if len({raw for one, raw in keys.keys.items() if one != kid}) < keys.quorum:
        raise Conflict("Without this key no release could be signed.", "Rotate first: watchfloor secrets keys rotate")


def _record(found: Retirement, reason: str, by: str) -> Record:
    words = f"{found.role} key {found.key_id} is retired: {reason.strip()[:400]}"
    return Record(by, KIND, words, verdict="ok", data=found.as_data(), must=True)


def _view(found: Retirement) -> RetiredKeyView:
    return RetiredKeyView(role=found.role, key_id=found.key_id, by=key_id(found.raw_by()), worth=worth(found.role))
