"""What may be kept of an entry: no known secret, in no field, not in half; a moment that can be."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from console.credentials.redaction import Redactor
from console.domain.activity import TEXT_KEPT, Entry, Kind
from console.services.activity.clean import WINDOW, cleaned, cleaned_all, dated, shortened

SECRET = "S3CRET-" + "k" * 40


@pytest.fixture
def redactor() -> Redactor:
    made = Redactor()
    made.learn(SECRET)
    return made


@pytest.mark.parametrize("field", ["text", "who", "tool", "ref", "pair"])
def test_a_secret_is_kept_in_no_field(redactor: Redactor, field: str) -> None:
    entry = cleaned(Entry(Kind.TOOL_CALL, "x", **{field: f"a {SECRET} b"}), redactor.redact)  # type: ignore[arg-type]
    assert getattr(entry, field) == "a [secret] b"
    assert cleaned_all([Entry(Kind.NOTE, "y"), Entry(Kind.NOTE, "x", **{field: SECRET})], redactor.redact)[1] == replace(  # type: ignore[arg-type]
        Entry(Kind.NOTE, "x"),
        **{field: "[secret]"},  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("at", [0, TEXT_KEPT - 60, TEXT_KEPT - 20, TEXT_KEPT, WINDOW - 60, WINDOW - 20, WINDOW + 5])
def test_no_part_of_one_is_kept_wherever_it_stands(redactor: Redactor, at: int) -> None:
    for text in ("a" * at + SECRET + "b" * 100, SECRET * 2000 + "c" * at + SECRET):
        for given in (Entry(Kind.NOTE, "x", text=text), shortened(Entry(Kind.NOTE, "x", text=text))):
            for kept in (cleaned(given, redactor.redact), cleaned_all([given, given], redactor.redact)[1]):
                assert "S3CRET" not in kept.text and "kkkkkk" not in kept.text and len(kept.text) <= TEXT_KEPT


def test_what_holds_none_is_the_same_and_what_is_cut_is_counted(redactor: Redactor) -> None:
    small = Entry(Kind.NOTE, "x", text="nothing", who="w")
    assert cleaned_all([small], redactor.redact)[0] is small
    long = cleaned(shortened(Entry(Kind.NOTE, "x", text="y" * 1_000_000)), redactor.redact)
    assert len(long.text) + long.left_out == 1_000_000


def test_no_moment_lies_in_the_future_and_none_is_missing(redactor: Redactor) -> None:
    before = time.time()
    moments = [e.at for e in dated((Entry(Kind.NOTE, "x", at) for at in (0.0, 5.0, 0.0, 9e9, 7.0)), redactor.redact)]
    assert moments[1:3] == [5.0, 5.0] and moments[4] == 7.0
    assert all(before <= moments[n] <= time.time() for n in (0, 3))
