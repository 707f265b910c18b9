"""The key set that signs tokens, as the store keeps it."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass

from console.domain.errors import ConsoleError

KEYS_NAME = "token-keys"
"""The entry of the store that holds the key set."""
KEY_BYTES = 32
KID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The key set as it is kept: the current kid, its keys, and the lowest epoch a state may have."""

    current: str
    keys: dict[str, bytes]
    epoch_floor: int


def read_keys(text: str) -> TokenKeys:
    """The key set from the store's text; ConsoleError when it is damaged or a key is short (RFC 7518 3.2: 256 bits for HS256)."""
    try:
        data = json.loads(text)
        keys = {kid: base64.b64decode(value, validate=True) for kid, value in data["keys"].items()}
        found = TokenKeys(data["current"], keys, data["epoch_floor"])
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise _damaged() from error
    sound = all(KID.fullmatch(k) and len(v) >= KEY_BYTES for k, v in keys.items())
    if found.current not in keys or not sound or type(found.epoch_floor) is not int or found.epoch_floor < 1:
        raise _damaged()
    return found


def _damaged() -> ConsoleError:
    return ConsoleError("The token keys are damaged.", "Rotate the credentials.")


def write_keys(keys: TokenKeys) -> str:
    """The inverse of ``read_keys``."""
    encoded = {kid: base64.b64encode(value).decode() for kid, value in keys.keys.items()}
    return json.dumps({"current": keys.current, "keys": encoded, "epoch_floor": keys.epoch_floor})
