"""The document: kills count from anybody, un-kills only whole, signed, for this fleet, by a quorum of distinct keys."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.domain.errors import UsageProblem
from console.remotekill.document import (
    SCHEMA,
    SCHEMA_2,
    SIZE_LIMIT,
    Junk,
    KillOrder,
    Order,
    SignedUnkill,
    canonical,
    generation_of,
    kill_document,
    number_of,
    order_of,
    parse,
    read_order,
    sign,
    signing_bytes,
)

AT = "2026-01-01T00:00:00+00:00"


def why(body: bytes, keys: Any) -> str:
    found = parse(body, keys)
    assert isinstance(found, Junk), found
    return found.why


def test_a_hand_written_emergency_file_is_a_kill(fleet: Any) -> None:
    assert parse(b'{"killed":true,"reason":"emergency"}', fleet.keys()) == KillOrder("emergency", "")
    assert parse(b'\xef\xbb\xbf{"killed": true}\n', fleet.keys()) == KillOrder("", "")


@pytest.mark.parametrize(
    "extra", [{"fleet": "other"}, {"schema": "x"}, {"epoch": -1}, {"sigs": "junk"}, {"reason": 7}, {"expires": 0}, {"killed_by": []}]
)
def test_nothing_in_a_kill_can_make_it_not_a_kill(fleet: Any, extra: dict[str, Any]) -> None:
    assert isinstance(parse(json.dumps({"killed": True, **extra}).encode(), fleet.keys()), KillOrder)


def test_a_signed_kill_is_attribution_only(fleet: Any) -> None:
    body = kill_document(fleet="prod-eu", reason="bad", actor="ann", issued_at=AT, signers=fleet.signers("stranger"))
    assert parse(body, fleet.keys()) == KillOrder("bad", "ann")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"killed: true",
        b'{"killed":1}',
        b'{"killed":"true"}',
        b'{"killed":null}',
        b'{"killed":true,"killed":false}',
        b'{"killed":false,"killed":true}',
        b'{"killed":true,"x":{"a":1,"a":2}}',
        b'{"killed":true,"x":NaN}',
        b'{"killed":true}trailing',
        b'\xff\xfe{"killed":true}',
        b"[" * 60000,
        b'{"killed":true,"x":"' + b"y" * SIZE_LIMIT + b'"}',
        b'{"killed":true,"x":' + b"9" * 5000 + b"}",
    ],
)
def test_junk_is_junk_and_never_an_exception(fleet: Any, body: bytes) -> None:
    assert isinstance(parse(body, fleet.keys()), Junk)


def test_a_baseline_and_a_release_are_read(fleet: Any) -> None:
    order = order_of(7, b"x")
    assert parse(fleet.baseline(3, "k1"), fleet.keys()) == SignedUnkill(3, (), "calm", "ann", AT)
    assert parse(fleet.release(4, [order], "k2"), fleet.keys()) == SignedUnkill(4, (order,), "ok", "ann", AT)


def test_a_quorum_counts_keys_not_signatures(fleet: Any) -> None:
    two = fleet.keys(quorum=2)
    assert isinstance(parse(fleet.baseline(1, "k1", "k2"), two), SignedUnkill)
    assert "1 of 2" in why(fleet.baseline(1, "k1", "k1"), two)
    assert "1 of 2" in why(fleet.baseline(1, "k1", "k1-again"), two), "one key under two kids is one vote"
    assert "1 of 2" in why(fleet.baseline(1, "k1", "stranger"), two)
    assert "0 of 1" in why(fleet.baseline(1, "stranger"), fleet.keys())


def test_no_keys_and_no_quorum_trust_nobody(fleet: Any) -> None:
    from console.remotekill.document import KeySet

    assert "0 of 1" in why(fleet.baseline(1, "k1"), KeySet("prod-eu", 0, {}))
    assert "required" in why(fleet.baseline(1, "k1"), KeySet("prod-eu", 0, fleet.keys().keys))


def test_another_fleets_baseline_is_junk(fleet: Any) -> None:
    assert "another fleet" in why(fleet.baseline(1, "k1", fleet="prod-us"), fleet.keys())


def test_unsigned_unkill_is_junk(fleet: Any) -> None:
    assert "unsigned" in why(b'{"killed":false}', fleet.keys())
    document = json.loads(fleet.baseline(1, "k1"))
    assert "0 of 1" in why(canonical({**document, "sigs": []}), fleet.keys())


@pytest.mark.parametrize("epoch", [0, -1, True, 1.0, "1", None, 2**53])
def test_epochs_are_whole_numbers_from_one(fleet: Any, epoch: object) -> None:
    document = {**json.loads(fleet.baseline(1, "k1")), "epoch": epoch, "sigs": []}
    assert "epoch" in why(sign(document, fleet.signers("k1")), fleet.keys())


@pytest.mark.parametrize("releases", [["x"], [1], "x", {}, None, ["7:sha256:" + "A" * 64], ["7:sha256:" + "a" * 63]])
def test_releases_must_be_orders(fleet: Any, releases: object) -> None:
    document = {**json.loads(fleet.baseline(1, "k1")), "releases": releases, "sigs": []}
    assert "releases" in why(sign(document, fleet.signers("k1")), fleet.keys())


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        {"kid": "k1", "alg": "none", "sig": ""},
        {"kid": ["k1"], "alg": "Ed25519", "sig": ""},
        {"kid": "k1", "alg": "Ed25519", "sig": "!!"},
        {"kid": "k1", "alg": "Ed25519", "sig": base64.b64encode(b"x" * 64).decode()},
        {"kid": "k1", "alg": "Ed25519", "sig": "", "more": 1},
    ],
)
def test_bad_signature_entries_do_not_count(fleet: Any, entry: object) -> None:
    document = {**json.loads(fleet.baseline(1, "k1")), "sigs": [entry]}
    assert "0 of 1" in why(json.dumps(document).encode(), fleet.keys())


def test_a_signature_without_the_domain_prefix_is_worth_nothing(fleet: Any) -> None:
    document = json.loads(fleet.baseline(1, "k1"))
    bare = signing_bytes(document).removeprefix(SCHEMA.encode() + b"\0")
    document["sigs"][0]["sig"] = base64.b64encode(fleet.one.sign(bare)).decode()
    assert "0 of 1" in why(canonical(document), fleet.keys())


def test_a_flood_of_signatures_is_refused(fleet: Any) -> None:
    document = json.loads(fleet.baseline(1, "k1"))
    document["sigs"] = document["sigs"] * 17
    assert "short list" in why(canonical(document), fleet.keys())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_tampered_unkill_is_accepted_as_anything_but_itself(fleet: Any, data: st.DataObject) -> None:
    body = bytearray(fleet.release(5, [order_of(7, b"x")], "k1"))
    original = parse(bytes(body), fleet.keys())
    position = data.draw(st.integers(0, len(body) - 1))
    body[position] = data.draw(st.integers(0, 255))
    found = parse(bytes(body), fleet.keys())
    assert isinstance(found, Junk | KillOrder) or found == original


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_arbitrary_bytes_never_unkill_and_never_raise(fleet: Any, body: bytes) -> None:
    assert not isinstance(parse(body, fleet.keys()), SignedUnkill)


def test_identical_emergency_files_are_different_orders() -> None:
    body = b'{"killed":true}'
    assert order_of(1, body) != order_of(2, body)
    assert read_order(order_of(1, body)) == order_of(1, body)
    for text in ("1:sha256:zz", f"0/1:sha256:{'0' * 64}", f"01/1:sha256:{'0' * 64}", f"/1:sha256:{'0' * 64}", f"1/2/3:sha256:{'0' * 64}"):
        with pytest.raises(UsageProblem):
            read_order(text)


def test_an_order_of_the_folder_carries_its_number() -> None:
    order = order_of(17, b"{}", 8)
    assert read_order(order) == order and (number_of(order), generation_of(order)) == (8, 17)
    assert (number_of(order_of(17, b"{}")), generation_of(order_of(17, b"{}"))) == (0, 17)


def test_a_document_of_before_the_numbers_keeps_its_meaning_and_settles_none(fleet: Any) -> None:
    order = order_of(7, b"x")
    old = {k: v for k, v in json.loads(fleet.release(5, [order], "k1")).items() if k != "settled"} | {"schema": SCHEMA_2, "sigs": []}
    found = parse(sign(old, fleet.signers("k1")), fleet.keys())
    assert isinstance(found, SignedUnkill) and (found.epoch, found.releases, found.settled) == (5, (order,), 0)
    assert "exactly the fields" in why(canonical({**old, "settled": 9}), fleet.keys())
    new = json.loads(fleet.release(5, [order], "k1"))
    assert "0 of 1" in why(canonical({**{k: v for k, v in new.items() if k != "settled"}, "schema": SCHEMA_2}), fleet.keys())


@pytest.mark.parametrize("settled", [-1, True, "3", 2**60, None, 1.0])
def test_what_is_settled_is_a_number(fleet: Any, settled: object) -> None:
    document = {**json.loads(fleet.baseline(1, "k1")), "settled": settled, "sigs": []}
    assert "settled" in why(sign(document, fleet.signers("k1")), fleet.keys())


def test_signing_refuses_what_could_not_be_read_or_binds_nothing(fleet: Any) -> None:
    with pytest.raises(UsageProblem, match="no private key"):
        fleet.release(2, [order_of(1, b"")])
    with pytest.raises(UsageProblem, match="must name"):
        fleet.release(2, [], "k1")
    with pytest.raises(UsageProblem, match="epoch"):
        fleet.release(0, [order_of(1, b"")], "k1")
    with pytest.raises(UsageProblem, match="larger"):
        fleet.release(2, [order_of(n, b"") for n in range(1000)], "k1")
    with pytest.raises(UsageProblem, match="kill order"):
        fleet.release(2, [Order("latest")], "k1")
