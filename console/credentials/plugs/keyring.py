"""An entry of the desktop's keyring, found by service and user name, in a keyring that encrypts or in none."""

from __future__ import annotations

from console.credentials.keyring_place import KeyringPlace, open_keyring
from console.domain.errors import Unavailable


def open_entry(service: str) -> KeyringPlace:
    """The keyring that holds entries of this service. Raises Unavailable with why there is none to be used."""
    place, why = open_keyring(service)
    if place is None:
        raise Unavailable(f"No encrypting keyring answers: {'; '.join(why)}.", "Unlock the desktop's keyring, then rotate again.")
    return place
