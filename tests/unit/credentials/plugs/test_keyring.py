"""An entry of a keyring is only ever looked for in one that encrypts."""

from __future__ import annotations

import pytest

from console.credentials.plugs import keyring
from console.credentials.plugs.keyring import open_entry
from console.domain.errors import Unavailable


def test_without_an_encrypting_keyring_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "open_keyring", lambda service: (None, ["SecretService: it is locked"]))
    with pytest.raises(Unavailable, match="SecretService: it is locked"):
        open_entry("mail")
