from __future__ import annotations

from console.ledger.store import Ledger


def test_small_settings_are_kept_and_changed(ledger: Ledger) -> None:
    assert ledger.kv_get("epoch") is None
    ledger.kv_set("epoch", "3")
    ledger.kv_set("epoch", "4")
    again = Ledger(ledger.path)
    assert again.kv_get("epoch") == "4"
    again.close()
