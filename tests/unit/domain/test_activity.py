from __future__ import annotations

from dataclasses import replace

from console.domain.activity import LATEST, PATH_KEPT, SHORT, TEXT_KEPT, Entry, Kind, bounded, encodable, source_id


def test_bounds_hold_and_what_was_cut_is_counted() -> None:
    entry = bounded(Entry(Kind.MESSAGE, "i" * 999, text="x" * (TEXT_KEPT + 7), who="w" * 999, ref="p" * 9999, left_out=3))
    assert (len(entry.text), entry.left_out) == (TEXT_KEPT, 10)
    assert (len(entry.who), len(entry.source_id), len(entry.ref)) == (SHORT, SHORT, PATH_KEPT)
    small = Entry(Kind.NOTE, "a", text="ö\x1b\u202e")
    assert bounded(small) == small


def test_half_characters_can_be_stored() -> None:
    assert encodable("a\ud800b\0") == "a\\ud800b\\x00"
    bounded(Entry(Kind.FILE, "a", text="\udcff", ref="\udcff")).text.encode()


def test_the_same_bytes_have_one_name_and_any_other_content_has_another() -> None:
    assert source_id(b"x") == source_id("x") != source_id(b"x", 1) != source_id(b"y")


def test_what_fits_is_kept_as_it_is_and_what_does_not_in_one_place_is_cut_there() -> None:
    most = (1 << 63) - 1
    fits = Entry(Kind.SPEND, "i" * SHORT, LATEST - 1, "x" * TEXT_KEPT, "w", most, tokens=most, cost_nano=most, ref="p" * PATH_KEPT)
    assert bounded(fits) is fits
    for name, given, kept in (
        ("who", "w" * (SHORT + 1), "w" * SHORT),
        ("ref", "p" * (PATH_KEPT + 1), "p" * PATH_KEPT),
        ("tool", "a\0", "a\\x00"),
        ("pair", "\ud800", "\\ud800"),
        ("turn", -1, 0),
        ("cost_nano", most + 1, most),
        ("left_out", -1, 0),
        ("at", LATEST, 0.0),
        ("at", float("nan"), 0.0),
    ):
        assert bounded(replace(fits, **{name: given})) == replace(fits, **{name: kept})  # type: ignore[arg-type]
