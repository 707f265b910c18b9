"""A retirement says which key, by which, and stands only with the signature of the one that remains."""

from __future__ import annotations

from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from console.audit.retirement import FLEET, HOST, key_id, retire, retirement_of, worth

OLD, NEW = (Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in (1, 2))
RAW, BY = (key.public_key().public_bytes_raw() for key in (OLD, NEW))


def test_it_comes_back_from_the_record_and_stands() -> None:
    made = retire(HOST, RAW, BY, NEW.sign)
    assert retirement_of(made.as_data()) == made and made.problem() == "" and made.raw() == RAW and made.key_id == key_id(RAW)
    assert worth(HOST) != worth(FLEET)


def test_any_change_of_it_and_a_key_that_retires_itself_are_none() -> None:
    made = retire(FLEET, RAW, BY, NEW.sign)
    for other in (replace(made, role=HOST), replace(made, key_id="0" * 16), replace(made, signature=""), replace(made, public="%"),
                  replace(made, by=made.public), retire(FLEET, RAW, BY, OLD.sign), retire(FLEET, b"short", BY, NEW.sign)):  # fmt: skip
        assert other.problem()
    assert "another key" in retire(FLEET, RAW, RAW, OLD.sign).problem()
    assert replace(made, public="%").raw() == b""


def test_what_has_not_its_shape_is_none() -> None:
    assert retirement_of({}) is None and retirement_of({**retire(HOST, RAW, BY, NEW.sign).as_data(), "by": 1}) is None
