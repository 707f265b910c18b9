"""From a terminal: a signing key that leaked is taken out of the record, while everything runs, and also while nothing does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.audit.receipt_seal import key_id_of, seal
from console.credentials.host_key import PRIVATE_FILE, ensure_host_key
from tests.fakes.terminal import Terminal, open_terminal, until


@pytest.fixture
def terminal(state_dir: Path) -> Iterator[Terminal]:
    with open_terminal(state_dir) as made:
        yield made


def test_a_hosts_key_that_leaked_seals_nothing_more_and_what_it_sealed_before_still_counts(terminal: Terminal, tmp_path: Path) -> None:
    terminal.serve_forked()
    kill_id = terminal("panic", "--reason", "the test", "--json").json["kill_id"]
    before = terminal.places.receipts_dir / f"{kill_id}.sealed.json"
    assert until(before.exists)
    thief = tmp_path / "thief"
    thief.mkdir(mode=0o700)
    shutil.copy(terminal.places.keys_dir / PRIVATE_FILE, thief)
    old = key_id_of(ensure_host_key(thief).public_key())
    # Also while killed.
    said = terminal("secrets", "keys", "revoke", old, "--reason", "it lay in a backup")
    assert said.code == 0 and f"host key {old} is retired, on record" in said.out, said
    kept = terminal("receipt", "verify", str(before))
    assert kept.code == 0 and "was retired since" in kept.out
    whole = terminal("audit", "verify")
    assert whole.code == 0 and f"host key {old} was retired at record" in " ".join(whole.out.split())
    # What the thief seals, with any date, is worth nothing.
    forged = terminal.places.receipts_dir / "k-forged.sealed.json"
    forged.write_bytes(seal({"kill_id": "k-forged", "verified_zero": True}, ensure_host_key(thief), 1.0))
    found = terminal("receipt", "verify", str(forged))
    assert found.code == 1 and "kill k-forged" in found.out and "worth nothing" in " ".join(found.out.split())


@pytest.mark.long
def test_a_fleets_key_that_leaked_is_taken_out_with_nothing_running(terminal: Terminal) -> None:
    (old,) = terminal("secrets", "keys", "init", "--fleet", "a", "--json").json["kids"]
    assert terminal("secrets", "keys", "revoke", old, "--reason", "leaked").code == 4, "no other key could say so"
    assert terminal("secrets", "keys", "rotate").code == 0
    said = terminal("secrets", "keys", "revoke", old, "--reason", "leaked")
    assert said.code == 3 and "Start it once" in said.err, "nothing is retired without a record"
    terminal.serve_forked()
    assert terminal("secrets", "keys", "revoke", old, "--reason", "leaked", "--json").json["role"] == "fleet"
    shown = terminal("secrets", "keys", "show", "--json").json
    assert old not in shown["kids"] and len(shown["kids"]) == 1 and shown["host_key"]
    assert f"the fleet key {old} was retired at record" in " ".join(terminal("audit", "verify").out.split())
    [record] = terminal("audit", "tail", "--filter", "key.retired", "--json").json["records"]
    assert record["actor"].startswith("operator:") and "leaked" in record["what"]
