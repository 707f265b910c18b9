"""Receipts as files: the local part of every kill, replaced whole."""

from __future__ import annotations

import json
import re
import secrets
import time
from pathlib import Path

from console.domain.kill import Receipt, receipt_from_json
from console.killswitch.durable import sync_folder, write_whole

KILL_ID = re.compile(r"^[a-z0-9][a-z0-9-]{3,40}\Z")


def new_kill_id() -> str:
    """Sorts by time: 20250131-142233-a1b2c3d4."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


def receipt_path(guard_dir: Path, kill_id: str) -> Path:
    """ValueError for an id that no kill has."""
    if not KILL_ID.match(kill_id):
        raise ValueError("kill id")
    return guard_dir / "receipts" / f"{kill_id}.json"


def receipt_bytes(receipt: Receipt) -> bytes:
    return json.dumps(receipt.as_json(), indent=1, ensure_ascii=True).encode() + b"\n"


def write_receipt(guard_dir: Path, receipt: Receipt) -> None:
    """OSError when it is not durable."""
    path = receipt_path(guard_dir, receipt.kill_id)
    is_first = not path.parent.is_dir()
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, receipt_bytes(receipt))
    if is_first:
        sync_folder(guard_dir)


def read_receipt(guard_dir: Path, kill_id: str) -> Receipt | None:
    """None when there is none, or none that can be read."""
    try:
        return receipt_from_json(json.loads(receipt_path(guard_dir, kill_id).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
