"""The receipts of the hosts: only ever added to the bucket."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import NotFound as ObjectMissing
from google.api_core.exceptions import PreconditionFailed
from google.cloud import storage

from console.domain.errors import UsageProblem
from console.remotekill.objects import ObjectTooLarge, fetch, upload
from console.remotekill.orders import listed_names
from console.remotekill.writing import RemoteWrite, sha256_of

RECEIPT_LIMIT = 1024 * 1024
HOSTS_LISTED = 2000
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class HostReceipt:
    """What a host wrote about obeying an order. Its content is the host's word, not proof."""

    host: str
    receipt: dict[str, Any] | None
    why: str = ""
    """Why there is no readable receipt."""


def receipt_name(prefix: str, kill_generation: int, host: str) -> str:
    """The object of one host's answer; UsageProblem when a part could lead elsewhere."""
    if type(kill_generation) is not int or kill_generation < 1:
        raise UsageProblem("That is not a generation.", "Use the generation of the order that was obeyed.")
    if not _HOST.fullmatch(host):
        raise UsageProblem("That is not a host's name.", "Use letters, digits, dot, dash and underscore, 63 at most.")
    return f"{prefix}receipts/{kill_generation}/{host}.json"


def add_receipt(bucket: storage.Bucket, name: str, body: bytes) -> RemoteWrite:
    """Create-only, with read-back; FAULTS."""
    sha = sha256_of(body)
    try:
        generation = upload(bucket, name, body, 0)
    except PreconditionFailed:
        there = fetch(bucket, name, 0, RECEIPT_LIMIT)
        same = there is not None and there.body == body
        detail = "this receipt was there already" if same else "failed: another receipt of this host was there already"
        return RemoteWrite(there.generation if there else 0, same, detail, sha, already=True)
    seen = fetch(bucket, name, 0, RECEIPT_LIMIT)
    ok = seen is not None and seen.generation == generation and seen.body == body
    return RemoteWrite(generation, ok, f"read back, generation {generation}" if ok else "failed: not read back as written", sha)


def gather_receipts(client: storage.Client, bucket: str, prefix: str, left: Callable[[], float]) -> list[HostReceipt]:
    """The receipts below ``prefix``, by host; FAULTS."""
    found = []
    for name in listed_names(client, bucket, prefix, HOSTS_LISTED, left):
        host = name.removeprefix(prefix).removesuffix(".json")
        if _HOST.fullmatch(host):
            found.append(_read_receipt(client.bucket(bucket), name, host))
    return sorted(found, key=lambda receipt: receipt.host)


def gather_hosts(client: storage.Client, bucket: str, prefix: str, left: Callable[[], float]) -> list[str]:
    """The hosts that ever wrote a receipt below ``prefix``, from the names alone; FAULTS."""
    names = {name.rpartition("/")[2].removesuffix(".json") for name in listed_names(client, bucket, prefix, HOSTS_LISTED, left)}
    return sorted(name for name in names if _HOST.fullmatch(name))


def _read_receipt(bucket: storage.Bucket, name: str, host: str) -> HostReceipt:
    try:
        seen = fetch(bucket, name, 0, RECEIPT_LIMIT)
        data = json.loads(seen.body) if seen is not None else None
    except ObjectTooLarge as error:
        return HostReceipt(host, None, str(error))
    except (ValueError, RecursionError, ObjectMissing):
        return HostReceipt(host, None, "the receipt is not readable")
    return HostReceipt(host, data) if isinstance(data, dict) else HostReceipt(host, None, "the receipt is not an object")
