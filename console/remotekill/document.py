"""Read the remote document ``agent-kill/3`` from hostile bytes, sign it, verify it. ``agent-kill/2`` is still read.

A kill needs nothing: ``killed: true`` counts in any document that parses, signed or not. An un-kill needs everything: ``killed: false``
counts only with a quorum of distinct keys over the exact content, for this fleet.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NewType

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from console.domain.errors import UsageProblem

SCHEMA = "agent-kill/3"
"""Put before the canonical bytes when signing, so that a signature is worth nothing anywhere else."""
SCHEMA_2 = "agent-kill/2"
"""The format before orders had numbers: it names no number, so it settles none. What it releases stays released."""
SIZE_LIMIT = 64 * 1024
"""Bytes; a larger object is junk and is not even downloaded."""
# Larger integers are not the same number in every JSON reader (RFC 8259, 6), and so under every signature.
MAX_EPOCH = 2**53 - 1
_MAX_SIGNATURES = 16
_BOM = b"\xef\xbb\xbf"
_FIELDS_2 = frozenset({"schema", "fleet", "killed", "epoch", "nonce", "reason", "actor", "issued_at", "releases", "sigs"})
_FIELDS = {SCHEMA: _FIELDS_2 | {"settled"}, SCHEMA_2: _FIELDS_2}
_ORDER = re.compile(r"(?:([1-9][0-9]{0,15})/)?([0-9]{1,20}):sha256:[0-9a-f]{64}")

Order = NewType("Order", str)
"""The identity of one order to kill: ``<generation>:sha256:<hex of its bytes>``, with ``<number>/`` before it in the orders folder."""


def order_of(generation: int, body: bytes | None, number: int = 0) -> Order:
    """Generation and content together: two hand-written emergency files are byte-identical. ``body`` None: too large to be read."""
    digest = hashlib.sha256(body).hexdigest() if body is not None else "0" * 64
    return Order(f"{number}/{generation}:sha256:{digest}" if number else f"{generation}:sha256:{digest}")


def read_order(text: str) -> Order:
    """A checked order; UsageProblem on anything else."""
    if not _ORDER.fullmatch(text):
        raise UsageProblem("That is not a kill order.", "An order reads [<number>/]<generation>:sha256:<64 hexadecimal digits>.")
    return Order(text)


def number_of(order: str) -> int:
    """The order's number in the orders folder; 0 for one of the kill file."""
    number, slash, _ = order.partition("/")
    return int(number) if slash else 0


def generation_of(order: str) -> int:
    """The generation of the object that holds the order."""
    return int(order.rpartition("/")[2].partition(":")[0])


@dataclass(frozen=True, slots=True)
class KeySet:
    """The public keys that may sign for a fleet, and how many distinct ones it takes."""

    fleet: str
    quorum: int
    keys: Mapping[str, bytes] = field(default_factory=dict)
    """kid -> raw 32-byte Ed25519 public key."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key and the kid it signs under."""

    kid: str
    private: Ed25519PrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class KillOrder:
    """``killed: true``. ``reason`` and ``actor`` are hostile text: shown, never believed."""

    reason: str
    actor: str


@dataclass(frozen=True, slots=True)
class SignedUnkill:
    """``killed: false`` with a quorum: a baseline (no releases) or a release."""

    epoch: int
    releases: tuple[Order, ...]
    reason: str
    actor: str
    issued_at: str
    """For the audit only; the clock decides nothing."""
    settled: int = 0
    """Orders with a number up to this one are over; 0: none is."""


@dataclass(frozen=True, slots=True)
class Junk:
    """Anything else: it never un-kills, and it stops a host that was running."""

    why: str


class _Refused(ValueError):
    """Why a document is junk."""


def parse(body: bytes, keys: KeySet) -> KillOrder | SignedUnkill | Junk:
    """Judges one object's bytes. Never raises on content."""
    try:
        document = _read_json(body)
        killed = document.get("killed")
        # Before schema, fleet and signatures: a person who stops a fleet by hand must not fail at a field.
        if killed is True:
            return KillOrder(_text(document.get("reason")), _text(document.get("actor")))
        if killed is not False:
            raise _Refused("it has no true or false under 'killed'")
        return _read_unkill(document, keys)
    except _Refused as error:
        return Junk(str(error))


def _read_json(body: bytes) -> dict[str, Any]:
    # 1. Size, 2. encoding (a UTF-8 BOM is what a desktop editor adds), 3. JSON without duplicate keys.
    if len(body) > SIZE_LIMIT:
        raise _Refused(f"it is larger than {SIZE_LIMIT} bytes")
    try:
        text = body.removeprefix(_BOM).decode("utf-8")
        document = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except _Refused:
        raise
    except (ValueError, RecursionError) as error:
        raise _Refused("it is not JSON in UTF-8") from error
    if not isinstance(document, dict):
        raise _Refused("it is not a JSON object")
    return document


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    # Readers differ in which of two equal keys counts, so one document could say two things.
    if len(document) != len(pairs):
        raise _Refused("it has a key twice")
    return document


def _no_constant(name: str) -> Any:
    raise _Refused(f"it contains {name}")


def _text(value: object) -> str:
    return value[:500] if isinstance(value, str) else ""


def _read_unkill(document: dict[str, Any], keys: KeySet) -> SignedUnkill:
    # 4. Exactly the fields of the schema, for this fleet.
    schema = document.get("schema")
    if not isinstance(schema, str) or schema not in _FIELDS:
        raise _Refused(f"its schema is not {SCHEMA} (unsigned, or made by something else)")
    # A field that this version does not know could limit the release in a way that it would overlook.
    if set(document) != _FIELDS[schema]:
        raise _Refused(f"it un-kills without exactly the fields of {schema}")
    if document["fleet"] != keys.fleet:
        raise _Refused("it is signed for another fleet")
    epoch, settled = document["epoch"], document.get("settled", 0)
    if type(epoch) is not int or not 1 <= epoch <= MAX_EPOCH:
        raise _Refused("its epoch is not a number from 1 on")
    if type(settled) is not int or not 0 <= settled <= MAX_EPOCH:
        raise _Refused("the number of settled orders is not a number from 0 on")
    if not all(isinstance(document[name], str) for name in ("nonce", "reason", "actor", "issued_at")):
        raise _Refused("nonce, reason, actor or issued_at is not text")
    releases = document["releases"]
    if not isinstance(releases, list) or not all(isinstance(r, str) and _ORDER.fullmatch(r) for r in releases):
        raise _Refused("its releases are not a list of orders")
    # 5. A quorum of distinct keys over these very bytes.
    signed_by = _signing_keys(document, keys)
    # A key set that is empty or damaged must not read as "no signature needed".
    if keys.quorum < 1 or len(signed_by) < keys.quorum:
        raise _Refused(f"{len(signed_by)} of {max(1, keys.quorum)} required signatures are good")
    named = tuple(Order(r) for r in releases)
    return SignedUnkill(epoch, named, _text(document["reason"]), _text(document["actor"]), _text(document["issued_at"]), settled)


def _signing_keys(document: dict[str, Any], keys: KeySet) -> frozenset[bytes]:
    """The distinct public keys with a good signature: two signatures by one key, or one key under two kids, are one vote."""
    entries = document["sigs"]
    if not isinstance(entries, list) or len(entries) > _MAX_SIGNATURES:
        raise _Refused("its signatures are not a short list")
    message = signing_bytes(document)
    good = set()
    for entry in entries:
        public = _vouched(entry, keys, message)
        if public is not None:
            good.add(public)
    return frozenset(good)


def _vouched(entry: object, keys: KeySet, message: bytes) -> bytes | None:
    if not isinstance(entry, dict) or set(entry) != {"kid", "alg", "sig"} or entry["alg"] != "Ed25519":
        return None
    kid, text = entry["kid"], entry["sig"]
    if not isinstance(kid, str) or not isinstance(text, str) or kid not in keys.keys:
        return None
    public = keys.keys[kid]
    return public if is_good(public, text, message) else None


def is_good(public: bytes, text: str, message: bytes) -> bool:
    """Whether a signature in base64 is this key's over this message. Never raises."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(base64.b64decode(text, validate=True), message)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def signatures_over(message: bytes, signers: Sequence[Signer]) -> list[dict[str, str]]:
    """One signature per key, as documents carry it."""
    return [{"kid": s.kid, "alg": "Ed25519", "sig": base64.b64encode(s.private.sign(message)).decode()} for s in signers]


def canonical(document: Mapping[str, Any]) -> bytes:
    """Sorted keys, no spaces, ASCII: one byte string for one content."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def signing_bytes(document: Mapping[str, Any]) -> bytes:
    """What a signature covers: its schema as a prefix, and everything but ``sigs``."""
    return str(document["schema"]).encode() + b"\0" + canonical({k: v for k, v in document.items() if k != "sigs"})


def sign(document: Mapping[str, Any], signers: Sequence[Signer]) -> bytes:
    """The document's bytes with one more signature per signer; UsageProblem when it grows too large to be read."""
    body = canonical({**document, "sigs": [*document.get("sigs", ()), *signatures_over(signing_bytes(document), signers)]})
    if len(body) > SIZE_LIMIT:
        raise UsageProblem(f"The document is larger than {SIZE_LIMIT} bytes.", "Shorten the reason, or release in a new fleet.")
    return body


def _unsigned(
    *, fleet: str, killed: bool, epoch: int, reason: str, actor: str, issued_at: str, releases: Sequence[str], settled: int
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "fleet": fleet,
        "killed": killed,
        "epoch": epoch,
        "nonce": secrets.token_hex(16),
        "reason": reason[:500],
        "actor": actor[:200],
        "issued_at": issued_at,
        "releases": list(releases),
        "settled": settled,
        "sigs": [],
    }


def kill_document(*, fleet: str, reason: str, actor: str, issued_at: str, signers: Sequence[Signer] = ()) -> bytes:
    """``killed: true``. A signature, if any, is attribution only; the epoch is 0 because a kill has none."""
    return sign(
        _unsigned(fleet=fleet, killed=True, epoch=0, reason=reason, actor=actor, issued_at=issued_at, releases=(), settled=0),
        signers,
    )


def baseline_document(
    *, fleet: str, epoch: int, reason: str, actor: str, issued_at: str, signers: Sequence[Signer], settled: int = 0
) -> bytes:
    """The signed ``killed: false`` that always lies there when nothing is killed. ``settled`` repeats what a release has settled."""
    return release_document(
        fleet=fleet,
        epoch=epoch,
        reason=reason,
        actor=actor,
        issued_at=issued_at,
        releases=(),
        signers=signers,
        settled=settled,
        baseline=True,
    )


def release_document(
    *,
    fleet: str,
    epoch: int,
    reason: str,
    actor: str,
    issued_at: str,
    releases: Sequence[Order],
    signers: Sequence[Signer],
    settled: int = 0,
    baseline: bool = False,
) -> bytes:
    """A signed un-kill: it names every order of the kill file that it releases, and the number up to which orders are settled.

    UsageProblem without a signer, a good epoch or anything to release.
    """
    if not signers:
        raise UsageProblem("There is no private key here to sign with.", "Sign where the private keys are, or name their files with --key.")
    if not 1 <= epoch <= MAX_EPOCH:
        raise UsageProblem("The epoch is out of range.", f"Use 1 to {MAX_EPOCH}.")
    if not 0 <= settled <= MAX_EPOCH:
        raise UsageProblem("The number of settled orders is out of range.", f"Use 0 to {MAX_EPOCH}.")
    if not releases and not settled and not baseline:
        raise UsageProblem("A release must name what it releases.", "Review the live order first.")
    named = [read_order(r) for r in releases]
    unsigned = _unsigned(
        fleet=fleet, killed=False, epoch=epoch, reason=reason, actor=actor, issued_at=issued_at, releases=named, settled=settled
    )
    return sign(unsigned, signers)
